import Reconciliation
import Reporting
import Run

/// All facts about one order and its verdict: the output of `explain`, as text or JSON. In JSON times are UTC, amounts
/// are text with the currency's digits. The manual lists the keys.
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
    package var repeatedRows: Int
  }

  package struct Rule: Encodable, Sendable {
    package var rule: String
    package var question: String
    package var holds: Bool
    package var because: String
  }

  package struct Event: Encodable, Sendable {
    package var asOf: Instant
    package var event: String
    package var actor: String?
    package var detail: String?
  }

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
    /// True if the finding is open now, false if it was earlier.
    package var stands: Bool
    package var reason: String
    package var suggestedAction: String
    package var currency: String?
    package var amount: String?
    package var atStake: String?
    package var history: History?
  }

  /// A kind of finding that does not apply.
  package struct DeclinedFinding: Encodable, Sendable {
    package var kind: FindingKind
    package var because: String
  }

  package struct Refund: Encodable, Sendable {
    package var date: Instant
    package var percentage: String?
    package var type: String?
    package var reason: Int32?
  }

  /// One piece of evidence about a transaction.
  package struct Statement: Encodable, Sendable {
    /// Refund status according to the channel; `silent` if it cannot report refunds.
    package enum Refunded: String, Encodable, Sendable { case yes, no, silent }

    package var signedAt: Instant
    package var channel: EvidenceChannel
    package var asOf: Instant
    /// The kind of the proof it answers; nil for notifications.
    package var aboutKind: String?
    package var aboutId: Identifier?
    package var refunded: Refunded
    package var refund: Refund?
    package var price: String?
    package var currency: String?
    package var expiresAt: Instant?
    package var isRenewal: Bool?
    package var hasOffer: Bool?
    /// The duration of the offer (ISO 8601).
    package var offerPeriod: String?
    /// The price of the next renewal.
    package var renewalPrice: String?
    package var renewalCurrency: String?
  }

  /// Another order that states a transaction or has a proof of it.
  package struct Competitor: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var createdAt: Instant
    package var names: Bool
    package var owns: Bool
  }

  package struct Claim: Encodable, Sendable {
    package var orderId: Identifier
    package var userId: Identifier
    package var createdAt: Instant
    /// The owner of the transaction's account token: `own`, `other` or `unknown`.
    package var accountToken: String
    /// True if a genuine proof of the same person contains it.
    package var isProven: Bool
    package var names: Bool
    /// True if all proofs of the order are rejected.
    package var isFalse: Bool
  }

  package struct MatchingStep: Encodable, Sendable {
    package var question: String
    package var left: [Identifier]
    package var because: String
  }

  /// A purchase that the order refers to or is linked to, under the ID that reports show.
  package struct Transaction: Encodable, Sendable {
    package var transactionId: Identifier
    /// The other transaction IDs of the purchase.
    package var otherIds: [Identifier]
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
    package var isOwned: Bool
    /// The relation of the order to the transaction, as a sentence.
    package var standing: String
    /// The consequence if no order claims it.
    package var unclaimed: String?
    package var competitors: [Competitor]
    package var claims: [Claim]
    package var matching: [MatchingStep]
    package var evidence: [Statement]
  }

  /// An answer from Apple, or its absence.
  package struct Answer: Encodable, Sendable {
    package var asOf: Instant
    package var channel: String
    package var outcome: CheckOutcome
    package var reason: PaymentReason?
    package var environment: String?
    package var appleStatus: Int32?
    package var transactions: Int
  }

  /// A receipt, or the look-up of a transaction ID, with all answers.
  package struct Proof: Encodable, Sendable {
    package var subjectKind: String
    package var subjectId: Identifier
    /// nil for a look-up, like all properties that only receipts have.
    package var receivedAt: Instant?
    package var userId: Identifier?
    package var kind: ReceiptKind?
    package var claimedEnvironment: String?
    package var environment: AppleEnvironment?
    package var outcome: CheckOutcome
    package var reason: PaymentReason?
    /// True if the signer cannot be verified; nil if it can.
    package var isUnproven: Bool?
    /// The check of the signature or the content that failed.
    package var failedCheck: String?
    package var attempts: Int32
    package var lastAttempt: Instant?
    package var nextAttempt: Instant?
    package var defect: String?
    package var transactions: [TransactionKey]
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

  package struct Moment: Encodable, Sendable {
    package var at: Instant
    package var event: String
  }

  package var asOf: Instant
  /// True if an audit of this as-of judges orders of this age.
  package var isInLookback: Bool
  package var lookback: String
  package var order: Order
  package var disposition: Disposition
  package var dispositionBecause: String
  /// nil for an invalid row, about which nothing is decided.
  package var payment: String?
  package var paymentReason: PaymentReason?
  package var rules: [Rule]
  /// Findings about the order, its receipts, deliveries and unclaimed payments; open ones first.
  package var findings: [Finding]
  /// Kinds of findings that do not apply, each with its reason.
  package var considered: [DeclinedFinding]
  package var transactions: [Transaction]
  package var proofs: [Proof]
  package var deliveries: [Delivery]
  package var events: [Moment]
}

extension Instant: Encodable {
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
  /// Encodes the ID alone; the transaction's entry has the environment.
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
