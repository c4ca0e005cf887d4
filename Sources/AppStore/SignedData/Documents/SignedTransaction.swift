import Reconciliation

extension TransactionFact {
  /// Reads the payload of a signed transaction (Apple: `JWSTransactionDecodedPayload`).
  init(signed payload: JSONFields, channel: EvidenceChannel) throws(SignedDataRefusal) {
    guard let transactionId = payload.text("transactionId") else { throw .payloadIncomplete("transactionId") }
    guard let productId = payload.text("productId") else { throw .payloadIncomplete("productId") }
    // Required because otherwise another app's purchase would pass; Apple's own library requires it too.
    guard let bundleId = payload.text("bundleId") else { throw .payloadIncomplete("bundleId") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    self.init(
      environment: try AppleEnvironment(signedIn: payload), transactionId: transactionId, productId: productId,
      channel: channel, signedDate: signedDate)
    originalTransactionId = payload.text("originalTransactionId")
    webOrderLineItemId = payload.text("webOrderLineItemId")
    self.bundleId = bundleId
    productType = payload.text("type").flatMap(ProductType.init(rawValue:))
    quantity = payload.integer32("quantity").flatMap { $0 > 0 ? $0 : nil }
    purchaseDate = try payload.optionalDate("purchaseDate")
    originalPurchaseDate = try payload.optionalDate("originalPurchaseDate")
    expiresDate = try payload.optionalDate("expiresDate")
    revocation = .stated(try payload.revocation())
    priceMilliunits = payload.integer("price")
    currency = payload.text("currency")
    appAccountToken = .stated(payload.text("appAccountToken"))
    ownership = payload.text("inAppOwnershipType").flatMap(Ownership.init(rawValue:))
    // Apple sends the reason since 2023-06; without it, a restore looks like a purchase.
    isRenewal = payload.text("transactionReason").map { $0 == "RENEWAL" }
    offerPeriod = payload.text("offerPeriod")
    hasOffer = payload.has("offerType") || payload.has("offerDiscountType") || offerPeriod != nil
    isUpgraded = payload.flag("isUpgraded")
    details = TransactionDetails(payload)
    if let items = payload.advancedCommerceProducts { self.productId = items }
    takeBundle(payload)
  }

  mutating func take(_ renewal: SignedRenewalInfo) {
    gracePeriodExpiresDate = renewal.gracePeriodExpiresDate
    renewalDate = renewal.renewalDate
    renewalPriceMilliunits = renewal.renewalPriceMilliunits
    renewalCurrency = renewal.currency
  }

  /// Records a part of a subscription bundle under the product and IDs of the bundle, so that all parts are one purchase.
  /// StoreKit names the fields with `ID`. The server's names are not published, so `Id` is read too.
  fileprivate mutating func takeBundle(_ payload: JSONFields) {
    func bundle(_ name: String) -> String? { payload.text("bundle\(name)ID") ?? payload.text("bundle\(name)Id") }
    guard let product = bundle("Product"), let transaction = bundle("Transaction") else { return }
    productId = product
    originalTransactionId = bundle("OriginalTransaction") ?? transaction
    webOrderLineItemId = transaction
    details.subscriptionGroupIdentifier = bundle("SubscriptionGroup") ?? details.subscriptionGroupIdentifier
    // Apple does not state whether the price, even 0, is that of the part or of the bundle.
    priceMilliunits = nil
  }
}

extension JSONFields {
  /// Reads a date that a document need not have. An unreadable one is thrown, because it is not a missing one.
  func optionalDate(_ name: String) throws(SignedDataRefusal) -> Instant? {
    guard has(name) else { return nil }
    guard let date = instant(name) else { throw .payloadIncomplete("a readable \(name)") }
    return date
  }

  /// The SKUs of the items of an Advanced Commerce purchase, sorted, with commas; nil for other purchases. `productId` is generic.
  fileprivate var advancedCommerceProducts: String? {
    let items = object("advancedCommerceInfo")?.objects("items") ?? []
    return plainText(items.compactMap { $0.text("SKU") }.sorted().joined(separator: ","))
  }
}

extension TransactionDetails {
  fileprivate init(_ payload: JSONFields) {
    self.init()
    storefront = payload.text("storefront") ?? payload.text("storefrontId")
    appTransactionId = payload.text("appTransactionId")
    offerType = payload.integer32("offerType")
    offerIdentifier = payload.text("offerIdentifier")
    subscriptionGroupIdentifier = payload.text("subscriptionGroupIdentifier")
    commitmentInfo = payload.json("commitmentInfo")
    billingPlanType = payload.text("billingPlanType")
    previousOriginalTransactionId = payload.text("previousOriginalTransactionId")
  }
}

extension AppleEnvironment {
  init(signedIn payload: JSONFields) throws(SignedDataRefusal) {
    guard let name = payload.text("environment") else { throw .payloadIncomplete("environment") }
    guard let environment = AppleEnvironment(rawValue: name) else { throw .environmentUnknown(name) }
    self = environment
  }
}
