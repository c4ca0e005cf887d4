import Reconciliation

/// The content of an app receipt: a set of numbered attributes (Apple, Receipt Fields). Unknown attributes are ignored.
struct ReceiptContent: Sendable {
  private(set) var environment: String?
  private(set) var bundleId: String?
  private(set) var creationDate: Instant?
  private(set) var purchases: [ReceiptPurchase] = []

  init(_ content: ArraySlice<UInt8>) throws(SignedDataRefusal) {
    // Xcode wraps the set in one more octet string.
    var content = content
    if let wrapped = BERElement(content)?.octets() { content = wrapped }
    try ReceiptAttribute.forEach(in: content) { attribute throws(SignedDataRefusal) in
      switch attribute.type {
      case 0: environment = attribute.text
      case 2: bundleId = attribute.text
      case 12: creationDate = attribute.date
      case 17:
        guard purchases.count < DecodingLimits.receiptPurchases else { throw .tooLarge }
        purchases.append(try ReceiptPurchase(attribute.value))
      default: break
      }
    }
  }
}

struct ReceiptPurchase: Sendable {
  private(set) var quantity: Int64?
  private(set) var productId: String?
  private(set) var transactionId: String?
  private(set) var purchaseDate: Instant?
  private(set) var originalTransactionId: String?
  private(set) var originalPurchaseDate: Instant?
  private(set) var productTypeCode: Int64?
  private(set) var expiresDate: Instant?
  private(set) var webOrderLineItemId: Int64?
  private(set) var cancellationDate: Instant?
  private(set) var isTrial: Int64?
  private(set) var isIntroductory: Int64?
  private(set) var promotionalOfferId: String?

  fileprivate init(_ value: ArraySlice<UInt8>) throws(SignedDataRefusal) {
    try ReceiptAttribute.forEach(in: value) { attribute throws(SignedDataRefusal) in
      switch attribute.type {
      case 1701: quantity = attribute.integer
      case 1702: productId = attribute.text
      case 1703: transactionId = attribute.text
      case 1704: purchaseDate = attribute.date
      case 1705: originalTransactionId = attribute.text
      case 1706: originalPurchaseDate = attribute.date
      case 1707: productTypeCode = attribute.integer
      case 1708: expiresDate = attribute.date
      case 1711: webOrderLineItemId = attribute.integer
      case 1712: cancellationDate = attribute.date
      case 1713: isTrial = attribute.integer
      case 1719: isIntroductory = attribute.integer
      case 1721: promotionalOfferId = attribute.text
      default: break
      }
    }
  }
}

/// `SEQUENCE { type INTEGER, version INTEGER, value OCTET STRING }`.
private struct ReceiptAttribute {
  let type: Int64
  let value: ArraySlice<UInt8>

  static func forEach(
    in set: ArraySlice<UInt8>, visit: (ReceiptAttribute) throws(SignedDataRefusal) -> Void
  ) throws(SignedDataRefusal) {
    guard let set = BERElement(set), set.identifier == BERElement.set else { throw .payloadUnreadable }
    var attributes = set.children
    while let attribute = attributes.next(BERElement.sequence) {
      var fields = attribute.children
      guard let type = fields.next()?.integerValue, fields.next(BERElement.integer) != nil,
        let value = fields.next()?.octets()
      else { throw .payloadUnreadable }
      try visit(ReceiptAttribute(type: type, value: value))
    }
    guard attributes.isAtEnd else { throw .payloadUnreadable }
  }

  var integer: Int64? { BERElement(value)?.integerValue }

  var text: String? {
    guard let element = BERElement(value),
      element.identifier == BERElement.utf8String || element.identifier == BERElement.ia5String
    else { return nil }
    return plainText(String(validating: element.content, as: UTF8.self))
  }

  var date: Instant? { text.flatMap(Instant.init(rfc3339:)) }
}
