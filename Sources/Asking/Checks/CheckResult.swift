import AppStore
import AuditStore
import Reconciliation

/// The result of asking about one receipt or transaction ID, ready to be stored.
package struct CheckResult: Sendable {
  /// The check without its payload, because results wait in memory until they are stored.
  package var check: CheckInProgress
  package var app: String?
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
    of check: CheckInProgress, _ outcome: CheckOutcome, _ reason: PaymentReason? = nil, channel: EvidenceChannel
  ) {
    self.check = check
    self.check.payload = nil
    (self.check.questions, self.check.answers) = ([], [])
    (self.outcome, self.reason, self.channel) = (outcome, reason, channel)
  }

  package var subject: CheckSubject { check.subject }

  func refusal(bundleIds: [String]) -> Refusal? {
    let expected = check.shop.bundleId.map { [$0] } ?? bundleIds
    return Refusal(
      outcome, reason: reason, provenBundleId: bundleId, expectedBundleIds: expected,
      provenIds: signedTransactionId == nil ? [] : containedIds.sorted(), namedId: check.shop.statedTransactionId,
      provenProductId: provenProductId ?? lookedUpProductId, orderedProductId: check.shop.productId)
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
    var parked = CheckResult(of: check, .review, .appleError, channel: channel)
    (parked.app, parked.isUnproven) = (app, isUnproven)
    return parked
  }
}
