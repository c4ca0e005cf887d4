import Reconciliation

/// A notification whose signature was verified (Apple: `responseBodyV2DecodedPayload`): the state when it was sent.
package struct SignedNotification: Hashable, Sendable {
  /// Apple's word, `REFUND` for instance; unknown ones are kept as they are.
  package let notificationType: String
  /// Apple's word for the special case, `UPGRADE` for instance.
  package let subtype: String?
  /// Names the notification: repeated deliveries bear the same one.
  package let notificationUUID: String
  /// When Apple signed it. Notifications come late and out of order: this orders them.
  package let signedDate: Instant
  /// Of `data`; nil in notifications of another shape, summaries for instance.
  package let bundleId: String?
  /// Of `data`; nil in notifications of another shape.
  package let environment: AppleEnvironment?
  /// Of `data`; Apple leaves it out in the sandbox.
  package let appAppleId: Int64?
  /// Apple's `status` of the subscription at that time; nil where there is none, or one that is unknown here.
  package let status: SubscriptionState?
  /// Why the customer wants the money back, in a `CONSUMPTION_REQUEST`: `FULFILLMENT_ISSUE` is the customer's own word for
  /// "paid, not delivered".
  package let consumptionRequestReason: String?
  /// The transaction within, or why it is not to be believed; nil when there is none.
  package let transaction: Result<SignedTransaction, SignedDataRefusal>?
  /// The renewal information within, or why it is not to be believed; nil when there is none.
  package let renewalInfo: Result<SignedRenewalInfo, SignedDataRefusal>?

  /// Reads a payload whose signature holds, beside the verified documents within it.
  init(
    _ payload: JSONFields, transaction: Result<SignedTransaction, SignedDataRefusal>?,
    renewalInfo: Result<SignedRenewalInfo, SignedDataRefusal>?
  ) throws(SignedDataRefusal) {
    guard let type = payload.text("notificationType") else { throw .payloadIncomplete("notificationType") }
    guard let uuid = payload.text("notificationUUID") else { throw .payloadIncomplete("notificationUUID") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    notificationType = type
    notificationUUID = uuid
    self.signedDate = signedDate
    subtype = payload.text("subtype")
    let data = payload.object("data")
    bundleId = data?.text("bundleId")
    if let data { environment = try AppleEnvironment(signedIn: data) } else { environment = nil }
    appAppleId = data?.integer("appAppleId")
    status = data?.integer32("status").flatMap(SubscriptionState.init(rawValue:))
    consumptionRequestReason = data?.text("consumptionRequestReason")
    let renewal = try? renewalInfo?.get()
    // What the notification says beside the transaction is said about it.
    self.transaction = transaction?.map { transaction in
      var transaction = transaction
      transaction.fact.consumptionRequestReason = data?.text("consumptionRequestReason")
      transaction.fact.reversesRefund = type == "REFUND_REVERSED"
      guard let renewal, renewal.environment == transaction.fact.environment,
        renewal.originalTransactionId == transaction.fact.originalTransactionId
      else { return transaction }
      transaction.fact.gracePeriodExpiresDate = renewal.gracePeriodExpiresDate
      transaction.fact.renewalDate = renewal.renewalDate
      transaction.fact.subscriptionStatus = data?.integer32("status").flatMap(SubscriptionState.init(rawValue:))
      return transaction
    }
    self.renewalInfo = renewalInfo
  }
}
