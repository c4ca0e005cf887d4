import Reconciliation

/// A verified transaction (Apple: `JWSTransactionDecodedPayload`).
package struct SignedTransaction: Hashable, Sendable {
  package internal(set) var fact: TransactionFact
  package let validity: ValidityMode
  /// Apple's product type, also one unknown to `fact.productType`.
  package let type: String?
  /// `PURCHASE`, `RENEWAL`, or a newer word.
  package let transactionReason: String?
  /// Apple's ownership type, also one unknown to `fact.ownership`.
  package let inAppOwnershipType: String?
  /// `FREE_TRIAL`, `PAY_AS_YOU_GO`, `PAY_UP_FRONT`, `ONE_TIME`, or a newer word.
  package let offerDiscountType: String?

  init(_ payload: JSONFields, channel: EvidenceChannel) throws(SignedDataRefusal) {
    guard let transactionId = payload.text("transactionId") else { throw .payloadIncomplete("transactionId") }
    guard let productId = payload.text("productId") else { throw .payloadIncomplete("productId") }
    // Required because otherwise another app's purchase would pass; Apple's own library requires it too.
    guard let bundleId = payload.text("bundleId") else { throw .payloadIncomplete("bundleId") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    let environment = try AppleEnvironment(signedIn: payload)

    type = payload.text("type")
    transactionReason = payload.text("transactionReason")
    inAppOwnershipType = payload.text("inAppOwnershipType")
    offerDiscountType = payload.text("offerDiscountType")
    validity = .atSignedDate

    var fact = TransactionFact(
      environment: environment, transactionId: transactionId, productId: productId, channel: channel,
      signedDate: signedDate)
    fact.originalTransactionId = payload.text("originalTransactionId")
    fact.webOrderLineItemId = payload.text("webOrderLineItemId")
    fact.bundleId = bundleId
    fact.productType = type.flatMap(ProductType.init(rawValue:))
    fact.quantity = payload.integer32("quantity").flatMap { $0 > 0 ? $0 : nil }
    fact.purchaseDate = payload.instant("purchaseDate")
    fact.originalPurchaseDate = payload.instant("originalPurchaseDate")
    fact.expiresDate = payload.instant("expiresDate")
    fact.revocation = payload.revocation
    fact.priceMilliunits = payload.integer("price")
    fact.currency = payload.text("currency")
    fact.appAccountToken = .says(payload.text("appAccountToken"))
    fact.ownership = inAppOwnershipType.flatMap(Ownership.init(rawValue:))
    // Apple sends the reason since 2023-06; without it, a restore looks like a purchase.
    fact.isRenewal = transactionReason.map { $0 == "RENEWAL" }
    fact.hasOffer = payload.has("offerType") || payload.has("offerDiscountType")
    fact.isUpgraded = payload.flag("isUpgraded")
    fact.details = TransactionDetails(payload)
    self.fact = fact
  }
}

extension TransactionDetails {
  fileprivate init(_ payload: JSONFields) {
    self.init()
    storefront = payload.text("storefront")
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
  /// Reads the `environment` field of a verified payload.
  init(signedIn payload: JSONFields) throws(SignedDataRefusal) {
    guard let name = payload.text("environment") else { throw .payloadIncomplete("environment") }
    guard let environment = AppleEnvironment(rawValue: name) else { throw .environmentUnknown(name) }
    self = environment
  }
}
