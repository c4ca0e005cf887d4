import Reconciliation

/// Base64 (RFC 4648), decoded strictly, so that no two texts decode to the same signature.
enum Base64Text {
  /// Decodes one part of a JWS: URL-safe alphabet (RFC 4648 section 5) without padding (RFC 7515 section 2).
  static func decodeURLSafe(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    decodeUnpadded(text, alphabet: urlSafeAlphabet)
  }

  /// Decodes padded standard base64 (RFC 4648 section 4), as in an `x5c` header.
  static func decodePadded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count.isMultiple(of: 4) else { return nil }
    return decodeUnpadded(withoutPadding(text), alphabet: standardAlphabet)
  }

  /// Decodes a stored receipt: standard base64 with or without line breaks and padding.
  static func decodeReceipt(_ text: some Sequence<UInt8>) -> [UInt8]? {
    let characters = text.filter { !isBlank($0) }
    return decodeUnpadded(withoutPadding(characters[...]), alphabet: standardAlphabet)
  }

  private static func withoutPadding(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = text
    for _ in 0..<2 where text.last == UInt8(ascii: "=") { text.removeLast() }
    return text
  }

  private static func decodeUnpadded(_ text: ArraySlice<UInt8>, alphabet: [UInt8]) -> [UInt8]? {
    let remainder = text.count % 4
    guard remainder != 1 else { return nil }
    var valid = true
    let bytes = [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 2) { output, count in
      var pending: UInt32 = 0
      var pendingBits = 0
      for character in text {
        let value = alphabet[Int(character)]
        guard value != notInAlphabet else {
          valid = false
          return
        }
        pending = pending << 6 | UInt32(value)
        pendingBits += 6
        if pendingBits >= 8 {
          pendingBits -= 8
          output[count] = UInt8(truncatingIfNeeded: pending >> UInt32(pendingBits))
          count += 1
        }
      }
      // Unused bits must be zero, or many texts would have the same signature.
      valid = pending & (1 << UInt32(pendingBits) - 1) == 0
    }
    return valid ? bytes : nil
  }

  private static let notInAlphabet: UInt8 = 0xFF
  private static let standardAlphabet = alphabet(endingWith: "+/")
  private static let urlSafeAlphabet = alphabet(endingWith: "-_")

  private static func alphabet(endingWith last: String) -> [UInt8] {
    var values = [UInt8](repeating: notInAlphabet, count: 256)
    let characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last
    for (value, character) in characters.utf8.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }
}
