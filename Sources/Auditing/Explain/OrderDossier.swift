import AuditStore
import Reconciliation
import Reporting

/// Everything that is known about one order, and what follows from it.
package struct OrderDossier: Sendable {
  /// Something that was said about a transaction.
  package struct Statement: Sendable {
    package var fact: TransactionFact
    /// As-of of the run that was told.
    package var asOf: Instant
    /// The proof that it was said about; nil for what Apple told without being asked about one.
    package var subject: CheckSubject?
  }

  /// Another order that names a transaction, or whose proofs brought it.
  package struct Competitor: Sendable {
    package var order: Order
    package var names: Bool
    package var owns: Bool
  }

  /// One of the transactions that the order has to do with.
  package struct Transaction: Sendable {
    package var record: TransactionRecord
    /// Whether the order owns it.
    package var isOwned: Bool
    /// What the order has to do with it, as a sentence.
    package var standing: String
    /// What follows where no order claims it.
    package var leftOver: Finding?
    package var competitors: [Competitor] = []
    /// In the order in which Apple said it.
    package var evidence: [Statement] = []
  }

  /// An answer of Apple, or its absence.
  package struct Answer: Sendable {
    package var asOf: Instant
    package var channel: String
    package var outcome: CheckOutcome
    package var reason: PaymentReason?
    package var environment: String?
    package var appleStatus: Int32?
    /// How many transactions it told of.
    package var facts: Int
  }

  /// A receipt, or the look-up of a transaction id, with everything that was answered.
  package struct Proof: Sendable {
    package var subject: CheckSubject
    /// nil for a look-up.
    package var receipt: Receipt?
    package var state: ProofState
    /// Oldest first.
    package var answers: [Answer] = []
    package var brought: [TransactionKey] = []
  }

  /// Something that happened to a finding.
  package struct Event: Sendable {
    package var asOf: Instant
    package var event: String
    package var actor: String?
    package var detail: String?
  }

  /// What the nights before left of a finding.
  package struct Known: Sendable {
    package var findingId: String
    package var kind: FindingKind
    package var subject: Identifier
    package var reason: String
    package var firstSeen: Instant
    package var lastSeen: Instant
    package var closedAt: Instant?
    package var status: String
    package var owner: String?
    package var remark: String?
    package var events: [Event] = []
  }

  package var asOf: Instant
  /// Whether an audit of this as-of judges orders of that age.
  package var isInLookback: Bool
  package var lookback: Reconciliation.Span
  package var judgement: Judgement
  /// nil for a row that breaks the contract: nothing is decided about it.
  package var reasoning: Reasoning?
  /// What stands on the order, its receipts, deliveries and on payments that it brought and nobody claims.
  package var findings: [Finding]
  /// By finding id; those of `findings`, and those that were closed.
  package var known: [String: Known]
  package var deliveries: [Delivery]
  package var proofs: [Proof]
  package var transactions: [Transaction]
  /// Rows that share the order's id with the first one.
  package var repeatedRows: Int

  /// The kinds that stand neither on the order nor on anything of it, each with its reason.
  var reasonsAgainst: [(kind: FindingKind, because: String)] {
    let found = Set(findings.map(\.kind))
    return FindingKind.allCases.compactMap { kind in
      found.contains(kind) ? nil : reasoning?.declined[kind].map { (kind, $0) }
    }
  }
}
