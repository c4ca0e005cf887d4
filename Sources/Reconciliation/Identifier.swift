/// An id or name as a record carries it, compared byte by byte.
///
/// `String` treats canonically equivalent spellings as equal and sorts by Unicode rules; ids that differ in their bytes
/// are different ids, and reports are sorted in byte order.
///
/// Ids of up to 23 bytes, as nearly all are, lie in the value itself: to read, copy, compare and hash one allocates nothing
/// and counts no references, and a night does little else.
public struct Identifier: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  // The first 23 bytes, the first of them in the most significant place, zeros behind; then how many they are. So the
  // order of the numbers is the order of the bytes, an id comes before those that it begins, and NUL is a byte like others.
  private let first: UInt64
  private let second: UInt64
  private let third: UInt64
  /// The bytes after the first 23; nil for an id that has none.
  private let rest: [UInt8]?

  private static let inlineCount = 23
  /// Stands in the place of the number of bytes where there are more; more than any number that stands there.
  private static let isLonger: UInt64 = 0xFF

  public init(_ text: String) {
    var text = text
    self = text.withUTF8 { Identifier(utf8: UnsafeRawBufferPointer($0)) }
  }

  public init(stringLiteral value: String) { self.init(value) }

  /// From bytes that are valid UTF-8.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    let count = bytes.count
    func word(at offset: Int) -> UInt64 {
      UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    // The last word that is not full is read from the end, together with bytes that the shift drops again.
    switch count {
    case ..<8:
      first = bytes.reduce(0) { $0 << 8 | UInt64($1) } << UInt64(8 * (8 - count))
      (second, third) = (0, UInt64(count))
    case ..<16:
      first = word(at: 0)
      (second, third) = (word(at: count - 8) << UInt64(8 * (16 - count)), UInt64(count))
    case ...Identifier.inlineCount:
      (first, second) = (word(at: 0), word(at: 8))
      third = word(at: count - 8) << UInt64(8 * (24 - count)) | UInt64(count)
    default:
      (first, second) = (word(at: 0), word(at: 8))
      third = word(at: 16) | Identifier.isLonger
    }
    rest = count > Identifier.inlineCount ? [UInt8](bytes[Identifier.inlineCount...]) : nil
  }

  /// The id as it was read.
  public var text: String {
    var text = ""
    withUTF8 { text = String(decoding: $0, as: UTF8.self) }
    return text
  }

  /// The bytes of the id.
  public var bytes: [UInt8] {
    var bytes: [UInt8] = []
    withUTF8 { bytes = [UInt8]($0) }
    return bytes
  }

  public var description: String { text }

  public var isEmpty: Bool { third & 0xFF == 0 }

  /// Lends the bytes of the id to `body` for its own duration.
  public func withUTF8<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if rest != nil { return try withLongUTF8(body) }
    let words = (first.bigEndian, second.bigEndian, third.bigEndian)
    let count = Int(truncatingIfNeeded: third & 0xFF)
    return try withUnsafeBytes(of: words) { (words) throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: words[..<count]))
    }
  }

  private func withLongUTF8<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: (first.bigEndian, second.bigEndian, third.bigEndian)) {
      bytes += $0[..<Identifier.inlineCount]
    }
    bytes += rest ?? []
    return try bytes.withUnsafeBufferPointer { (bytes) throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
  }

  public static func == (left: Identifier, right: Identifier) -> Bool {
    left.first == right.first && left.second == right.second && left.third == right.third
      && (left.rest == nil || left.rest == right.rest)
  }

  public static func < (left: Identifier, right: Identifier) -> Bool {
    left.compareBytes(right) < 0
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(first)
    hasher.combine(second)
    hasher.combine(third)
    if let rest { hasher.combine(rest) }
  }

  /// Negative, zero or positive as this id sorts before, equal to or after the other in byte order.
  public func compareBytes(_ other: Identifier) -> Int {
    if first != other.first { return first < other.first ? -1 : 1 }
    if second != other.second { return second < other.second ? -1 : 1 }
    if third != other.third { return third < other.third ? -1 : 1 }
    guard let rest, let otherRest = other.rest, rest != otherRest else { return 0 }
    return rest.lexicographicallyPrecedes(otherRest) ? -1 : 1
  }
}
