/// An id or name as a record carries it, compared byte by byte.
///
/// `String` treats canonically equivalent spellings as equal and sorts by Unicode rules; ids that differ in their bytes
/// are different ids, and reports are sorted in byte order.
///
/// Ids of up to 39 bytes, UUIDs among them and nearly all others, lie in the value itself: to read, copy, compare and hash
/// one allocates nothing and counts no references, and a night does little else.
public struct Identifier: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  // The first 39 bytes, the first of them in the most significant place, zeros behind; then how many they are. So the
  // order of the numbers is the order of the bytes, an id comes before those that it begins, and NUL is a byte like others.
  private let first: UInt64
  private let second: UInt64
  private let third: UInt64
  private let fourth: UInt64
  private let fifth: UInt64
  /// The bytes after the first 39; nil for an id that has none.
  private let rest: [UInt8]?

  private static let inlineCount = 39
  /// Stands in the place of the number of bytes where there are more; more than any number that stands there.
  private static let isLonger: UInt64 = 0xFF

  public init(_ text: String) {
    var text = text
    self = text.withUTF8 { Identifier(utf8: UnsafeRawBufferPointer($0)) }
  }

  public init(stringLiteral value: String) { self.init(value) }

  /// The empty one.
  public init() { (first, second, third, fourth, fifth, rest) = (0, 0, 0, 0, 0, nil) }

  /// From bytes that are valid UTF-8.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    let isLong = bytes.count > Identifier.inlineCount
    let count = isLong ? Identifier.inlineCount : bytes.count
    // An empty buffer may have no address; nothing is read through the one that stands in.
    let start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    first = Identifier.word(start, count, at: 0)
    second = Identifier.word(start, count, at: 8)
    // Numbers and words end here.
    if count <= 16 {
      (third, fourth, fifth, rest) = (0, 0, UInt64(count), nil)
      return
    }
    third = Identifier.word(start, count, at: 16)
    fourth = Identifier.word(start, count, at: 24)
    fifth = Identifier.word(start, count, at: 32) | (isLong ? Identifier.isLonger : UInt64(count))
    rest = isLong ? [UInt8](bytes[Identifier.inlineCount...]) : nil
  }

  /// Eight bytes of so many as a number, zeros behind the last one.
  @inline(__always)
  private static func word(_ start: UnsafeRawPointer, _ count: Int, at place: Int) -> UInt64 {
    let left = count - place
    if left <= 0 { return 0 }
    if left >= 8 { return UInt64(bigEndian: start.loadUnaligned(fromByteOffset: place, as: UInt64.self)) }
    if count >= 8 {
      // The last eight, those before the place pushed out.
      return UInt64(bigEndian: start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)) << UInt64(64 - 8 * left)
    }
    // Two halves that may share bytes, or up to three single ones.
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

  public var isEmpty: Bool { fifth & 0xFF == 0 }

  /// Of its bytes.
  public var count: Int { rest.map { Identifier.inlineCount + $0.count } ?? Int(truncatingIfNeeded: fifth & 0xFF) }

  /// The bytes that lie in the value, in their order.
  private var words: (UInt64, UInt64, UInt64, UInt64, UInt64) {
    (first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian, fifth.bigEndian)
  }

  /// Whether it can be a transaction ID of Apple's.
  ///
  /// Up to 64 of ASCII's letters and digits, `-` and `_`, with a digit other than 0 among them: `null`, `(null)`, `0` and
  /// `Optional("2000…")` are no IDs.
  public var canBeApples: Bool { withUTF8(Identifier.canBeApples) }

  /// Whether bytes can be a transaction ID of Apple's.
  public static func canBeApples(_ bytes: UnsafeRawBufferPointer) -> Bool {
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

  /// Lends the bytes of the id to `body` for its own duration.
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
    // The fifth word holds how many bytes there are: what is empty needs no mixing.
    if fifth & 0xFF > 8 { hasher.combine(second) }
    if fifth & 0xFF > 16 { hasher.combine(third) }
    if fifth & 0xFF > 24 { hasher.combine(fourth) }
    if let rest { hasher.combine(rest) }
  }

  /// Negative, zero or positive as this id sorts before, equal to or after the other in byte order.
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
