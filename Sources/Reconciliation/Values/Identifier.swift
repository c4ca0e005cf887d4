/// An ID or a name, compared and sorted byte by byte.
/// `String` treats canonically equivalent spellings as equal and sorts by Unicode rules. Up to 39 bytes, enough for
/// UUIDs and nearly all other IDs, are stored inline, without allocation and reference counting.
public struct Identifier: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  // The first 39 bytes in big-endian order, zeros behind, then their count. So numbers sort as bytes do, a prefix sorts
  // before longer IDs, and NUL is an ordinary byte.
  private let first: UInt64
  private let second: UInt64
  private let third: UInt64
  private let fourth: UInt64
  private let fifth: UInt64
  private let rest: [UInt8]?

  private static let inlineCount = 39
  /// The count of a longer ID, above every inline count.
  private static let isLonger: UInt64 = 0xFF

  public init(_ text: String) {
    var text = text
    self = text.withUTF8 { Identifier(utf8: UnsafeRawBufferPointer($0)) }
  }

  public init(stringLiteral value: String) { self.init(value) }

  public init() { (first, second, third, fourth, fifth, rest) = (0, 0, 0, 0, 0, nil) }

  /// Copies valid UTF-8.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    let isLong = bytes.count > Identifier.inlineCount
    let count = isLong ? Identifier.inlineCount : bytes.count
    // An empty buffer may have no address. Nothing is read through the substitute.
    let start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    first = Identifier.word(start, count, at: 0)
    second = Identifier.word(start, count, at: 8)
    if count <= 16 {
      (third, fourth, fifth, rest) = (0, 0, UInt64(count), nil)
      return
    }
    third = Identifier.word(start, count, at: 16)
    fourth = Identifier.word(start, count, at: 24)
    fifth = Identifier.word(start, count, at: 32) | (isLong ? Identifier.isLonger : UInt64(count))
    rest = isLong ? [UInt8](bytes[Identifier.inlineCount...]) : nil
  }

  @inline(__always)
  private static func word(_ start: UnsafeRawPointer, _ count: Int, at place: Int) -> UInt64 {
    let left = count - place
    if left <= 0 { return 0 }
    if left >= 8 { return UInt64(bigEndian: start.loadUnaligned(fromByteOffset: place, as: UInt64.self)) }
    if count >= 8 {
      // The last eight bytes, with those before `place` shifted out.
      return UInt64(bigEndian: start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)) << UInt64(64 - 8 * left)
    }
    // Two halves that may overlap, or up to three single bytes.
    if left >= 4 {
      let head = UInt64(UInt32(bigEndian: start.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
      let tail = UInt64(UInt32(bigEndian: start.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)))
      return head << 32 | tail << UInt64(64 - 8 * left)
    }
    func byte(_ offset: Int) -> UInt64 {
      UInt64(start.load(fromByteOffset: place + offset, as: UInt8.self)) << UInt64(56 - 8 * offset)
    }
    return byte(0) | byte(left / 2) | byte(left - 1)
  }

  public var text: String {
    var text = ""
    withUTF8 { text = String(decoding: $0, as: UTF8.self) }
    return text
  }

  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    withUTF8 { bytes = [UInt8]($0) }
    return bytes
  }

  public var description: String { text }

  public var isEmpty: Bool { fifth & 0xFF == 0 }

  public var count: Int { rest.map { Identifier.inlineCount + $0.count } ?? Int(truncatingIfNeeded: fifth & 0xFF) }

  private var words: (UInt64, UInt64, UInt64, UInt64, UInt64) {
    (first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian, fifth.bigEndian)
  }

  /// True if it could be one of Apple's transaction IDs: 1 to 64 ASCII letters, digits, `-` and `_`.
  /// A digit other than 0 is needed, which excludes `null`, `(null)`, `0` and `Optional("2000…")`.
  public var canBeTransactionID: Bool { withUTF8(Identifier.canBeTransactionID) }

  public static func canBeTransactionID(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (1...64).contains(bytes.count) else { return false }
    var hasDigit = false
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "1")...UInt8(ascii: "9"): hasDigit = true
      case UInt8(ascii: "0"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "-"), UInt8(ascii: "_"):
        break
      default: return false
      }
    }
    return hasDigit
  }

  /// Calls `body` with the bytes, which are valid during the call only.
  public func withUTF8<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if rest != nil { return try withLongUTF8(body) }
    let count = Int(truncatingIfNeeded: fifth & 0xFF)
    return try withUnsafeBytes(of: words) { (words) throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: words[..<count]))
    }
  }

  private func withLongUTF8<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: words) { bytes += $0[..<Identifier.inlineCount] }
    bytes += rest ?? []
    return try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
  }

  public static func == (left: Identifier, right: Identifier) -> Bool {
    left.first == right.first && left.second == right.second && left.third == right.third
      && left.fourth == right.fourth && left.fifth == right.fifth && (left.rest == nil || left.rest == right.rest)
  }

  public static func < (left: Identifier, right: Identifier) -> Bool {
    left.compareBytes(right) < 0
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(first)
    hasher.combine(fifth)
    // The fifth word holds the count, so that empty words need no mixing.
    if fifth & 0xFF > 8 { hasher.combine(second) }
    if fifth & 0xFF > 16 { hasher.combine(third) }
    if fifth & 0xFF > 24 { hasher.combine(fourth) }
    if let rest { hasher.combine(rest) }
  }

  /// Negative, zero or positive if this ID sorts before, equal to or after the other one.
  public func compareBytes(_ other: Identifier) -> Int {
    if first != other.first { return first < other.first ? -1 : 1 }
    if second != other.second { return second < other.second ? -1 : 1 }
    if third != other.third { return third < other.third ? -1 : 1 }
    if fourth != other.fourth { return fourth < other.fourth ? -1 : 1 }
    if fifth != other.fifth { return fifth < other.fifth ? -1 : 1 }
    guard let rest, let otherRest = other.rest, rest != otherRest else { return 0 }
    return rest.lexicographicallyPrecedes(otherRest) ? -1 : 1
  }
}

/// IDs come from customers, and their texts are shown in terminals, logs and mails.
extension String {
  /// Escapes characters that control a terminal, change the display order or are invisible. A carriage return before a
  /// line feed ends a line of CSV, and stays.
  public var escapedForDisplay: String {
    guard unicodeScalars.contains(where: \.isActive) else { return self }
    var plain = ""
    for character in self {
      guard character != "\r\n", character.unicodeScalars.contains(where: \.isActive) else {
        plain.append(character)
        continue
      }
      for scalar in character.unicodeScalars { plain += scalar.escapedForDisplay }
    }
    return plain
  }

  /// The escaped text with a blank for each tab and line feed, so that no ID can add a line to a text.
  public var inOneLine: String {
    func isBreak(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\n") }
    guard utf8.contains(where: isBreak) else { return escapedForDisplay }
    return String(decoding: utf8.map { isBreak($0) ? UInt8(ascii: " ") : $0 }, as: UTF8.self).escapedForDisplay
  }
}

extension Unicode.Scalar {
  // Control characters except tab and line feed, marks and overrides of direction, line separators, and characters
  // without a glyph. Joiners stay, because words of some languages and emoji need them.
  fileprivate var isActive: Bool {
    switch value {
    case 0x09, 0x0A: false
    case 0..<0x20, 0x7F..<0xA0, 0xAD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF:
      true
    default: false
    }
  }

  fileprivate var escapedForDisplay: String {
    guard isActive else { return String(self) }
    let digits = String(value, radix: 16, uppercase: true)
    return "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}
