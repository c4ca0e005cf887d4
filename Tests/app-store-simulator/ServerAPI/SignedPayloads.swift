struct SignedPayloads: Sendable {
  var authority: SigningAuthority
  var signedDate: Int64
  var horizon: Int64

  /// A signed `JWSTransactionDecodedPayload`.
  func transaction(_ transaction: World.Transaction) throws -> String {
    let transaction = transaction.changed(by: horizon)
    var payload: [String: Any] = [
      "transactionId": transaction.transactionId, "originalTransactionId": transaction.originalId,
      "bundleId": transaction.bundleId, "productId": transaction.productId, "type": transaction.type.rawValue,
      "quantity": transaction.quantity ?? 1, "purchaseDate": transaction.purchaseDate,
      "originalPurchaseDate": transaction.originalPurchaseDate ?? transaction.purchaseDate, "signedDate": signedDate,
      "environment": transaction.environment.rawValue,
      "inAppOwnershipType": transaction.inAppOwnershipType ?? "PURCHASED",
      "transactionReason": transaction.isRenewal ? "RENEWAL" : "PURCHASE",
      "storefront": transaction.storefront ?? "USA", "storefrontId": transaction.storefrontId ?? "143441",
    ]
    let optional: [String: Any?] = [
      "expiresDate": transaction.expiresDate, "webOrderLineItemId": transaction.webOrderLineItemId,
      "appAccountToken": transaction.appAccountToken, "price": transaction.price, "currency": transaction.currency,
      "appTransactionId": transaction.appTransactionId, "billingPlanType": transaction.billingPlanType,
      "previousOriginalTransactionId": transaction.previousOriginalTransactionId,
      "commitmentInfo": transaction.commitmentInfo?.value,
      "advancedCommerceInfo": transaction.advancedCommerceInfo?.value, "bundleProductID": transaction.bundleProductID,
      "bundleTransactionID": transaction.bundleTransactionID,
      "bundleOriginalTransactionID": transaction.bundleOriginalTransactionID,
    ]
    payload.merge(optional.compactMapValues { $0 }) { $1 }
    if transaction.isUpgraded == true { payload["isUpgraded"] = true }
    if transaction.type == .autoRenewable {
      payload["subscriptionGroupIdentifier"] = transaction.groupIdentifier
    }
    if let offer = offer(transaction) {
      payload["offerType"] = offer
      payload["offerIdentifier"] = transaction.offerIdentifier
      payload["offerPeriod"] = transaction.offerPeriod
      payload["offerDiscountType"] =
        transaction.offerDiscountType ?? (transaction.isTrialPeriod == true ? "FREE_TRIAL" : nil)
    }
    if transaction.isRevoked(by: horizon) {
      payload["revocationDate"] = transaction.statedRevocationDate(at: horizon)
      payload["revocationReason"] = transaction.revocationReason ?? 0
      payload["revocationType"] = transaction.revocationType
      payload["revocationPercentage"] = transaction.revocationPercentage
    }
    for name in transaction.omit ?? [] { payload[name] = nil }
    return try authority.sign(payload)
  }

  /// A signed `JWSRenewalInfoDecodedPayload`.
  func renewalInfo(_ transaction: World.Transaction) throws -> String {
    let transaction = transaction.changed(by: horizon)
    var payload: [String: Any] = [
      "originalTransactionId": transaction.originalId, "productId": transaction.productId,
      "autoRenewProductId": transaction.productId, "environment": transaction.environment.rawValue,
      "signedDate": signedDate, "autoRenewStatus": transaction.state(at: signedDate) == 1 ? 1 : 0,
    ]
    payload["renewalDate"] = transaction.renewalDate ?? transaction.expiresDate
    payload["renewalPrice"] = transaction.renewalPrice
    payload["currency"] = transaction.currency
    payload["isInBillingRetryPeriod"] = transaction.isInBillingRetryPeriod
    payload["gracePeriodExpiresDate"] = transaction.gracePeriodExpiresDate
    return try authority.sign(payload)
  }

  /// A signed `responseBodyV2DecodedPayload` with the state at the time of the notification.
  func notification(_ item: NotificationFeed.Item, in world: World) throws -> String {
    var data: [String: Any] = ["bundleVersion": "1", "environment": item.environment.rawValue]
    data["bundleId"] = item.bundleId
    let app = item.bundleId.flatMap { world.app(bundleId: $0) }
    if item.environment == .production { data["appAppleId"] = app?.appAppleId }
    data["consumptionRequestReason"] =
      item.type == "CONSUMPTION_REQUEST" ? item.transaction?.consumptionRequestReason : nil
    if let transaction = item.transaction {
      data["signedTransactionInfo"] = try self.transaction(transaction)
      if transaction.type == .autoRenewable {
        // Of the whole subscription, also in a notification about a past period.
        let newest = world.newestPeriod(of: transaction, by: horizon)
        data["status"] = newest.state(at: signedDate)
        data["signedRenewalInfo"] = try renewalInfo(newest)
      }
    }
    var payload: [String: Any] = [
      "notificationType": item.type, "notificationUUID": item.uuid, "version": "2.0", "signedDate": signedDate,
      "data": data,
    ]
    payload["subtype"] = item.subtype
    return try authority.sign(payload)
  }

  private func offer(_ transaction: World.Transaction) -> Int? {
    transaction.offerType ?? (transaction.isTrialPeriod == true ? 1 : nil)
  }
}

extension World.Transaction {
  var groupIdentifier: String { subscriptionGroupIdentifier ?? productId }

  /// Apple's `status`: 1 active, 2 expired, 3 billing retry, 4 grace period, 5 revoked.
  func state(at moment: Int64) -> Int {
    if let subscriptionStatus { return subscriptionStatus }
    if isRevoked(by: moment) { return 5 }
    if let expiresDate, expiresDate > moment { return 1 }
    if let gracePeriodExpiresDate, gracePeriodExpiresDate > moment { return 4 }
    return isInBillingRetryPeriod == true ? 3 : 2
  }
}
