import Foundation

/// An exact decimal number: so many units of its last digit, and so many digits after the point.
package struct Figure: Hashable, Sendable, CustomStringConvertible {
  package var scaled: Int64
  package var digits: UInt8

  package init(scaled: Int64, digits: UInt8) {
    self.scaled = scaled
    self.digits = digits
  }

  package var description: String { NSDecimalNumber(decimal: decimal).stringValue }

  /// For JSON, where counts are numbers.
  package var decimal: Decimal {
    let magnitude = Decimal(string: String(scaled.magnitude)) ?? 0
    let value = magnitude / pow(10, Int(digits))
    return scaled < 0 ? -value : value
  }
}
