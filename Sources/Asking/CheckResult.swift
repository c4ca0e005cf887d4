import AppStore
import AuditStore
import Reconciliation

/// What asking about one receipt or transaction id came to, ready to be stored. When it is asked about again the rule of
/// dueness says.
package struct CheckResult: Sendable {
  /// The check as it was when it was taken from the queue.
  package var context: CheckContext
  /// The app that was asked, by its name in the configuration.
  package var app: String?
  package var kind: ReceiptKind?
  /// `pending`: facts that came before the answer is complete. The check stays as due as it was.
  package var outcome: CheckOutcome
  package var reason: PaymentReason?
  package var channel: EvidenceChannel
  package var environment: AppleEnvironment?
  package var bundleId: String?
  package var appleStatus: Int?
  package var signedTransactionId: String?
  package var facts: [TransactionFact] = []
  /// What Apple told besides, which the proof does not bring.
  package var told: [TransactionFact] = []
  /// As ``ProofState/isUnproven``.
  package var isUnproven = false
  /// The check of the signature or the content that failed.
  package var failedCheck: String?
  /// How many transactions it brings, those included that were stored before.
  package var broughtCount = 0
  /// Those transactions, by their own and their original ids.
  package var broughtIds: Set<String> = []
  /// The product of the one transaction that the proof is about; nil for a list.
  package var provenProductId: String?
  /// When Apple said it, if that was before this run; nil for now.
  package var answeredAt: Instant?
  /// What Apple refused although it has signed it, or accepted it before. Accuses nobody, and counts among the refusals of its
  /// kind.
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

  /// What was refused, when that accuses a customer.
  ///
  /// - Parameter bundleIds: the configured apps.
  func refusal(bundleIds: [String]) -> Refusal? {
    let expected = context.bundleId.map { [$0] } ?? bundleIds
    return Refusal(
      outcome, reason: reason, provenBundleId: bundleId, expectedBundleIds: expected,
      provenIds: signedTransactionId == nil ? [] : broughtIds.sorted(), namedId: context.namedTransactionId,
      provenProductId: provenProductId ?? lookedUpProductId, orderedProductId: context.productId)
  }

  /// The product of the transaction that was looked up; nil for a subscription's original, which has periods of other products.
  private var lookedUpProductId: String? {
    guard subject.kind == .lookup else { return nil }
    let id = subject.lookedUp.transactionId
    let fact = facts.first { $0.transactionId == id }
    return fact?.expiresDate != nil && fact?.originalTransactionId == id ? nil : fact?.productId
  }

  /// The same without what could not be stored: for a person to look at, and asked about again the next night.
  var parked: CheckResult {
    var parked = CheckResult(
      context: context, kind: kind, outcome: .review, reason: .appleError, channel: channel)
    parked.app = app
    parked.appleStatus = nil
    parked.isUnproven = isUnproven
    return parked
  }
}
