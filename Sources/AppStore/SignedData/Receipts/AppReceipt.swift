import Reconciliation

/// A verified app receipt: every purchase that the device knew when Apple created it.
struct AppReceipt: Hashable, Sendable {
  /// Attribute 0. All its sandbox spellings map to the sandbox.
  let environment: AppleEnvironment
  /// Attribute 2.
  let bundleId: String
  /// Attribute 12. It dates the facts, because Apple states them as of then.
  let creationDate: Instant
  /// One fact per purchase with transaction ID and product ID, in the receipt's order, which has no meaning.
  let transactions: [TransactionFact]

  init(_ content: ReceiptContent) throws(SignedDataRefusal) {
    guard let name = content.environment else { throw .environmentUnknown(nil) }
    guard let environment = AppleEnvironment(receiptType: name) else { throw .environmentUnknown(name) }
    guard let bundleId = content.bundleId else { throw .payloadIncomplete("bundle identifier") }
    guard let creationDate = content.creationDate else { throw .payloadIncomplete("creation date") }
    (self.environment, self.bundleId, self.creationDate) = (environment, bundleId, creationDate)
    transactions = content.purchases.compactMap {
      TransactionFact($0, environment: environment, bundleId: bundleId, creationDate: creationDate)
    }
  }
}

extension AppleEnvironment {
  /// True for data that a developer's machine signed. It has its own chain, so it is recognized before its signature.
  var isOfDevelopers: Bool { self == .xcode || self == .localTesting }

  /// The environment that a type of receipt names; nil, never production, for a type that Apple does not document.
  init?(receiptType: String) {
    switch receiptType {
    case "Production", "ProductionVPP": self = .production
    case "ProductionSandbox", "ProductionVPPSandbox", "Sandbox": self = .sandbox
    case "Xcode": self = .xcode
    case "LocalTesting": self = .localTesting
    default: return nil
    }
  }
}

extension TransactionFact {
  /// Nil if the purchase lacks an ID.
  fileprivate init?(
    _ purchase: ReceiptPurchase, environment: AppleEnvironment, bundleId: String, creationDate: Instant
  ) {
    guard let transactionId = purchase.transactionId, let productId = purchase.productId else { return nil }
    self.init(
      environment: environment, transactionId: transactionId, productId: productId, channel: .offline,
      signedDate: creationDate)
    self.bundleId = bundleId
    originalTransactionId = purchase.originalTransactionId
    webOrderLineItemId = purchase.webOrderLineItemId.flatMap { $0 == 0 ? nil : String($0) }
    productType = purchase.productTypeCode.flatMap(ProductType.init(receiptCode:))
    quantity = purchase.quantity.flatMap { $0 > 0 ? Int32(exactly: $0) : nil }
    purchaseDate = purchase.purchaseDate
    originalPurchaseDate = purchase.originalPurchaseDate
    expiresDate = purchase.expiresDate
    // A missing cancellation date proves nothing: a receipt never shows the refund of a consumable.
    if let date = purchase.cancellationDate { revocation = .stated(Revocation(date: date)) }
    hasOffer = purchase.hasOffer
    details.offerIdentifier = purchase.promotionalOfferId
  }
}

extension ProductType {
  /// Attribute 1707, which Apple does not document.
  init?(receiptCode: Int64) {
    switch receiptCode {
    case 0: self = .nonConsumable
    case 1: self = .consumable
    case 2: self = .nonRenewing
    case 3: self = .autoRenewable
    default: return nil
    }
  }
}

extension ReceiptPurchase {
  // Never false, because an offer code or win-back offer has no field.
  fileprivate var hasOffer: Bool? { isTrial == 1 || isIntroductory == 1 || promotionalOfferId != nil ? true : nil }
}
