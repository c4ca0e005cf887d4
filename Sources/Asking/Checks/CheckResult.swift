import AppStore
import AuditStore
import Reconciliation

/// The result of asking about one receipt or transaction ID, ready to be stored.
package struct CheckResult: Sendable {
  package var context: CheckContext
  package var app: String?
  package var kind: ReceiptKind?
  /// `pending` marks facts that came before the answer is complete. The check stays due.
  package var outcome: CheckOutcome
  package var reason: PaymentReason?
  package var channel: EvidenceChannel
  package var environment: AppleEnvironment?
  package var bundleId: String?
  package var appleStatus: Int?
  package var signedTransactionId: String?
  package var facts: [TransactionFact] = []
  /// Further facts that Apple sent, which the proof does not contain.
  package var furtherFacts: [TransactionFact] = []
  package var isUnproven = false
  package var failedCheck: String?
  /// The number of transactions that the proof contains, with those stored before.
  package var containedCount = 0
  package var containedIds: Set<String> = []
  /// The product of the one transaction that the proof is about; nil for a list.
  package var provenProductId: String?
  /// When Apple made the statement, if before this run.
  package var answeredAt: Instant?
  /// A refusal of a proof that Apple signed or accepted before. It counts in its kind, but is no accusation.
  package var denial: Refusal?

  package init(
    context: CheckContext, kind: ReceiptKind?, outcome: CheckOutcome, reason: PaymentReason? = nil,
    channel: EvidenceChannel
  ) {
    self.context = context
    self.kind = kind
    self.outcome = outcome
    self.reason = reason
    self.channel = channel
  }

  package var subject: CheckSubject { context.row.subject }
  package var orderId: Identifier? { context.orderId }

  func refusal(bundleIds: [String]) -> Refusal? {
    let expected = context.bundleId.map { [$0] } ?? bundleIds
    return Refusal(
      outcome, reason: reason, provenBundleId: bundleId, expectedBundleIds: expected,
      provenIds: signedTransactionId == nil ? [] : containedIds.sorted(), namedId: context.statedTransactionId,
      provenProductId: provenProductId ?? lookedUpProductId, orderedProductId: context.productId)
  }

  /// The looked-up product; nil for a subscription's original, whose periods may have other products.
  private var lookedUpProductId: String? {
    guard subject.kind == .lookup else { return nil }
    let id = subject.lookedUp.transactionId
    let fact = facts.first { $0.transactionId == id }
    return fact?.expiresDate != nil && fact?.originalTransactionId == id ? nil : fact?.productId
  }

  /// A copy without values that cannot be stored. A person looks at it, and the next night asks again.
  var parked: CheckResult {
    var parked = CheckResult(
      context: context, kind: kind, outcome: .review, reason: .appleError, channel: channel)
    parked.app = app
    parked.appleStatus = nil
    parked.isUnproven = isUnproven
    return parked
  }
}
