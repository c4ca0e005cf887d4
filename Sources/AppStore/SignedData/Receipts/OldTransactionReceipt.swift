import Reconciliation

/// The receipt of one purchase as iOS 6 made it: a property list whose `purchase-info` is a property list in turn.
/// Its signature is not checked, because Apple is asked about it.
struct OldTransactionReceipt {
  let transactionId: String
  let productId: String
  let bundleId: String?

  init(_ bytes: [UInt8]) throws(SignedDataRefusal) {
    guard let text = OldPropertyList.parse(bytes)?["purchase-info"],
      let inner = Base64Text.decodeReceipt(text.utf8).flatMap(OldPropertyList.parse),
      let transactionId = plainText(inner["transaction-id"]), let productId = plainText(inner["product-id"])
    else { throw .payloadUnreadable }
    (self.transactionId, self.productId) = (transactionId, productId)
    bundleId = plainText(inner["bid"])
  }
}

/// The text form of property lists that came before XML (Apple, Old-Style ASCII Property Lists), with texts as the only
/// kind of value: `{ "name" = "value"; other = value; }`.
enum OldPropertyList {
  /// The list's entries; nil if it is none, or longer than any of Apple's. The last of equal names counts.
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
    mutating func text() -> String? { take("\"") ? quoted() : word() }

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

    private mutating func skipWhitespace() { rest = rest.drop(while: isBlank) }

    private static func isWordCharacter(_ character: UInt8) -> Bool {
      switch Unicode.Scalar(character) {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".", "/", ":", "$": true
      default: false
      }
    }
  }
}
