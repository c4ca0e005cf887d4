import Reconciliation

/// The fields of a JSON object from outside, decoded with tolerance. Any field may be missing, numbers may be strings
/// or fractions, Booleans may be 1 or a word, and a value of a wrong type reads as nil.
struct JSONFields: Sendable {
  private let bytes: [UInt8]
  private var members: [(key: JSONExtent, value: JSONExtent)]

  static let none = JSONFields()

  private init() {
    bytes = []
    members = []
  }

  init?(_ bytes: [UInt8]) { self.init(bytes, range: bytes.indices) }

  init?(_ bytes: some Sequence<UInt8>) { self.init(Array(bytes)) }

  private init?(_ bytes: [UInt8], range: Range<Int>) {
    var scanner = JSONScanner(bytes, range: range)
    var members: [(key: JSONExtent, value: JSONExtent)] = []
    members.reserveCapacity(32)
    guard scanner.members(depth: DecodingLimits.nesting, visit: { members.append(($0, $1)) }), scanner.isAtEnd()
    else { return nil }
    (self.bytes, self.members) = (bytes, members)
  }

  /// True if the field is neither missing, null nor an empty string.
  func has(_ key: String) -> Bool { value(key)?.isEmpty == false }

  /// A string, or the digits of a whole number. Nil if it cannot be an Apple identifier (see `plainText`).
  func text(_ key: String) -> String? {
    switch value(key) {
    case .string(let range, let escaped): plainText(string(range, escaped: escaped).map(trimmed))
    case .number(let range):
      bytes[range].allSatisfy(isDigit)
        ? plainText(String(decoding: bytes[range], as: UTF8.self)) : integer(key).flatMap { $0 < 0 ? nil : String($0) }
    case .boolean, .object, .array, .null, nil: nil
    }
  }

  /// A whole number, written as a number or as a string.
  func integer(_ key: String) -> Int64? {
    switch value(key) {
    case .number(let range): Int64(asciiDigits: bytes[range]) ?? fraction(range).flatMap(Int64.init(exactly:))
    case .string(let range, escaped: false): Int64(asciiDigits: withoutBlanks(bytes[range]))
    case .string, .boolean, .object, .array, .null, nil: nil
    }
  }

  func integer32(_ key: String) -> Int32? { integer(key).flatMap(Int32.init(exactly:)) }

  /// Milliseconds since the epoch; nil outside `Instant.appleDates`. Xcode writes fractions and negative numbers.
  func instant(_ key: String) -> Instant? {
    if let milliseconds = integer(key) { return Instant(appleMilliseconds: milliseconds) }
    guard case .number(let range) = value(key), let milliseconds = fraction(range) else { return nil }
    return Int64(exactly: (milliseconds * 1_000).rounded()).map(Instant.init(microseconds:))
      .flatMap { Instant.appleDates.contains($0) ? $0 : nil }
  }

  func flag(_ key: String) -> Bool? {
    switch value(key) {
    case .boolean(let flag): flag
    case .number, .string:
      switch text(key)?.lowercased() {
      case "true", "1", "yes": true
      case "false", "0", "no": false
      default: nil
      }
    case .object, .array, .null, nil: nil
    }
  }

  func document(_ key: String) -> String? {
    if case .string(let range, let escaped) = value(key) { string(range, escaped: escaped) } else { nil }
  }

  /// The elements of an array of strings, with nil for an element of another type. Nil if the field is not an array.
  func texts(_ key: String) -> [String?]? {
    elements(key)?.map { if case .string(let range, let escaped) = $0 { string(range, escaped: escaped) } else { nil } }
  }

  func object(_ key: String) -> JSONFields? {
    value(key).flatMap(object(of:))
  }

  /// The objects of an array, or the single object. An element of another type becomes an empty object, to be counted.
  func objects(_ key: String) -> [JSONFields]? {
    if let object = object(key) { return [object] }
    return elements(key)?.map { object(of: $0) ?? JSONFields.none }
  }

  /// The objects of an array; nil if the field is not an array, or an element is not an object.
  func objectList(_ key: String) -> [JSONFields]? {
    guard let elements = elements(key) else { return nil }
    let objects = elements.compactMap(object(of:))
    return objects.count == elements.count ? objects : nil
  }

  /// The source text of an object or array, without blanks between its tokens; nil if it is longer than
  /// `DecodingLimits.textLength`.
  func json(_ key: String) -> String? {
    switch value(key) {
    case .object(let range), .array(let range):
      plainText(String(validating: withoutBlanksBetweenTokens(bytes[range]), as: UTF8.self))
    case .string, .number, .boolean, .null, nil: nil
    }
  }

  func listedTexts(_ key: String) -> [String] { document(key).map { [$0] } ?? texts(key)?.compactMap(\.self) ?? [] }

  var objectsWithin: [JSONFields] { extentsWithin.compactMap(object(of:)) }

  func everyText(depth: Int) -> [String] {
    extentsWithin.flatMap { extent -> [String] in
      switch extent {
      case .string(let range, let escaped): [string(range, escaped: escaped)].compactMap(\.self)
      case .object(let range):
        depth > 0 ? JSONFields(bytes, range: range)?.everyText(depth: depth - 1) ?? [] : []
      case .number, .boolean, .array, .null: []
      }
    }
  }

  private var extentsWithin: [JSONExtent] {
    members.flatMap { member in
      switch member.value {
      case .array(let range): elements(range)
      case .string, .number, .boolean, .object, .null: [member.value]
      }
    }
  }

  /// Returns these fields, overridden by the non-empty fields of another object of the same text.
  func overlaid(by other: JSONFields) -> JSONFields {
    var merged = self
    merged.members += other.members.filter { !$0.value.isEmpty }
    return merged
  }

  private func object(of extent: JSONExtent) -> JSONFields? {
    if case .object(let range) = extent { JSONFields(bytes, range: range) } else { nil }
  }

  private func elements(_ key: String) -> [JSONExtent]? {
    if case .array(let range) = value(key) { elements(range) } else { nil }
  }

  private func elements(_ range: Range<Int>) -> [JSONExtent] {
    var elements: [JSONExtent] = []
    var scanner = JSONScanner(bytes, range: range)
    _ = scanner.elements(depth: DecodingLimits.nesting) { elements.append($0) }
    return elements
  }

  // The last of duplicate keys counts, as in ECMAScript.
  private func value(_ key: String) -> JSONExtent? {
    guard let member = members.last(where: { isKey($0.key, key) }) else { return nil }
    if case .null = member.value { return nil }
    return member.value
  }

  private func isKey(_ extent: JSONExtent, _ key: String) -> Bool {
    guard case .string(let range, let escaped) = extent else { return false }
    guard !escaped else { return string(range, escaped: true) == key }
    return range.count == key.utf8.count && key.utf8.elementsEqual(bytes[range])
  }

  private func fraction(_ range: Range<Int>) -> Double? { Double(String(decoding: bytes[range], as: UTF8.self)) }

  private func string(_ range: Range<Int>, escaped: Bool) -> String? {
    guard escaped else { return String(validating: bytes[range], as: UTF8.self) }
    return JSONEscapes.resolved(bytes[range]).flatMap { String(validating: $0, as: UTF8.self) }
  }

  private func trimmed(_ text: String) -> String {
    guard let first = text.utf8.first, let last = text.utf8.last, isBlank(first) || isBlank(last) else { return text }
    return String(decoding: withoutBlanks(Array(text.utf8)[...]), as: UTF8.self)
  }
}

func withoutBlanks(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
  let end = text.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? text.startIndex
  return text[..<end].drop(while: isBlank)
}

/// - Parameter json: a valid JSON value.
private func withoutBlanksBetweenTokens(_ json: ArraySlice<UInt8>) -> [UInt8] {
  var (isInString, isEscaped) = (false, false)
  return json.filter { character in
    guard isInString else {
      isInString = character == UInt8(ascii: "\"")
      return !isBlank(character)
    }
    if isEscaped {
      isEscaped = false
    } else {
      isEscaped = character == UInt8(ascii: "\\")
      isInString = character != UInt8(ascii: "\"")
    }
    return true
  }
}

func isDigit(_ character: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) }

/// Nil for text that is empty, too long or has control characters. Postgres and terminals reject those.
func plainText(_ text: String?) -> String? {
  guard let text, !text.isEmpty, text.utf8.count <= DecodingLimits.textLength else { return nil }
  var previous: UInt8 = 0
  for byte in text.utf8 {
    // ASCII control characters, and U+0080 to U+009F in UTF-8.
    guard byte >= 0x20, byte != 0x7F, previous != 0xC2 || byte >= 0xA0 else { return nil }
    previous = byte
  }
  return text
}

extension Int64 {
  init?(asciiDigits digits: ArraySlice<UInt8>) {
    guard digits.first != UInt8(ascii: "+") else { return nil }
    self.init(String(decoding: digits, as: UTF8.self))
  }
}

extension Instant {
  /// The dates that every table and report can hold: years 0 to 9999. Xcode's distant past is one of them.
  static let appleDates = Instant(seconds: -62_167_219_200)...Instant(microseconds: 253_402_300_799_999_999)

  init?(appleMilliseconds milliseconds: Int64) {
    let instant = Instant(milliseconds: milliseconds)
    guard Self.appleDates.contains(instant) else { return nil }
    self = instant
  }

  /// A date in verifyReceipt's format `2012-04-30 15:05:55 Etc/GMT`; nil for any other format.
  init?(verifyReceiptText text: String) {
    guard text.hasSuffix(" Etc/GMT") else { return nil }
    self.init(rfc3339: text.dropLast(" Etc/GMT".count) + "Z")
  }
}
