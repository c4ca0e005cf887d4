import Reconciliation

/// A JSON object of signed data, its fields read on demand and with the tolerance that Apple's payloads need: any field
/// may be missing, numbers may be fractions or texts, truth may be 1, and what is unknown is passed over.
struct SignedJSON: Sendable {
  private let text: [UInt8]
  private let members: [(key: JSONExtent, value: JSONExtent)]

  /// Reads `text`, which must be one object and nothing else; nil otherwise.
  init?(_ text: [UInt8]) { self.init(text, range: text.indices) }

  private init?(_ text: [UInt8], range: Range<Int>) {
    var scanner = JSONScanner(text, range: range)
    var members: [(key: JSONExtent, value: JSONExtent)] = []
    members.reserveCapacity(32)
    guard scanner.members(depth: SignedDataLimits.nesting, visit: { members.append(($0, $1)) }), scanner.isAtEnd()
    else { return nil }
    self.text = text
    self.members = members
  }

  /// Whether the field is there and not null.
  func has(_ key: StaticString) -> Bool { value(key) != nil }

  /// A text, or an integer's digits. Nil also for texts that no identifier or word of Apple's is: empty ones, long
  /// ones, and ones with control characters, which Postgres and terminals would not take.
  func text(_ key: StaticString) -> String? {
    switch value(key) {
    case .string(let range, let escaped): plainText(string(range, escaped: escaped))
    case .number: integer(key).map(String.init)
    default: nil
    }
  }

  /// A whole number, written as a number or as a text.
  func integer(_ key: StaticString) -> Int64? {
    switch value(key) {
    case .number(let range):
      Int64(asciiDigits: text[range]) ?? fraction(range).flatMap(Int64.init(exactly:))
    case .string(let range, escaped: false): Int64(asciiDigits: text[range])
    default: nil
    }
  }

  /// A whole number that fits 32 bits.
  func integer32(_ key: StaticString) -> Int32? { integer(key).flatMap(Int32.init(exactly:)) }

  /// Milliseconds since the Unix epoch, fractions and negative ones included, as Xcode writes them.
  func instant(_ key: StaticString) -> Instant? {
    if let milliseconds = integer(key) { return Instant(milliseconds: milliseconds) }
    guard case .number(let range) = value(key), let milliseconds = fraction(range) else { return nil }
    return Int64(exactly: (milliseconds * 1_000).rounded()).map(Instant.init(microseconds:))
  }

  /// `true`, or a number other than 0.
  func flag(_ key: StaticString) -> Bool? {
    if case .boolean(let flag) = value(key) { return flag }
    return integer(key).map { $0 != 0 }
  }

  /// An object within this one.
  func object(_ key: StaticString) -> SignedJSON? {
    guard case .object(let range) = value(key) else { return nil }
    return SignedJSON(text, range: range)
  }

  /// A nested signed document, whatever its length.
  func document(_ key: StaticString) -> String? {
    guard case .string(let range, let escaped) = value(key) else { return nil }
    return string(range, escaped: escaped)
  }

  /// The elements of an array of texts, nil for an element that is none. Nil if the field is no array.
  func texts(_ key: StaticString) -> [String?]? {
    guard case .array(let range) = value(key) else { return nil }
    var texts: [String?] = []
    var scanner = JSONScanner(text, range: range)
    _ = scanner.elements(depth: SignedDataLimits.nesting) { element in
      guard case .string(let range, let escaped) = element else { return texts.append(nil) }
      texts.append(string(range, escaped: escaped))
    }
    return texts
  }

  /// Nil for null as well. Of a key that comes twice the last one counts, as in ECMAScript.
  private func value(_ key: StaticString) -> JSONExtent? {
    guard let member = members.last(where: { isKey($0.key, key) }) else { return nil }
    if case .null = member.value { return nil }
    return member.value
  }

  private func isKey(_ extent: JSONExtent, _ key: StaticString) -> Bool {
    guard case .string(let range, let escaped) = extent else { return false }
    guard !escaped else { return string(range, escaped: true) == key.description }
    guard range.count == key.utf8CodeUnitCount else { return false }
    return key.withUTF8Buffer { $0.elementsEqual(text[range]) }
  }

  private func fraction(_ range: Range<Int>) -> Double? { Double(String(decoding: text[range], as: UTF8.self)) }

  private func string(_ range: Range<Int>, escaped: Bool) -> String? {
    guard escaped else { return String(validating: text[range], as: UTF8.self) }
    return JSONEscapes.resolved(text[range]).flatMap { String(validating: $0, as: UTF8.self) }
  }
}

/// A text fit to be an identifier or a word in our tables; nil for others.
func plainText(_ text: String?) -> String? {
  guard let text, !text.isEmpty, text.utf8.count <= SignedDataLimits.textLength,
    text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
  else { return nil }
  return text
}

extension Int64 {
  /// From decimal digits with an optional minus sign, and from nothing else.
  init?(asciiDigits digits: ArraySlice<UInt8>) {
    let isNegative = digits.first == UInt8(ascii: "-")
    let digits = isNegative ? digits.dropFirst() : digits
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
      // Counting downwards reaches the smallest value, which has no positive counterpart.
      let (difference, tooSmall) = product.subtractingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
      guard !tooLarge, !tooSmall else { return nil }
      value = difference
    }
    guard isNegative || value != .min else { return nil }
    self = isNegative ? value : -value
  }
}
