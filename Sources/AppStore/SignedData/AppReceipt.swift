import Reconciliation

/// An app receipt whose signature was verified: every purchase that the device knew of when Apple made it.
package struct AppReceipt: Hashable, Sendable {
  /// Attribute 0, whose sandbox spellings all mean the sandbox.
  package let environment: AppleEnvironment
  /// Attribute 2.
  package let bundleId: String
  /// Attribute 12: when Apple made it. Facts are dated by it, because it is when Apple said them.
  package let creationDate: Instant
  /// One for each purchase, in the receipt's own order, which means nothing.
  package let transactions: [TransactionFact]
  /// Purchases that lack their transaction id or product id; they are no facts.
  package let incompletePurchases: Int
  /// At which instant the certificates were judged.
  package let validity: ValidityMode

  /// Gives a receipt whose signature holds its meaning.
  init(_ content: ReceiptContent) throws(SignedDataRefusal) {
    guard let name = content.environment else { throw .environmentUnknown(nil) }
    guard let environment = AppleEnvironment(receiptType: name) else { throw .environmentUnknown(name) }
    guard let bundleId = content.bundleId else { throw .payloadIncomplete("bundle identifier") }
    guard let creationDate = content.creationDate else { throw .payloadIncomplete("creation date") }
    self.environment = environment
    self.bundleId = bundleId
    self.creationDate = creationDate
    transactions = content.purchases.compactMap {
      TransactionFact($0, environment: environment, bundleId: bundleId, creationDate: creationDate)
    }
    incompletePurchases = content.purchases.count - transactions.count
    validity = .atCreationDate
  }
}

extension AppleEnvironment {
  /// The environment that an app receipt or verifyReceipt's `receipt_type` names.
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
  /// A purchase of an app receipt; nil without its ids.
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
    // Without a cancellation date it may be a consumable, for which receipts never tell.
    if let date = purchase.cancellationDate { revocation = .says(Revocation(date: date)) }
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
  /// True, or nil: an offer code or a win-back has no field.
  fileprivate var hasOffer: Bool? { isTrial == 1 || isIntroductory == 1 || promotionalOfferId != nil ? true : nil }
}
