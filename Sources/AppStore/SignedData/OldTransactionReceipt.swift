import Reconciliation

/// The receipt of one purchase as iOS 6 made it: a property list whose `purchase-info` is a property list in turn.
///
/// Its signature has a format of its own that Apple never documented and cannot be checked here, only by verifyReceipt.
/// What this says is therefore a claim: good for finding an `id_mismatch`, never evidence.
package struct OldTransactionReceipt: Hashable, Sendable {
  /// `transaction-id` of the inner list.
  package let transactionId: String
  /// `product-id` of the inner list.
  package let productId: String
  /// `original-transaction-id` of the inner list.
  package let originalTransactionId: String?
  /// `bid` of the inner list.
  package let bundleId: String?
  /// `purchase-date-ms` of the inner list.
  package let purchaseDate: Instant?
  /// `quantity` of the inner list.
  package let quantity: Int32?
  /// `environment` of the outer list, `Sandbox` for instance; production's has none.
  package let claimedEnvironment: String?

  /// Reads both lists, without judging the signature.
  package static func parse(base64 text: String) -> Result<OldTransactionReceipt, SignedDataRefusal> {
    Result { () throws(SignedDataRefusal) in try OldTransactionReceipt(base64: text) }
  }

  private init(base64 text: String) throws(SignedDataRefusal) {
    guard text.utf8.count <= SignedDataLimits.receiptLength else { throw .tooLarge }
    let outer = try Self.list(base64: text)
    guard let purchaseInfo = outer["purchase-info"] else { throw .payloadIncomplete("purchase-info") }
    let inner = try Self.list(base64: purchaseInfo)
    guard let transactionId = plainText(inner["transaction-id"]) else { throw .payloadIncomplete("transaction-id") }
    guard let productId = plainText(inner["product-id"]) else { throw .payloadIncomplete("product-id") }
    self.transactionId = transactionId
    self.productId = productId
    originalTransactionId = plainText(inner["original-transaction-id"])
    bundleId = plainText(inner["bid"])
    purchaseDate = inner["purchase-date-ms"].flatMap { Int64(asciiDigits: Array($0.utf8)[...]) }
      .map(Instant.init(milliseconds:))
    quantity = inner["quantity"].flatMap { Int64(asciiDigits: Array($0.utf8)[...]) }.flatMap(Int32.init(exactly:))
    claimedEnvironment = plainText(outer["environment"])
  }

  private static func list(base64 text: String) throws(SignedDataRefusal) -> [String: String] {
    guard let bytes = Base64Text.decodeReceipt(text), let list = OldPropertyList.parse(bytes) else {
      throw .payloadUnreadable
    }
    return list
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
      guard entries.count <= SignedDataLimits.propertyListEntries else { return nil }
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
