import Reconciliation

/// What a receipt says in itself, whoever signed it.
///
/// It is no evidence. But Apple's word that a receipt is genuine is about all of it, so that an answer which says otherwise
/// is the answer to another receipt.
package struct WrittenContent: Hashable, Sendable {
  /// What is listed under one transaction id.
  package struct Purchase: Hashable, Sendable {
    package var productId: String
    /// Whether it stays in every later receipt: consumables disappear, and what a renewal replaced may be left out.
    package var isLasting: Bool

    package init(productId: String, isLasting: Bool) {
      self.productId = productId
      self.isLasting = isLasting
    }
  }

  package var environment: AppleEnvironment?
  package var bundleId: String?
  /// When Apple made the app receipt; the same each time it is asked about.
  package var creationDate: Instant?
  /// The transaction that it is, where it is of one purchase.
  package var ownTransactionId: String?
  /// By transaction id.
  package var purchases: [String: Purchase] = [:]

  package init(environment: AppleEnvironment? = nil, bundleId: String? = nil) {
    self.environment = environment
    self.bundleId = bundleId
  }

  /// An app receipt's, whose signature nobody judges; nil where it cannot be read.
  init?(app bytes: [UInt8]) {
    guard let content = try? ReceiptContent(ReceiptContainer(bytes).content) else { return nil }
    self.init(content)
  }

  init(_ content: ReceiptContent) {
    self.init(
      environment: content.environment.flatMap(AppleEnvironment.init(receiptType:)), bundleId: content.bundleId)
    creationDate = content.creationDate
    for purchase in content.purchases {
      guard let id = purchase.transactionId, let productId = purchase.productId else { continue }
      let isLasting = purchase.productTypeCode.flatMap(ProductType.init(receiptCode:)) == .nonConsumable
      purchases[id] = Purchase(productId: productId, isLasting: isLasting)
    }
  }

  /// An old receipt's. Where it is from only its outer list says, which nobody signs.
  init(_ receipt: OldTransactionReceipt) {
    self.init(bundleId: receipt.bundleId)
    ownTransactionId = receipt.transactionId
    purchases[receipt.transactionId] = Purchase(productId: receipt.productId, isLasting: false)
  }

  /// What Apple signed.
  package init(_ proof: GenuineProof) {
    self.init(environment: proof.environment, bundleId: proof.bundleId)
    creationDate = proof.creationDate
    ownTransactionId = proof.signedTransactionId
    for fact in proof.facts {
      purchases[fact.transactionId] = Purchase(
        productId: fact.productId, isLasting: fact.productType == .nonConsumable)
    }
  }
}
