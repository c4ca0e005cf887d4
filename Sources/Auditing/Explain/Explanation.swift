import Reconciliation
import Reporting
import Run

/// Everything that is known about one order, and what follows from it: what `explain` prints, as text or as JSON.
///
/// As JSON times are UTC, amounts are text with the currency's digits, and words are those of the report; the keys are
/// listed in the manual.
package struct Explanation: Encodable, Sendable {
  package struct Order: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var bundleId: String?
    package var productId: Identifier
    package var quantity: Int64?
    package var amount: String
    package var currency: String
    package var status: String
    package var transactionId: Identifier?
    package var appAccountToken: String?
    package var createdAt: Instant
    package var verifiedAt: Instant?
    package var defect: String?
    /// Further rows that have the same id.
    package var repeatedRows: Int
  }

  /// One rule of the verdict that was considered.
  package struct Rule: Encodable, Sendable {
    package var rule: String
    package var question: String
    package var holds: Bool
    package var because: String
  }

  /// Something that happened to a finding.
  package struct Event: Encodable, Sendable {
    package var asOf: Instant
    package var event: String
    package var actor: String?
    package var detail: String?
  }

  /// What the nights before left of a finding.
  package struct History: Encodable, Sendable {
    package var firstSeen: Instant
    package var lastSeen: Instant
    package var closedAt: Instant?
    package var ageDays: Int64
    package var status: String
    package var owner: String?
    package var remark: String?
    package var events: [Event]
  }

  package struct Finding: Encodable, Sendable {
    package var findingId: String
    package var kind: FindingKind
    package var severity: Severity
    package var subject: Identifier
    package var orderId: Identifier?
    package var userId: Identifier?
    package var transactionId: Identifier?
    package var receiptId: Identifier?
    package var deliveryId: Identifier?
    /// Whether it stands now; else it did once.
    package var stands: Bool
    package var reason: String
    package var suggestedAction: String
    package var currency: String?
    package var amount: String?
    package var atStake: String?
    package var history: History?
  }

  /// A kind of finding that does not stand.
  package struct Consideration: Encodable, Sendable {
    package var kind: FindingKind
    package var because: String
  }

  package struct Refund: Encodable, Sendable {
    package var date: Instant
    package var percentage: String?
    package var type: String?
    package var reason: Int32?
  }

  /// Something that was said about a transaction.
  package struct Statement: Encodable, Sendable {
    /// Whether the channel says that it was refunded; `silent` where it cannot tell.
    package enum Refunded: String, Encodable, Sendable { case yes, no, silent }

    package var signedAt: Instant
    package var channel: EvidenceChannel
    /// Of the run that was told.
    package var asOf: Instant
    /// The proof that it was said about; nil for what Apple told without being asked about one.
    package var aboutKind: String?
    package var aboutId: Identifier?
    package var refunded: Refunded
    package var refund: Refund?
    package var price: String?
    package var currency: String?
    package var expiresAt: Instant?
    package var isRenewal: Bool?
    package var hasOffer: Bool?
  }

  /// Another order that names a transaction, or whose proofs brought it.
  package struct Competitor: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var createdAt: Instant
    package var names: Bool
    package var owns: Bool
  }

  /// An order that claims a transaction, and by which right.
  package struct Claim: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var createdAt: Instant
    /// Whose account token the transaction carries: `own`, `other`, or `unknown`.
    package var accountToken: String
    /// Whether a genuine proof of the same person brings it.
    package var isProven: Bool
    package var names: Bool
    /// Whether nothing but false proofs speaks for the order.
    package var isFalse: Bool
  }

  /// One step of deciding who owns a transaction.
  package struct MatchingStep: Encodable, Sendable {
    package var question: String
    /// The orders that are left after it.
    package var left: [Identifier]
    package var because: String
  }

  package struct Transaction: Encodable, Sendable {
    package var transactionId: Identifier
    package var environment: AppleEnvironment
    package var productId: Identifier
    package var quantity: Int32?
    package var purchasedAt: Instant?
    package var expiresAt: Instant?
    package var bundleId: String?
    package var price: String?
    package var currency: String?
    package var refund: Refund?
    package var refundWithdrawnAt: Instant?
    package var isFamilyShared: Bool
    package var appAccountToken: String?
    /// Whether the explained order owns it.
    package var isOwned: Bool
    /// What that order has to do with it, as a sentence.
    package var standing: String
    /// What follows where no order claims it.
    package var unclaimed: String?
    package var competitors: [Competitor]
    /// Who claims it.
    package var claims: [Claim]
    /// How its owner was found among them, in the order of precedence.
    package var matching: [MatchingStep]
    /// In the order in which it was said.
    package var evidence: [Statement]
  }

  /// An answer of Apple's, or its absence.
  package struct Answer: Encodable, Sendable {
    package var asOf: Instant
    package var channel: String
    package var outcome: CheckOutcome
    package var reason: PaymentReason?
    package var environment: String?
    package var appleStatus: Int32?
    /// How many transactions it told of.
    package var transactions: Int
  }

  /// A receipt, or the look-up of a transaction id, with everything that was answered.
  package struct Proof: Encodable, Sendable {
    package var subjectKind: String
    package var subjectId: Identifier
    /// nil for a look-up, like everything that only a receipt has.
    package var receivedAt: Instant?
    package var userId: Identifier?
    package var kind: ReceiptKind?
    package var claimedEnvironment: String?
    package var environment: AppleEnvironment?
    package var outcome: CheckOutcome
    package var reason: PaymentReason?
    /// Whether nobody can tell who signed it; nil where somebody can.
    package var isUnproven: Bool?
    package var attempts: Int32
    package var lastAttempt: Instant?
    package var nextAttempt: Instant?
    package var defect: String?
    package var transactions: [TransactionKey]
    /// Oldest first.
    package var answers: [Answer]
  }

  package struct Delivery: Encodable, Sendable {
    package var deliveryId: Identifier
    package var userId: Identifier
    package var productId: Identifier
    package var quantity: Int64?
    package var deliveredAt: Instant
    package var revokedAt: Instant?
    package var defect: String?
  }

  /// Something that happened to the order, whoever recorded it.
  package struct Moment: Encodable, Sendable {
    package var at: Instant
    package var event: String
  }

  package var asOf: Instant
  /// Whether an audit of this as-of judges orders of that age.
  package var isInLookback: Bool
  /// `audit.lookback`, in words.
  package var lookback: String
  package var order: Order
  package var disposition: Disposition
  package var dispositionBecause: String
  /// nil for a row that breaks the contract: nothing is decided about it.
  package var payment: String?
  package var paymentReason: PaymentReason?
  /// The rules of the verdict, up to the first that holds.
  package var rules: [Rule]
  /// What stands on the order, its receipts, deliveries and on payments that it brought and nobody claims; then what stood.
  package var findings: [Finding]
  /// The kinds that stand neither on the order nor on anything of it, each with its reason.
  package var considered: [Consideration]
  package var transactions: [Transaction]
  package var proofs: [Proof]
  package var deliveries: [Delivery]
  /// Oldest first.
  package var events: [Moment]

  /// As `explain --json` prints it.
  package var json: String { get throws { try MachineText.json(self) } }
}

// How the words of the core are written as JSON.
extension Instant: Encodable {
  /// `2026-11-19T22:14:03Z`
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(machineText)
  }
}

extension Identifier: Encodable {
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

extension TransactionKey: Encodable {
  /// The id alone: the environment stands with the transaction.
  public func encode(to encoder: any Encoder) throws { try transactionId.encode(to: encoder) }
}

extension AppleEnvironment: Encodable {}
extension CheckOutcome: Encodable {}
extension Disposition: Encodable {}
extension EvidenceChannel: Encodable {}
extension FindingKind: Encodable {}
extension PaymentReason: Encodable {}
extension ReceiptKind: Encodable {}
extension Severity: Encodable {}
