import Reconciliation

/// Rows of comma-separated values in the making (RFC 4180: comma, CRLF, quotes doubled), as UTF-8.
///
/// A row costs no allocation: millions of them are written every night.
struct CSVText: RowSink, ~Copyable {
  typealias Failure = Never

  private var storage: UnsafeMutableBufferPointer<UInt8>
  /// How many bytes were written.
  private(set) var count = 0

  private static let comma = UInt8(ascii: ",")
  private static let quote = UInt8(ascii: "\"")

  init(capacity: Int) { storage = .allocate(capacity: max(capacity, 64)) }

  deinit { storage.deallocate() }

  /// What was written.
  var bytes: [UInt8] { withBytes { [UInt8]($0) } }

  /// Lends what was written.
  borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[..<count]))
  }

  mutating func removeAll() { count = 0 }

  // MARK: - Cells

  mutating func blank() {
    reserve(1)
    put(Self.comma)
  }

  /// Ends the row. Every cell has put a comma behind itself.
  mutating func endRow() {
    reserve(1)
    storage[count - 1] = 0x0D
    put(0x0A)
  }

  /// Text; such as a spreadsheet would run as a formula is defused with an apostrophe before it.
  mutating func text(_ text: String) {
    var text = text
    text.withUTF8 { self.text(UnsafeRawBufferPointer($0)) }
  }

  mutating func id(_ id: Identifier) { id.withUTF8 { text($0) } }

  private mutating func text(_ content: UnsafeRawBufferPointer) {
    // Every byte doubled, both quotes, the apostrophe and the comma.
    reserve(2 * content.count + 4)
    if Self.isPlain(content) {
      let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(storage)[count...])
      target.copyMemory(from: content)
      count += content.count
    } else {
      putCarefully(content)
    }
    put(Self.comma)
  }

  private static func isPlain(_ content: UnsafeRawBufferPointer) -> Bool {
    guard let first = content.first else { return true }
    if isFormulaStart(first) { return false }
    guard content.count >= 8 else { return !content.contains(where: isSpecial) }
    // Eight bytes at a time; the last ones may be looked at twice.
    var found: UInt64 = 0
    for start in stride(from: 0, to: content.count - 8, by: 8) { found |= specials(content, at: start) }
    return found | specials(content, at: content.count - 8) == 0
  }

  /// Not 0 when one of eight bytes is special.
  private static func specials(_ content: UnsafeRawBufferPointer, at start: Int) -> UInt64 {
    let word = content.loadUnaligned(fromByteOffset: start, as: UInt64.self)
    func marks(_ byte: UInt8) -> UInt64 {
      // A byte that is 0 becomes 0xFF and had its highest bit clear (Mycroft 1987).
      let rest = word ^ UInt64(byte) &* 0x0101_0101_0101_0101
      return (rest &- 0x0101_0101_0101_0101) & ~rest & 0x8080_8080_8080_8080
    }
    return marks(comma) | marks(quote) | marks(0x0D) | marks(0x0A)
  }

  /// What makes a spreadsheet take text for a formula (OWASP, CSV injection).
  private static func isFormulaStart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "@"), 0x09, 0x0D: true
    default: false
    }
  }

  private static func isSpecial(_ byte: UInt8) -> Bool {
    byte == comma || byte == quote || byte == 0x0D || byte == 0x0A
  }

  private mutating func putCarefully(_ content: UnsafeRawBufferPointer) {
    let isQuoted = content.contains(where: Self.isSpecial)
    if isQuoted { put(Self.quote) }
    if let first = content.first, Self.isFormulaStart(first) { put(UInt8(ascii: "'")) }
    for byte in content {
      if byte == Self.quote { put(Self.quote) }
      put(byte)
    }
    if isQuoted { put(Self.quote) }
  }

  mutating func count(_ number: Int64) { decimal(Int128(number), digits: 0) }

  mutating func decimal(_ units: Int128, digits: UInt8) {
    guard let small = Int64(exactly: units) else {
      // The longest number of 128 bits has 39 places, and more zeros are not put before a point than a currency has.
      reserve(64)
      for byte in Money.decimalText(units, digits: digits).utf8 { put(byte) }
      return put(Self.comma)
    }
    reserve(32)
    if small < 0 { put(UInt8(ascii: "-")) }
    let magnitude = small.magnitude
    if digits == 0 {
      put(magnitude, places: Self.places(magnitude))
    } else {
      let (whole, fraction) = magnitude.quotientAndRemainder(dividingBy: Money.powersOfTen[Int(digits)].magnitude)
      put(whole, places: Self.places(whole))
      put(UInt8(ascii: "."))
      put(fraction, places: Int(digits))
    }
    put(Self.comma)
  }

  /// A number, which is never defused; the two infinities are spelt as Table Schema does.
  mutating func figure(_ text: String) {
    let number =
      switch text {
      case "Infinity": "INF"
      case "-Infinity": "-INF"
      default: text
      }
    let digits = text.utf8.drop { $0 == UInt8(ascii: "-") }
    guard number != text || digits.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ".") }) else {
      return self.text(text)
    }
    reserve(number.utf8.count + 1)
    for byte in number.utf8 { put(byte) }
    put(Self.comma)
  }

  /// RFC 3339 in UTC, whole seconds toward the past: `2026-11-19T22:14:03Z`.
  mutating func instant(_ instant: Instant) {
    let time = CivilTime(seconds: instant.seconds)
    let date = CivilDate(daysSince1970: time.day)
    reserve(32)
    if date.year < 0 { put(UInt8(ascii: "-")) }
    let year = date.year.magnitude
    put(year, places: max(4, Self.places(year)))
    put(UInt8(ascii: "-"), date.month)
    put(UInt8(ascii: "-"), date.day)
    put(UInt8(ascii: "T"), time.hour)
    put(UInt8(ascii: ":"), time.minute)
    put(UInt8(ascii: ":"), time.second)
    put(UInt8(ascii: "Z"))
    put(Self.comma)
  }

  // MARK: - Bytes

  /// Makes room for so many bytes more; what is put afterwards goes without a look.
  private mutating func reserve(_ more: Int) {
    guard storage.count - count < more else { return }
    let larger = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 2 * storage.count + more)
    _ = larger.update(fromContentsOf: storage[..<count])
    storage.deallocate()
    storage = larger
  }

  private mutating func put(_ byte: UInt8) {
    storage[count] = byte
    count += 1
  }

  /// The last so many decimal places of a number, zeros in front.
  private mutating func put(_ number: UInt64, places: Int) {
    var rest = number
    for index in stride(from: count + places - 1, through: count, by: -1) {
      storage[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
    count += places
  }

  private mutating func put(_ mark: UInt8, _ number: UInt8) {
    put(mark)
    put(UInt8(ascii: "0") + number / 10)
    put(UInt8(ascii: "0") + number % 10)
  }

  private static func places(_ number: UInt64) -> Int {
    var (places, rest) = (1, number)
    while rest >= 10 {
      rest /= 10
      places += 1
    }
    return places
  }
}
