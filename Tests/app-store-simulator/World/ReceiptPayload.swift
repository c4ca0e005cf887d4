import Foundation

/// Receipts in the format of clients.
enum ReceiptPayload {
  /// An unsigned app receipt in base64. A PKCS#7 ContentInfo with SignedData in DER (RFC 2315, 7 and 9.1).
  static func app(content: [UInt8]) -> String {
    let data = DER.sequence(DER.contentType(1), DER.context(0, DER.octets(content)))
    let signedData = DER.sequence(DER.integer(1), DER.set([]), data, DER.set([]))
    return Data(DER.sequence(DER.contentType(2), DER.context(0, signedData))).base64EncodedString()
  }

  /// An old transaction receipt (iOS 6): base64 of a text property list, whose `purchase-info` is another one.
  ///
  /// The signature is a placeholder, because only Apple verifies such receipts. It distinguishes two receipts of one
  /// purchase.
  static func transaction(_ transaction: World.Transaction, signature: [UInt8] = [2]) -> String {
    var entries = [
      ("original-transaction-id", transaction.originalId), ("transaction-id", transaction.transactionId),
      ("product-id", transaction.productId), ("quantity", "\(transaction.quantity ?? 1)"),
      ("bid", transaction.bundleId), ("purchase-date-ms", "\(transaction.purchaseDate)"),
      ("original-purchase-date-ms", "\(transaction.originalPurchaseDate ?? transaction.purchaseDate)"), ("bvrs", "1"),
    ]
    if let expiry = transaction.expiresDate { entries.append(("expires-date", "\(expiry)")) }
    let information = Data(list(entries).utf8)
    let receipt = list([
      ("signature", Data(signature).base64EncodedString()),
      ("purchase-info", information.base64EncodedString()), ("environment", transaction.environment.rawValue),
      ("pod", "17"), ("signing-status", "0"),
    ])
    return Data(receipt.utf8).base64EncodedString()
  }

  private static func list(_ entries: [(name: String, value: String)]) -> String {
    "{\n" + entries.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "}"
  }
}
