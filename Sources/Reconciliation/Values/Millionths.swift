/// An exact decimal with up to six fraction digits, for units, prices and shares in Apple's reports.
/// It has 128 bits, so that sums of accepted values cannot overflow.
public struct Millionths: Hashable, Comparable, Sendable, AdditiveArithmetic, CustomStringConvertible {
  public var count: Int128

  public init(count: Int128) { self.count = count }

  public init(_ whole: Int) { count = Int128(whole) * 1_000_000 }

  public static let zero = Millionths(count: 0)
  public static let one = Millionths(1)

  /// From thousandths of the major unit, Apple's `price`.
  public init(thousandths: Int64) { count = Int128(thousandths) * 1_000 }

  public init(_ money: Money) {
    count = Int128(money.minorUnits) * Int128(Money.millionthsPerMinorUnit(money.currency))
  }

  /// nil: no whole number of minor units.
  public func money(in currency: Currency) -> Money? {
    let (units, rest) = count.quotientAndRemainder(dividingBy: Int128(Money.millionthsPerMinorUnit(currency)))
    guard rest == 0, let minorUnits = Int64(exactly: units) else { return nil }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  /// Parses an optional minus, up to 18 digits, and an optional point with one to six digits. nil for anything else.
  public init?(utf8 bytes: some Collection<UInt8>) {
    guard let count = Self.scaled(bytes, decimals: 6) else { return nil }
    self.count = count
  }

  /// Parses like `init(utf8:)` with up to `decimals` (at most 18) fraction digits; returns the number times 10^decimals.
  public static func scaled(_ bytes: some Collection<UInt8>, decimals: Int) -> Int128? {
    var rest = bytes[...]
    let isNegative = rest.first == UInt8(ascii: "-")
    if isNegative { rest = rest.dropFirst() }
    var value: Int128 = 0
    var (whole, fraction) = (0, -1)
    for byte in rest {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        value = value * 10 + Int128(byte - UInt8(ascii: "0"))
        if fraction >= 0 { fraction += 1 } else { whole += 1 }
        if whole > 18 || fraction > decimals { return nil }
      case UInt8(ascii: "."):
        if fraction >= 0 || whole == 0 { return nil }
        fraction = 0
      default: return nil
      }
    }
    guard whole > 0, fraction != 0 else { return nil }
    for _ in max(0, fraction)..<decimals { value *= 10 }
    return isNegative ? -value : value
  }

  public init?(_ text: String) { self.init(utf8: Array(text.utf8)) }

  public static func < (left: Millionths, right: Millionths) -> Bool { left.count < right.count }
  public static func + (left: Millionths, right: Millionths) -> Millionths {
    Millionths(count: left.count + right.count)
  }
  public static func - (left: Millionths, right: Millionths) -> Millionths {
    Millionths(count: left.count - right.count)
  }
  public static prefix func - (value: Millionths) -> Millionths { Millionths(count: -value.count) }

  /// The exact product; nil if it needs more than six fraction digits or overflows.
  public func times(_ other: Millionths) -> Millionths? {
    let (product, overflow) = count.multipliedReportingOverflow(by: other.count)
    guard !overflow else { return nil }
    let (quotient, remainder) = product.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder == 0 ? Millionths(count: quotient) : nil
  }

  public var magnitude: Millionths { Millionths(count: count < 0 ? -count : count) }

  /// The number with at least `least` fraction digits: `3`, `0.99`, `0.005`.
  public func text(digits least: Int) -> String {
    let magnitude = count.magnitude
    let (whole, rest) = magnitude.quotientAndRemainder(dividingBy: 1_000_000)
    var fraction = String(rest)
    fraction = String(repeating: "0", count: 6 - fraction.utf8.count) + fraction
    while fraction.utf8.count > least, fraction.last == "0" { fraction.removeLast() }
    return (count < 0 ? "-" : "") + String(whole) + (fraction.isEmpty ? "" : "." + fraction)
  }

  public var description: String { text(digits: 0) }
}
