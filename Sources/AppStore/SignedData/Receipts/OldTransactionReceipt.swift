import Reconciliation

/// The receipt of one purchase as iOS 6 made it: a property list whose `purchase-info` is a property list in turn.
///
/// Its content is a claim: its signature is not checked, and Apple is asked about it.
package struct OldTransactionReceipt: Hashable, Sendable {
  /// `transaction-id` of the inner list.
  package let transactionId: String
  /// `product-id` of the inner list.
  package let productId: String
  /// `bid` of the inner list.
  package let bundleId: String?

  /// Reads both lists.
  package static func parse(base64 text: String) -> Result<OldTransactionReceipt, SignedDataRefusal> {
    Result { () throws(SignedDataRefusal) in
      guard text.utf8.count <= DecodingLimits.receiptLength else { throw .tooLarge }
      guard let bytes = Base64Text.decodeReceipt(text.utf8) else { throw .payloadUnreadable }
      return try OldTransactionReceipt(bytes)
    }
  }

  /// Reads both lists of a receipt's bytes.
  init(_ bytes: [UInt8]) throws(SignedDataRefusal) {
    guard let outer = OldPropertyList.parse(bytes) else { throw .payloadUnreadable }
    guard let text = outer["purchase-info"] else { throw .payloadUnreadable }
    guard let purchaseInfo = Base64Text.decodeReceipt(text.utf8), let inner = OldPropertyList.parse(purchaseInfo) else {
      throw .payloadUnreadable
    }
    guard let transactionId = plainText(inner["transaction-id"]) else { throw .payloadUnreadable }
    guard let productId = plainText(inner["product-id"]) else { throw .payloadUnreadable }
    self.transactionId = transactionId
    self.productId = productId
    bundleId = plainText(inner["bid"])
  }
}

/// The text form of property lists that came before XML (Apple, Old-Style ASCII Property Lists), with texts as the only
/// kind of value: `{ "name" = "value"; other = value; }`.
enum OldPropertyList {
  /// The list's entries; nil if it is none, or longer than any of Apple's. Of a name that comes twice the last value counts.
  static func parse(_ bytes: [UInt8]) -> [String: String]? {
    var scanner = Scanner(rest: bytes[...])
    guard scanner.take("{") else { return nil }
    var entries: [String: String] = [:]
    while !scanner.take("}") {
      guard let name = scanner.text(), scanner.take("="), let value = scanner.text(), scanner.take(";") else {
        return nil
      }
      entries[name] = value
      guard entries.count <= DecodingLimits.propertyListEntries else { return nil }
    }
    return scanner.isAtEnd() ? entries : nil
  }

  private struct Scanner {
    var rest: ArraySlice<UInt8>

    mutating func isAtEnd() -> Bool {
      skipWhitespace()
      return rest.isEmpty
    }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
      skipWhitespace()
      guard rest.first == UInt8(ascii: character) else { return false }
      rest.removeFirst()
      return true
    }

    /// A text in quotation marks, or a bare word.
    mutating func text() -> String? {
      take("\"") ? quoted() : word()
    }

    private mutating func quoted() -> String? {
      var bytes: [UInt8] = []
      while let character = rest.popFirst() {
        switch character {
        case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
        case UInt8(ascii: "\\"):
          guard let escaped = rest.popFirst() else { return nil }
          bytes.append(escaped)
        default: bytes.append(character)
        }
      }
      return nil
    }

    private mutating func word() -> String? {
      let word = rest.prefix { Self.isWordCharacter($0) }
      rest = rest[word.endIndex...]
      return word.isEmpty ? nil : String(decoding: word, as: UTF8.self)
    }

    private mutating func skipWhitespace() {
      rest = rest.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
    }

    private static func isWordCharacter(_ character: UInt8) -> Bool {
      switch Unicode.Scalar(character) {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".", "/", ":", "$": true
      default: false
      }
    }
  }
}
