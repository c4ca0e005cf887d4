import Foundation
import Reconciliation

/// A receipt payload from a client, with common transport damage undone. Removed are white space, quotation marks, a
/// JSON object or list around it, JSON escapes, percent-encoding, base64 around another text, and the text form of a
/// `bytea` column (`\x…`). Mended are the other base64 alphabet, lost or added padding, and `+` that became a space. The
/// kind is detected from the content alone and proves nothing. Additional memory is at most five times the payload's
/// length.
package struct ReceivedPayload: Sendable {
  /// Longer payloads are unreadable: 10 MiB. Apple's receipts have some 5 KB and 350 bytes per purchase.
  package static let maximumBytes = DecodingLimits.receiptLength

  enum Content: Sendable {
    /// A compact JWS in the URL-safe alphabet, without padding.
    case signed(String)
    case app([UInt8])
    case transaction([UInt8])
    case unreadable(Unreadable)
  }

  /// A reason why a payload cannot be read. None of them indicates a forgery.
  package enum Unreadable: String, Hashable, CaseIterable, Sendable {
    case empty = "it is empty"
    case tooLong = "it is longer than any receipt"
    /// The end of the payload is missing, as when a column is too short.
    case truncated = "its end is missing"
    case unknown = "it is not one of the three kinds of receipt"
  }

  let content: Content

  package init(_ text: String) {
    let bytes = Array(text.utf8.prefix(Self.maximumBytes + 1))
    content =
      bytes.count > Self.maximumBytes ? .unreadable(.tooLong) : PayloadReader.content(bytes[...], layers: 4)
  }

  package var kind: ReceiptKind {
    switch content {
    case .signed: .signed
    case .app: .app
    case .transaction: .transaction
    case .unreadable: .malformed
    }
  }

  /// The unverified transaction in a signed payload; nil for any other payload.
  package var claimedTransaction: TransactionFact? {
    guard case .signed(let jws) = content, let parts = try? JWSParts(jws), let payload = JSONFields(parts.payload)
    else { return nil }
    return try? TransactionFact(signed: payload, channel: .offline)
  }

  /// The unverified transactions in an app receipt; nil for any other payload.
  package var listedTransactions: [TransactionFact]? {
    guard case .app(let bytes) = content, let container = try? ReceiptContainer(bytes),
      let receipt = try? AppReceipt(ReceiptContent(container.content))
    else { return nil }
    return receipt.transactions
  }

  /// The receipt as verifyReceipt accepts it; nil for a JWS or an unreadable payload.
  package var base64: String? {
    switch content {
    case .app(let bytes), .transaction(let bytes): Data(bytes).base64EncodedString()
    case .signed, .unreadable: nil
    }
  }
}

/// Removes one layer of transport damage after the other.
private enum PayloadReader {
  static func content(_ text: ArraySlice<UInt8>, layers: Int) -> ReceivedPayload.Content {
    let stored = text
    let text = bare(stored)
    guard let first = text.first else { return .unreadable(.empty) }
    if isSignedData(text) { return .app(Array(text)) }
    if isPropertyList(text) { return .transaction(Array(text)) }
    if layers > 0 {
      if first == UInt8(ascii: "{") || first == UInt8(ascii: "["), let content = wrapped(text, layers: layers) {
        return content
      }
      if text.starts(with: Array("\\x".utf8)), let bytes = hexadecimal(text.dropFirst(2)) {
        return content(bytes[...], layers: layers - 1)
      }
      if text.contains(UInt8(ascii: "\\")), let bytes = JSONEscapes.resolved(withoutLineBreaks(text)) {
        return content(bytes[...], layers: layers - 1)
      }
      if text.contains(UInt8(ascii: "%")), let bytes = percentDecoded(text) {
        return content(bytes[...], layers: layers - 1)
      }
    }
    return signed(text)
      ?? base64(text, spacesAfter: stored[text.endIndex...].prefix { $0 == 0x20 }.count, layers: layers)
  }

  // MARK: Wrappings

  /// Removes white space, quotation marks, also escaped ones, zero bytes and byte order marks around the text.
  private static func bare(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    // A container is binary: its first and last bytes belong to it.
    guard !isSignedData(text) else { return text }
    let backslash = UInt8(ascii: "\\")
    // No payload ends with a backslash, but an escaped quotation mark leaves one.
    let end = text.lastIndex { !isSurrounding($0) && $0 != backslash }.map { $0 + 1 } ?? text.startIndex
    let bare = withoutBeginning(text[..<end])
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    return bare.starts(with: mark) ? withoutBeginning(bare.dropFirst(mark.count)) : bare
  }

  private static func withoutBeginning(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var rest = text.drop(while: isSurrounding)
    while rest.first == UInt8(ascii: "\\"), let second = rest.dropFirst().first, isQuotationMark(second) {
      rest = rest.dropFirst(2).drop(while: isSurrounding)
    }
    return rest
  }

  private static func isSurrounding(_ character: UInt8) -> Bool {
    isBlank(character) || character == 0 || isQuotationMark(character)
  }

  private static func isQuotationMark(_ character: UInt8) -> Bool {
    character == UInt8(ascii: "\"") || character == UInt8(ascii: "'") || character == UInt8(ascii: "`")
  }

  /// Common JSON keys of receipts, in order of precedence.
  private static let names = [
    "signedTransactionInfo", "signedTransaction", "jwsRepresentation", "signedPayload", "receipt-data", "receiptData",
    "transactionReceipt", "latest_receipt", "receipt", "payload", "signedTransactions",
  ]

  private static let deepest = 4

  /// Finds the receipt in JSON: the outermost level wins, then the order of `names`. Nil if several have unknown keys.
  private static func wrapped(_ text: ArraySlice<UInt8>, layers: Int) -> ReceivedPayload.Content? {
    let isList = text.first == UInt8(ascii: "[")
    let object = isList ? Array("{\"payload\":".utf8) + text + Array("}".utf8) : Array(text)
    guard let fields = JSONFields(object) else { return nil }
    var level = [fields]
    for _ in 0...deepest where !level.isEmpty {
      for name in names {
        let named = Set(level.flatMap { $0.listedTexts(name) }).compactMap { readable($0, layers: layers) }
        if named.count == 1 { return named[0] }
      }
      level = level.flatMap(\.objectsWithin)
    }
    let others = Set(fields.everyText(depth: deepest)).compactMap { readable($0, layers: layers) }
    return others.count == 1 ? others[0] : nil
  }

  private static func readable(_ text: String, layers: Int) -> ReceivedPayload.Content? {
    let content = content(Array(text.utf8)[...], layers: layers - 1)
    return if case .unreadable = content { nil } else { content }
  }

  private static func hexadecimal(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits where !isBlank(digit) {
      guard let value = value(digit) else { return nil }
      if let first = high { bytes.append(first << 4 | value) }
      high = high == nil ? value : nil
    }
    return high == nil ? bytes : nil
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// RFC 3986, 2.1.
  private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = withoutLineBreaks(text)
    while let character = rest.popFirst() {
      guard character == UInt8(ascii: "%") else {
        bytes.append(character)
        continue
      }
      guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  // A line break may separate the characters of an escape.
  private static func withoutLineBreaks(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.filter { !(0x09...0x0D).contains($0) }[...]
  }

  // MARK: JWS

  /// Three base64url parts, the first a JSON object with `alg` (RFC 7515, 7.1 and 4.1.1). The signature may be empty,
  /// because an unsigned JWS is a forged transaction and not another kind of payload.
  private static func signed(_ text: ArraySlice<UInt8>) -> ReceivedPayload.Content? {
    // Base64 text has no dots; a header comes before the first dot or is all that was left.
    guard text.starts(with: Array("eyJ".utf8)) || text.contains(UInt8(ascii: ".")) else { return nil }
    guard text.count <= 2 * DecodingLimits.jwsLength else { return nil }
    // White space is first taken for an inserted line break, then for a lost plus sign.
    let candidates = [JWSText(text.filter { !isBlank($0) }), JWSText(text.map { $0 == 0x20 ? UInt8(ascii: "-") : $0 })]
    guard candidates.contains(where: \.hasHeader) else { return nil }
    guard let whole = candidates.first(where: \.isWhole) else {
      return .unreadable(candidates.contains(where: \.isCutOff) ? .truncated : .unknown)
    }
    return .signed(whole.text)
  }

  private struct JWSText {
    let text: String
    let hasHeader: Bool
    let isWhole: Bool
    let isCutOff: Bool

    init(_ characters: [UInt8]) {
      let plain = characters.compactMap { character -> UInt8? in
        switch character {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "="): nil
        case 0x09...0x0D: nil
        default: character
        }
      }
      text = String(decoding: plain, as: UTF8.self)
      let parts = plain.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
      let header = parts.first.flatMap(Base64Text.decodeURLSafe).flatMap { JSONFields($0) }
      let algorithm = header?.text("alg")
      hasHeader = algorithm != nil
      guard algorithm != nil, parts.count == 3 else {
        isWhole = false
        isCutOff = hasHeader && parts.count < 3
        return
      }
      let signature = Base64Text.decodeURLSafe(parts[2])
      // An ES256 signature has 64 bytes (RFC 7518, 3.4); the length of other algorithms is not checked.
      isCutOff = algorithm == "ES256" && !parts[2].isEmpty && parts[2].count < 86
      isWhole =
        signature != nil && !isCutOff && Base64Text.decodeURLSafe(parts[1]).flatMap { JSONFields($0) } != nil
    }
  }

  // MARK: Base64

  /// A receipt in base64, or any of the payloads as a text in base64.
  private static func base64(
    _ text: ArraySlice<UInt8>, spacesAfter: Int, layers: Int
  ) -> ReceivedPayload.Content {
    var isCutOff = false
    var kept: [UInt8]?
    var encodedText: [UInt8]?
    for characters in receiptTexts(text, spacesAfter) {
      guard let bytes = decoded(characters) else { continue }
      if isPropertyList(bytes[...]) { return .transaction(bytes) }
      guard isSignedData(bytes[...]) else {
        isCutOff = isCutOff || startsLikeReceipt(bytes)
        if encodedText == nil, String(validating: bytes, as: UTF8.self) != nil { encodedText = bytes }
        continue
      }
      // The container decides which reading is right; if no container is readable, the first reading is kept.
      if (try? ReceiptContainer(bytes)) != nil { return .app(bytes) }
      if kept == nil { kept = bytes }
    }
    if let kept { return .app(kept) }
    // Read after the loop, because its texts need as much memory as the payload.
    if layers > 0, let encodedText {
      let undone = content(encodedText[...], layers: layers - 1)
      switch undone {
      case .signed, .app, .transaction, .unreadable(.truncated): return undone
      case .unreadable(.empty), .unreadable(.tooLong), .unreadable(.unknown): break
      }
    }
    return .unreadable(isCutOff ? .truncated : .unknown)
  }

  // White space was inserted, or spaces replaced plus signs, also at the end if the last group of four is incomplete.
  private static func receiptTexts(_ text: ArraySlice<UInt8>, _ spacesAfter: Int) -> [[UInt8]] {
    func replacing(_ space: UInt8?) -> [UInt8] {
      text.compactMap { character in
        switch character {
        case 0x20: space
        case 0x09...0x0D: nil
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: character
        }
      }
    }
    let plus = UInt8(ascii: "+")
    let texts = text.contains(0x20) ? [replacing(nil), replacing(plus)] : [replacing(nil)]
    let whole = texts[texts.count - 1]
    let missing = (4 - whole.count % 4) % 4
    guard missing > 0, missing <= spacesAfter, whole.last != UInt8(ascii: "=") else { return texts }
    return [whole + Array(repeating: plus, count: missing)] + texts
  }

  private static func decoded(_ characters: [UInt8]) -> [UInt8]? {
    // A truncated text may end within a group of four; the rest still shows its kind.
    Base64Text.decodeReceipt(characters)
      ?? Base64Text.decodeReceipt(Array(characters.prefix(characters.count / 4 * 4)))
  }

  private static func startsLikeReceipt(_ bytes: [UInt8]) -> Bool {
    if bytes.first == UInt8(ascii: "{") { return bytes.firstRange(of: Array("\"purchase-info\"".utf8)) != nil }
    return bytes.first == 0x30 && bytes.prefix(20).firstRange(of: signedDataIdentifier) != nil
  }

  // MARK: PKCS#7

  /// `signedData`, 1.2.840.113549.1.7.2 (RFC 2315, 14), as its DER element.
  private static let signedDataIdentifier: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]

  /// A `ContentInfo` (RFC 2315, 7). A sequence that claims more bytes than there are was truncated.
  private static func isSignedData(_ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    guard rest.popFirst() == 0x30, let length = rest.popFirst() else { return false }
    switch length {
    case 0x80: break
    case 0x81...0x84:
      let octets = Int(length & 0x7F)
      guard rest.count > octets else { return false }
      let count = rest.prefix(octets).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(octets)
      guard count <= rest.count else { return false }
    default: guard length < 0x80, Int(length) <= rest.count else { return false }
    }
    return rest.starts(with: signedDataIdentifier) && rest.dropFirst(signedDataIdentifier.count).first == 0xA0
  }

  // MARK: Property list

  /// `{ … "purchase-info" = "…"; … }`
  private static func isPropertyList(_ bytes: ArraySlice<UInt8>) -> Bool {
    let text = withoutBlanks(bytes)
    guard text.first == UInt8(ascii: "{"), text.last == UInt8(ascii: "}"),
      let key = text.firstRange(of: Array("\"purchase-info\"".utf8))
    else { return false }
    let assignment = withoutBlanks(text[key.upperBound...])
    return assignment.first == UInt8(ascii: "=")
      && assignment.dropFirst().drop(while: isBlank).first == UInt8(ascii: "\"")
  }
}
