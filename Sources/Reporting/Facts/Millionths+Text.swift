import Foundation
import Reconciliation

extension Millionths {
  /// The number for people, with grouped thousands and at least `least` digits after the point.
  func grouped(digits least: UInt8 = 0) -> String { Money.grouped(text(digits: Int(least))) }

  /// The number in a table for people: a dash for zero.
  func shown(digits least: UInt8 = 0) -> String { self == .zero ? "–" : grouped(digits: least) }

  package var decimal: Decimal { Decimal(string: description) ?? 0 }

  /// The units of the last digit after the point, of which there are at least `least`, and the count of these digits.
  func scaled(digits least: UInt8 = 0) -> (units: Int128, digits: UInt8) {
    var (units, digits) = (count, UInt8(6))
    while digits > least, units % 10 == 0 {
      units /= 10
      digits -= 1
    }
    return (units, digits)
  }
}
