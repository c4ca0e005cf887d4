import Foundation

/// Receipts as clients send them: the form of Apple's, without Apple's signature.
enum ReceiptPayload {
  /// An app receipt: base64 of a PKCS#7 ContentInfo with SignedData in DER (RFC 2315, 7 and 9.1).
  static func app(content: [UInt8]) -> String {
    let data = element(0x30, identifier(lastArc: 1) + element(0xA0, element(0x04, content)))
    let signedData = element(0x30, element(0x02, [1]) + element(0x31, []) + data + element(0x31, []))
    let contentInfo = element(0x30, identifier(lastArc: 2) + element(0xA0, signedData))
    return Data(contentInfo).base64EncodedString()
  }

  /// An old transaction receipt: base64 of a text property list whose `purchase-info` is one in turn (as iOS 6 made it).
  static func transaction(_ transaction: SampleTransaction, signature: [UInt8]) -> String {
    let purchaseInfo = list([
      ("original-transaction-id", transaction.originalTransactionId), ("transaction-id", transaction.transactionId),
      ("product-id", transaction.productId), ("quantity", "\(transaction.quantity)"), ("bid", transaction.bundleId),
      ("purchase-date-ms", "\(transaction.purchaseDate)"),
      ("original-purchase-date-ms", "\(transaction.originalPurchaseDate)"), ("bvrs", "1"),
    ])
    let receipt = list([
      ("signature", Data(signature).base64EncodedString()),
      ("purchase-info", Data(purchaseInfo.utf8).base64EncodedString()),
      ("environment", transaction.environment.rawValue), ("pod", "17"), ("signing-status", "0"),
    ])
    return Data(receipt.utf8).base64EncodedString()
  }

  private static func list(_ entries: [(name: String, value: String)]) -> String {
    "{\n" + entries.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "}"
  }

  /// 1.2.840.113549.1.7.x: the content types of PKCS#7 (RFC 2315, 14).
  private static func identifier(lastArc: UInt8) -> [UInt8] {
    element(0x06, [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, lastArc])
  }

  /// Tag, length and content (X.690, 8.1); contents here stay far below 64 KiB.
  private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    let length: [UInt8] =
      switch content.count {
      case ..<0x80: [UInt8(content.count)]
      case ..<0x100: [0x81, UInt8(content.count)]
      default: [0x82, UInt8(truncatingIfNeeded: content.count >> 8), UInt8(truncatingIfNeeded: content.count)]
      }
    return [tag] + length + content
  }
}
