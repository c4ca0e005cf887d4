import Reconciliation

/// The content of a receipt, verified or not. It is no evidence, but an answer that contradicts it belongs to another
/// receipt.
package struct WrittenContent: Hashable, Sendable {
  package struct Purchase: Hashable, Sendable {
    package var productId: String
    /// True if the purchase stays in every later receipt. Consumables disappear, and replaced renewals may be left out.
    package var staysInLaterReceipts: Bool
  }

  package var environment: AppleEnvironment?
  package var bundleId: String?
  /// Apple's creation date of the app receipt; the same in every look-up of it.
  package var creationDate: Instant?
  /// The transaction ID of a receipt of one purchase.
  package var ownTransactionId: String?
  package var purchases: [String: Purchase] = [:]

  package init(environment: AppleEnvironment? = nil, bundleId: String? = nil) {
    (self.environment, self.bundleId) = (environment, bundleId)
  }

  init?(app bytes: [UInt8]) {
    guard let content = try? ReceiptContent(ReceiptContainer(bytes).content) else { return nil }
    self.init(content)
  }

  init(_ content: ReceiptContent) {
    self.init(environment: content.environment.flatMap(AppleEnvironment.init(receiptType:)), bundleId: content.bundleId)
    creationDate = content.creationDate
    for purchase in content.purchases {
      guard let id = purchase.transactionId, let productId = purchase.productId else { continue }
      let staysInLaterReceipts = purchase.productTypeCode.flatMap(ProductType.init(receiptCode:)) == .nonConsumable
      purchases[id] = Purchase(productId: productId, staysInLaterReceipts: staysInLaterReceipts)
    }
  }

  /// Reads an old receipt. Its environment stays nil because only the unsigned outer list states it.
  init(_ receipt: OldTransactionReceipt) {
    self.init(bundleId: receipt.bundleId)
    ownTransactionId = receipt.transactionId
    purchases[receipt.transactionId] = Purchase(productId: receipt.productId, staysInLaterReceipts: false)
  }

  package init(_ proof: GenuineProof) {
    self.init(environment: proof.environment, bundleId: proof.bundleId)
    creationDate = proof.creationDate
    ownTransactionId = proof.signedTransactionId
    for fact in proof.facts {
      purchases[fact.transactionId] = Purchase(
        productId: fact.productId, staysInLaterReceipts: fact.productType == .nonConsumable)
    }
  }
}
