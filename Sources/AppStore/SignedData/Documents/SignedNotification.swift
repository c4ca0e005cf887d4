import Reconciliation

/// A verified notification with the state when it was sent (Apple: `responseBodyV2DecodedPayload`).
package struct SignedNotification: Hashable, Sendable {
  package let notificationType: String
  package let subtype: String?
  /// The ID, which repeated deliveries share.
  package let notificationUUID: String
  /// Apple's signing date. It gives the order, because notifications arrive late and out of order.
  package let signedDate: Instant
  /// From `data`; nil in notifications without it, such as summaries.
  package let bundleId: String?
  package let environment: AppleEnvironment?
  /// From `data`; Apple omits it in the sandbox.
  package let appAppleId: Int64?
  package let transaction: Result<TransactionFact, SignedDataRefusal>?

  init(
    _ payload: JSONFields, transaction: Result<TransactionFact, SignedDataRefusal>?,
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
    let status = data?.integer32("status").flatMap(SubscriptionState.init(rawValue:))
    let renewal = try? renewalInfo?.get()
    // The notification's own fields concern the transaction in it.
    self.transaction = transaction?.map { fact in
      var fact = fact
      SweptType(rawValue: type)?.amend(&fact, data)
      guard let renewal, renewal.environment == fact.environment,
        renewal.originalTransactionId == fact.originalTransactionId
      else { return fact }
      fact.take(renewal)
      fact.subscriptionStatus = status
      return fact
    }
  }
}
