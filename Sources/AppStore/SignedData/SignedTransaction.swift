import Reconciliation

/// A transaction whose signature was verified (Apple: `JWSTransactionDecodedPayload`).
package struct SignedTransaction: Hashable, Sendable {
  /// What it says, as evidence. Its `signedDate` is the payload's.
  package let fact: TransactionFact
  /// At which instant the certificates were judged.
  package let validity: ValidityMode
  /// Apple's word for the product type, whether or not `fact.productType` knows it.
  package let type: String?
  /// The three letters of the storefront's country.
  package let storefront: String?
  /// `PURCHASE`, `RENEWAL`, or a newer word.
  package let transactionReason: String?
  /// Apple's word for the ownership, whether or not `fact.ownership` knows it.
  package let inAppOwnershipType: String?
  /// 1 introductory, 2 promotional, 3 offer code, 4 win-back.
  package let offerType: Int32?
  /// The offer's name, as it was set up in App Store Connect.
  package let offerIdentifier: String?
  /// `FREE_TRIAL`, `PAY_AS_YOU_GO`, `PAY_UP_FRONT`, `ONE_TIME`, or a newer word.
  package let offerDiscountType: String?

  /// Reads a payload whose signature holds and whose `signedDate` was judged.
  init(_ payload: SignedJSON, channel: EvidenceChannel) throws(SignedDataRefusal) {
    guard let transactionId = payload.text("transactionId") else { throw .payloadIncomplete("transactionId") }
    guard let productId = payload.text("productId") else { throw .payloadIncomplete("productId") }
    guard let signedDate = payload.instant("signedDate") else { throw .payloadIncomplete("signedDate") }
    let environment = try AppleEnvironment(signedIn: payload)

    type = payload.text("type")
    storefront = payload.text("storefront")
    transactionReason = payload.text("transactionReason")
    inAppOwnershipType = payload.text("inAppOwnershipType")
    offerType = payload.integer32("offerType")
    offerIdentifier = payload.text("offerIdentifier")
    offerDiscountType = payload.text("offerDiscountType")
    validity = .atSignedDate

    var fact = TransactionFact(
      environment: environment, transactionId: transactionId, productId: productId, channel: channel,
      signedDate: signedDate)
    fact.originalTransactionId = payload.text("originalTransactionId")
    fact.webOrderLineItemId = payload.text("webOrderLineItemId")
    fact.bundleId = payload.text("bundleId")
    fact.productType = type.flatMap(ProductType.init(rawValue:))
    fact.quantity = payload.integer32("quantity")
    fact.purchaseDate = payload.instant("purchaseDate")
    fact.originalPurchaseDate = payload.instant("originalPurchaseDate")
    fact.expiresDate = payload.instant("expiresDate")
    fact.revocation = Self.revocation(payload)
    fact.priceMilliunits = payload.integer("price")
    fact.currency = payload.text("currency")
    fact.appAccountToken = .says(payload.text("appAccountToken"))
    fact.ownership = inAppOwnershipType.flatMap(Ownership.init(rawValue:))
    fact.isRenewal = transactionReason.map { $0 == "RENEWAL" }
    fact.hasOffer = payload.has("offerType") || payload.has("offerDiscountType")
    fact.isUpgraded = payload.flag("isUpgraded")
    self.fact = fact
  }

  /// A signed transaction without a revocation date says that it is not revoked; with an unreadable one it says nothing.
  private static func revocation(_ payload: SignedJSON) -> Statement<Revocation?> {
    guard payload.has("revocationDate") else { return .says(nil) }
    guard let date = payload.instant("revocationDate") else { return .silent }
    return .says(
      Revocation(
        date: date, percentage: payload.integer32("revocationPercentage"), type: payload.text("revocationType"),
        reason: payload.integer32("revocationReason")))
  }
}

extension AppleEnvironment {
  /// The `environment` field of a payload whose signature holds.
  init(signedIn payload: SignedJSON) throws(SignedDataRefusal) {
    guard let name = payload.text("environment") else { throw .payloadIncomplete("environment") }
    guard let environment = AppleEnvironment(rawValue: name) else { throw .environmentUnknown(name) }
    self = environment
  }
}
