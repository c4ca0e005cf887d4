import Foundation
import Reconciliation

/// Telling what a payload that a client sent us is, by its content alone.
///
/// Time and memory are proportional to the payload, and a payload longer than `maximumPayloadBytes` is not looked into.
/// The kind says nothing about whether the payload is genuine.
extension ReceiptKind {
  /// Longer payloads are malformed: 10 MiB. Apple's receipts have some 5 KB and 350 bytes a purchase.
  package static let maximumPayloadBytes = 10 << 20

  /// White space around any payload, and white space within base64, is ignored.
  package static func detect(payload: String) -> ReceiptKind {
    let characters = Array(payload.utf8.prefix(maximumPayloadBytes + 1))
    guard characters.count <= maximumPayloadBytes else { return .malformed }
    if isSignedTransaction(trimmed(characters[...])) { return .signed }
    guard let bytes = Base64Text.decodeReceipt(payload) else { return .malformed }
    if isSignedData(bytes) { return .app }
    return isPropertyList(bytes) ? .transaction : .malformed
  }

  // MARK: JWS

  /// Three base64url parts, the first of them a JSON object with `alg` (RFC 7515, 7.1 and 4.1.1). The signature may be
  /// empty: an unsigned one is a forgery of a signed transaction, not some other thing.
  private static func isSignedTransaction(_ characters: ArraySlice<UInt8>) -> Bool {
    let parts = characters.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count <= SignedDataLimits.jwsLength, !parts[1].isEmpty,
      let header = Base64Text.decodeURLSafe(parts[0]), Base64Text.decodeURLSafe(parts[1]) != nil,
      Base64Text.decodeURLSafe(parts[2]) != nil
    else { return false }
    return SignedJSON(header)?.text("alg") != nil
  }

  // MARK: PKCS#7

  /// `signedData`, 1.2.840.113549.1.7.2 (RFC 2315, 14), as its DER element.
  private static let signedDataIdentifier: [UInt8] = [
    0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02,
  ]

  /// A `ContentInfo` (RFC 2315, 7): a sequence of the identifier and content tagged [0]. A sequence that claims more bytes
  /// than there are was cut off on its way.
  private static func isSignedData(_ bytes: [UInt8]) -> Bool {
    guard bytes.count > 2, bytes[0] == 0x30 else { return false }
    var start = 2
    switch bytes[1] {
    case 0x80: break
    case 0x81...0x84:
      let octets = Int(bytes[1] & 0x7F)
      start += octets
      guard bytes.count > start else { return false }
      let length = bytes[2..<start].reduce(0) { $0 << 8 | Int($1) }
      guard length <= bytes.count - start else { return false }
    case let length: guard length < 0x80, Int(length) <= bytes.count - start else { return false }
    }
    let content = bytes[start...]
    return content.starts(with: signedDataIdentifier) && content.dropFirst(signedDataIdentifier.count).first == 0xA0
  }

  // MARK: Property list

  /// `{ … "purchase-info" = "…"; … }`
  private static func isPropertyList(_ bytes: [UInt8]) -> Bool {
    let text = trimmed(bytes[...])
    guard text.first == UInt8(ascii: "{"), text.last == UInt8(ascii: "}"),
      let key = text.firstRange(of: Array("\"purchase-info\"".utf8))
    else { return false }
    let assignment = trimmed(text[key.upperBound...])
    return assignment.first == UInt8(ascii: "=") && trimmed(assignment.dropFirst()).first == UInt8(ascii: "\"")
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isSpace = { (character: UInt8) in character == 0x20 || (0x09...0x0D).contains(character) }
    let end = text.lastIndex { !isSpace($0) }.map { $0 + 1 } ?? text.startIndex
    return text[..<end].drop(while: isSpace)
  }
}
