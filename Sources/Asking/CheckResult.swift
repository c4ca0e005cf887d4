import AppStore
import AuditStore
import Reconciliation

/// What asking about one receipt or transaction id came to, ready to be stored.
package struct CheckResult: Sendable {
  /// When it is asked about again.
  package enum Next: String, Sendable {
    /// When it is stale.
    case never
    /// As the retry schedule has it: nobody answered.
    case bySchedule = "schedule"
    /// It was answered, and the answer can still change.
    case nextNight = "night"
  }

  package var subject: CheckSubject
  package var orderId: Identifier?
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
  /// How many transactions it brings, those included that were stored before.
  package var broughtCount = 0
  package var next = Next.never
  /// When Apple said it, if that was before this run; nil for now.
  package var answeredAt: Instant?

  package init(
    subject: CheckSubject, orderId: Identifier?, kind: ReceiptKind?, outcome: CheckOutcome,
    reason: PaymentReason? = nil,
    channel: EvidenceChannel
  ) {
    self.subject = subject
    self.orderId = orderId
    self.kind = kind
    self.outcome = outcome
    self.reason = reason
    self.channel = channel
    if outcome == .unanswered { next = .bySchedule }
  }
}
