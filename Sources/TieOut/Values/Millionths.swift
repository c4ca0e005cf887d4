/// An exact decimal with up to six fraction digits, for units, prices and shares in Apple's reports. It has 128 bits,
/// so sums of accepted values cannot overflow.
package struct Millionths: Hashable, Comparable, Sendable, AdditiveArithmetic, CustomStringConvertible {
  package var count: Int128

  package init(count: Int128) { self.count = count }

  package init(_ whole: Int) { count = Int128(whole) * 1_000_000 }

  package static let zero = Millionths(count: 0)
  package static let one = Millionths(1)

  /// From thousandths of the major unit, Apple's `price`.
  package init(thousandths: Int64) { count = Int128(thousandths) * 1_000 }

  /// Parses an optional minus, up to 18 digits, and an optional point with one to six digits. nil for anything else.
  package init?(utf8 bytes: some Collection<UInt8>) {
    guard let count = Self.scaled(bytes, decimals: 6) else { return nil }
    self.count = count
  }

  /// Parses like `init(utf8:)` with up to `decimals` (at most 18) fraction digits. Returns the number times
  /// 10^decimals.
  static func scaled(_ bytes: some Collection<UInt8>, decimals: Int) -> Int128? {
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

  package init?(_ text: String) { self.init(utf8: Array(text.utf8)) }

  package static func < (left: Millionths, right: Millionths) -> Bool { left.count < right.count }
  package static func + (left: Millionths, right: Millionths) -> Millionths {
    Millionths(count: left.count + right.count)
  }
  package static func - (left: Millionths, right: Millionths) -> Millionths {
    Millionths(count: left.count - right.count)
  }
  package static prefix func - (value: Millionths) -> Millionths { Millionths(count: -value.count) }

  /// The exact product; nil if it needs more than six fraction digits or overflows.
  package func times(_ other: Millionths) -> Millionths? {
    let (product, overflow) = count.multipliedReportingOverflow(by: other.count)
    guard !overflow else { return nil }
    let (quotient, remainder) = product.quotientAndRemainder(dividingBy: 1_000_000)
    return remainder == 0 ? Millionths(count: quotient) : nil
  }

  package var magnitude: Millionths { Millionths(count: count < 0 ? -count : count) }

  /// The number with at least `least` fraction digits: `3`, `0.99`, `0.005`.
  package func text(digits least: Int) -> String {
    let magnitude = count.magnitude
    let (whole, rest) = magnitude.quotientAndRemainder(dividingBy: 1_000_000)
    var fraction = String(rest)
    fraction = String(repeating: "0", count: 6 - fraction.utf8.count) + fraction
    while fraction.utf8.count > least, fraction.last == "0" { fraction.removeLast() }
    return (count < 0 ? "-" : "") + String(whole) + (fraction.isEmpty ? "" : "." + fraction)
  }

  package var description: String { text(digits: 0) }
}
