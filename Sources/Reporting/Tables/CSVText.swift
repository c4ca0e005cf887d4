import Reconciliation

struct CSVDialect: Hashable, Sendable {
  var separator = UInt8(ascii: ",")
  var decimalMark = UInt8(ascii: ".")
  var timeMark = UInt8(ascii: "T")
  /// True if times end with the `Z` of UTC.
  var namesZone = true
  /// True if IDs are written as `="…"`, which keeps Excel from reading them as numbers.
  var marksIds = false
  var mark: [UInt8] = []

  static let plain = CSVDialect()
}

/// A writer of CSV rows as UTF-8 (RFC 4180: comma, CRLF, quotes doubled). A row allocates nothing, because a night
/// writes millions.
struct CSVText: ~Copyable {
  private let dialect: CSVDialect
  private var storage: UnsafeMutableBufferPointer<UInt8>
  private(set) var count = 0

  private static let quote = UInt8(ascii: "\"")

  init(capacity: Int, dialect: CSVDialect = .plain) {
    self.dialect = dialect
    storage = .allocate(capacity: max(capacity, 64))
  }

  deinit { storage.deallocate() }

  var bytes: [UInt8] { withBytes { [UInt8]($0) } }

  /// The written bytes, valid until the next write.
  var bytesInPlace: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[..<count])
  }

  borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(storage)[..<count]))
  }

  mutating func removeAll() { count = 0 }

  // MARK: - Cells

  mutating func put(_ cell: Cell, isId: Bool) {
    switch cell {
    case .blank: blank()
    case .text(let text) where isId && dialect.marksIds: mark(text)
    case .id(let id) where isId && dialect.marksIds: mark(id.text)
    case .text(let text): self.text(text)
    case .id(let id): self.id(id)
    case .count(let number): decimal(Int128(number), digits: 0)
    case .decimal(let units, let digits): decimal(units, digits: digits)
    case .figure(let text): figure(text)
    case .instant(let instant): self.instant(instant)
    case .day(let day): self.day(day)
    }
  }

  mutating func text(_ text: BorrowedText) { self.text(text.bytes) }

  mutating func word(_ text: StaticString) {
    self.text(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func code(of currency: Currency) { withUnsafeBytes(of: currency.letters) { text($0) } }

  mutating func instant(_ instant: Instant?) {
    if let instant { self.instant(instant) } else { blank() }
  }

  mutating func blank() {
    reserve(1)
    put(dialect.separator)
  }

  /// Adds text that was made elsewhere in the same dialect.
  mutating func append(_ content: UnsafeRawBufferPointer) {
    reserve(content.count)
    UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(storage)[count...]).copyMemory(from: content)
    count += content.count
  }

  /// Ends the row, and overwrites the comma of its last cell.
  mutating func endRow() {
    reserve(1)
    storage[count - 1] = 0x0D
    put(0x0A)
  }

  /// Adds text; an apostrophe disarms text that a spreadsheet would run as a formula.
  mutating func text(_ text: String) {
    var text = text
    text.withUTF8 { self.text(UnsafeRawBufferPointer($0)) }
  }

  mutating func day(_ text: String) { put(text: text) }

  mutating func id(_ id: Identifier) { id.withUTF8 { text($0) } }

  mutating func text(_ content: UnsafeRawBufferPointer) {
    // Every byte doubled, both quotes, the apostrophe and the comma.
    reserve(2 * content.count + 4)
    if Self.isPlain(content, separator: dialect.separator) {
      let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(storage)[count...])
      target.copyMemory(from: content)
      count += content.count
    } else {
      putQuotedIfNeeded(content)
    }
    put(dialect.separator)
  }

  private static func isPlain(_ content: UnsafeRawBufferPointer, separator: UInt8) -> Bool {
    guard let first = content.first else { return true }
    if isFormulaStart(first) { return false }
    guard content.count >= 8 else { return !content.contains { isSpecial($0, separator) } }
    // Eight bytes at a time; the last ones overlap.
    var found: UInt64 = 0
    for start in stride(from: 0, to: content.count - 8, by: 8) { found |= specials(content, at: start, separator) }
    return found | specials(content, at: content.count - 8, separator) == 0
  }

  /// Not 0 if one of eight bytes is special.
  private static func specials(_ content: UnsafeRawBufferPointer, at start: Int, _ separator: UInt8) -> UInt64 {
    let word = content.loadUnaligned(fromByteOffset: start, as: UInt64.self)
    func marks(_ byte: UInt8) -> UInt64 {
      // Finds zero bytes: a byte that is 0 becomes 0xFF with its highest bit clear before (Mycroft 1987).
      let rest = word ^ UInt64(byte) &* 0x0101_0101_0101_0101
      return (rest &- 0x0101_0101_0101_0101) & ~rest & 0x8080_8080_8080_8080
    }
    return marks(separator) | marks(quote) | marks(0x0D) | marks(0x0A)
  }

  /// True for a character that starts a formula (OWASP, CSV injection).
  private static func isFormulaStart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "@"), 0x09, 0x0D: true
    default: false
    }
  }

  private static func isSpecial(_ byte: UInt8, _ separator: UInt8) -> Bool {
    byte == separator || byte == quote || byte == 0x0D || byte == 0x0A
  }

  private mutating func putQuotedIfNeeded(_ content: UnsafeRawBufferPointer) {
    let separator = dialect.separator
    let isQuoted = content.contains { Self.isSpecial($0, separator) }
    if isQuoted { put(Self.quote) }
    if let first = content.first, Self.isFormulaStart(first) { put(UInt8(ascii: "'")) }
    for byte in content {
      if byte == Self.quote { put(Self.quote) }
      put(byte)
    }
    if isQuoted { put(Self.quote) }
  }

  /// Writes an ID as a formula that returns it, so that Excel shows all its digits.
  private mutating func mark(_ text: String) {
    // Excel's limit for text inside a formula is 255 characters.
    guard text.utf16.count <= 250, !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else {
      return self.text(text)
    }
    let doubled = text.replacing("\"", with: "\"\"\"\"")
    put(text: "\"=\"\"\(doubled)\"\"\"")
  }

  private mutating func put(text: String) {
    reserve(text.utf8.count + 1)
    for byte in text.utf8 { put(byte) }
    put(dialect.separator)
  }

  mutating func decimal(_ units: Int128, digits: UInt8) {
    guard let small = Int64(exactly: units) else {
      // A number of 128 bits has at most 39 digits, and no currency adds more zeros than these 64 bytes hold.
      reserve(64)
      for byte in Money.decimalText(units, digits: digits).utf8 {
        put(byte == UInt8(ascii: ".") ? dialect.decimalMark : byte)
      }
      return put(dialect.separator)
    }
    reserve(32)
    if small < 0 { put(UInt8(ascii: "-")) }
    let magnitude = small.magnitude
    if digits == 0 {
      put(magnitude, places: Self.places(magnitude))
    } else {
      let (whole, fraction) = magnitude.quotientAndRemainder(dividingBy: Money.powersOfTen[Int(digits)].magnitude)
      put(whole, places: Self.places(whole))
      put(dialect.decimalMark)
      put(fraction, places: Int(digits))
    }
    put(dialect.separator)
  }

  mutating func figure(_ text: String) {
    put(text: text.replacing(".", with: String(UnicodeScalar(dialect.decimalMark))))
  }

  mutating func instant(_ instant: Instant) {
    let time = CivilTime(seconds: instant.seconds)
    let date = CivilDate(daysSince1970: time.day)
    reserve(32)
    if date.year < 0 { put(UInt8(ascii: "-")) }
    let year = date.year.magnitude
    put(year, places: max(4, Self.places(year)))
    put(UInt8(ascii: "-"), date.month)
    put(UInt8(ascii: "-"), date.day)
    put(dialect.timeMark, time.hour)
    put(UInt8(ascii: ":"), time.minute)
    put(UInt8(ascii: ":"), time.second)
    if dialect.namesZone { put(UInt8(ascii: "Z")) }
    put(dialect.separator)
  }

  // MARK: - Bytes

  /// Makes room for bytes that are then written without a check of the capacity.
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
