import Reconciliation

/// What asking about one receipt or transaction id came to, ready to be stored.
package struct CheckResult: Sendable {
  package var subject: CheckSubject
  package var orderId: Identifier?
  package var kind: ReceiptKind?
  package var outcome: CheckOutcome
  package var reason: PaymentReason?
  package var channel: EvidenceChannel
  package var environment: AppleEnvironment?
  package var bundleId: String?
  package var appleStatus: Int?
  package var signedTransactionId: String?
  package var facts: [TransactionFact] = []

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
  }
}

/// One thing that is due to be asked about, leased to this run.
package struct DueCheck: Sendable {
  package var subject: CheckSubject
  package var orderId: Identifier?
  /// The app that the order names; nil for the only app.
  package var bundleId: String?
  /// Where an earlier answer found it; saves a request.
  package var environment: AppleEnvironment?
  /// The receipt as the client sent it. Never logged.
  package var payload: String
}
