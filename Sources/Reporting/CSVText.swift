import Reconciliation

/// Rows of comma-separated values in the making (RFC 4180: comma, CRLF, quotes doubled), as UTF-8.
///
/// A row costs no allocation: a million of them are written every night.
struct CSVText: RowSink {
  typealias Failure = Never

  private(set) var bytes: [UInt8] = []
  /// The day that was printed last, in days since 1970, and how it is printed.
  private var day: Int64?
  private var dayText: [UInt8] = []

  private static let comma = UInt8(ascii: ",")
  private static let quote = UInt8(ascii: "\"")

  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  mutating func blank() { bytes.append(Self.comma) }

  /// Ends the row. Every cell has put a comma behind itself.
  mutating func endRow() {
    bytes[bytes.count - 1] = 0x0D
    bytes.append(0x0A)
  }

  /// Text; such as a spreadsheet would run as a formula is defused with an apostrophe before it.
  mutating func text(_ text: String) {
    var text = text
    text.withUTF8 { content in
      if Self.isPlain(content) {
        bytes.append(contentsOf: content)
      } else {
        appendCarefully(content)
      }
    }
    bytes.append(Self.comma)
  }

  private static func isPlain(_ content: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = content.first else { return true }
    if isFormulaStart(first) { return false }
    for byte in content where byte <= comma && isSpecial(byte) { return false }
    return true
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

  private mutating func appendCarefully(_ content: UnsafeBufferPointer<UInt8>) {
    let isQuoted = content.contains(where: Self.isSpecial)
    if isQuoted { bytes.append(Self.quote) }
    if let first = content.first, Self.isFormulaStart(first) { bytes.append(UInt8(ascii: "'")) }
    for byte in content {
      if byte == Self.quote { bytes.append(Self.quote) }
      bytes.append(byte)
    }
    if isQuoted { bytes.append(Self.quote) }
  }

  mutating func count(_ number: Int64) { decimal(Int128(number), digits: 0) }

  mutating func decimal(_ units: Int128, digits: UInt8) {
    guard let small = Int64(exactly: units) else {
      bytes.append(contentsOf: Money.decimalText(units, digits: digits).utf8)
      bytes.append(Self.comma)
      return
    }
    if small < 0 { bytes.append(UInt8(ascii: "-")) }
    let magnitude = small.magnitude
    if digits == 0 {
      append(magnitude, places: Self.places(magnitude))
    } else {
      let (whole, fraction) = magnitude.quotientAndRemainder(dividingBy: Money.powersOfTen[Int(digits)].magnitude)
      append(whole, places: Self.places(whole))
      bytes.append(UInt8(ascii: "."))
      append(fraction, places: Int(digits))
    }
    bytes.append(Self.comma)
  }

  private static func places(_ number: UInt64) -> Int {
    var (places, rest) = (1, number)
    while rest >= 10 {
      rest /= 10
      places += 1
    }
    return places
  }

  /// The last so many decimal places of a number, zeros in front.
  private mutating func append(_ number: UInt64, places: Int) {
    var rest = number
    bytes.append(contentsOf: repeatElement(0, count: places))
    for index in stride(from: bytes.count - 1, through: bytes.count - places, by: -1) {
      bytes[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
  }

  /// A number, which is never defused; the two infinities are spelt as Table Schema does.
  mutating func figure(_ text: String) {
    switch text {
    case "Infinity": bytes.append(contentsOf: "INF".utf8)
    case "-Infinity": bytes.append(contentsOf: "-INF".utf8)
    default:
      let digits = text.utf8.drop { $0 == UInt8(ascii: "-") }
      guard digits.allSatisfy({ (48...57).contains($0) || $0 == UInt8(ascii: ".") }) else { return self.text(text) }
      bytes.append(contentsOf: text.utf8)
    }
    bytes.append(Self.comma)
  }

  /// RFC 3339 in UTC, whole seconds toward the past: `2026-11-19T22:14:03Z`.
  mutating func instant(_ instant: Instant) {
    let time = CivilTime(seconds: instant.seconds)
    if time.day != day { change(to: time.day) }
    bytes.append(contentsOf: dayText)
    append(UInt8(ascii: "T"), time.hour)
    append(UInt8(ascii: ":"), time.minute)
    append(UInt8(ascii: ":"), time.second)
    bytes.append(UInt8(ascii: "Z"))
    bytes.append(Self.comma)
  }

  /// Nearly all instants of a report lie in a few days.
  private mutating func change(to day: Int64) {
    let date = CivilDate(daysSince1970: day)
    let year = String(date.year.magnitude)
    let text =
      (date.year < 0 ? "-" : "") + String(repeating: "0", count: max(0, 4 - year.utf8.count)) + year
      + (date.month < 10 ? "-0" : "-") + String(date.month) + (date.day < 10 ? "-0" : "-") + String(date.day)
    self.day = day
    dayText = Array(text.utf8)
  }

  private mutating func append(_ mark: UInt8, _ number: UInt8) {
    bytes.append(mark)
    bytes.append(UInt8(ascii: "0") + number / 10)
    bytes.append(UInt8(ascii: "0") + number % 10)
  }
}
