import Foundation
import Reconciliation

/// An exact decimal number: units of its last digit, and the count of digits after the point.
package struct ExactDecimal: Hashable, Sendable, CustomStringConvertible {
  // Two halves, because Swift 6.3.1 misaligns an optional of a struct that holds an Int128.
  private let upper: Int64
  private let lower: UInt64
  package var digits: UInt8

  package init(scaled: Int128, digits: UInt8) {
    upper = Int64(truncatingIfNeeded: scaled >> 64)
    lower = UInt64(truncatingIfNeeded: scaled)
    self.digits = digits
  }

  package var scaled: Int128 { Int128(upper) << 64 | Int128(lower) }

  package var description: String { NSDecimalNumber(decimal: decimal).stringValue }

  /// The number for people, with grouped thousands and at least `decimals` digits after the point.
  package func text(decimals: UInt8 = 0) -> String { Money.grouped(decimalText(decimals: decimals)) }

  /// The number for machines, with at least `decimals` digits after the point.
  func decimalText(decimals: UInt8) -> String {
    let parts = description.split(separator: ".")
    var fraction = parts.count > 1 ? String(parts[1]) : ""
    fraction += String(repeating: "0", count: max(0, Int(decimals) - fraction.count))
    return String(parts[0]) + (fraction.isEmpty ? "" : "." + fraction)
  }

  /// The number in a table for people: a dash for zero.
  func shown(decimals: UInt8 = 0) -> String { scaled == 0 ? "–" : text(decimals: decimals) }

  package var decimal: Decimal {
    let magnitude = Decimal(string: String(scaled.magnitude)) ?? 0
    let value = magnitude / pow(10, Int(digits))
    return scaled < 0 ? -value : value
  }
}
