import Reconciliation

/// Column widths in characters. Excel prints a number that does not fit as `###`.
struct ColumnWidths {
  private static let boldWidthFactor = 1.1

  private var widths: [Double]
  /// The largest magnitude of each column, by decimal digits and by sign.
  private var largest: [UInt128]

  init(least: [Double]) {
    widths = least
    largest = Array(repeating: 0, count: least.count * Money.powersOfTen.count * 2)
  }

  subscript(column: Int) -> Double { widths[column] }

  mutating func fit(_ units: Int128, digits: UInt8, column: Int, isBold: Bool = false) {
    let kinds = Money.powersOfTen.count
    let place = (column * kinds + min(Int(digits), kinds - 1)) * 2 + (units < 0 ? 1 : 0)
    // Millions of rows rarely contain a new maximum, so the length is computed for a maximum only.
    guard isBold || units.magnitude > largest[place] else { return }
    largest[place] = max(largest[place], units.magnitude)
    let length = Double(Money.printedLength(units, digits: digits))
    widths[column] = max(widths[column], (isBold ? length * ColumnWidths.boldWidthFactor : length).rounded(.up))
  }
}

extension Money {
  static func printedLength(_ units: Int128, digits: UInt8) -> Int {
    let length = decimalText(units, digits: digits).utf8.count
    let whole = length - (units < 0 ? 1 : 0) - (digits > 0 ? Int(digits) + 1 : 0)
    return length + (whole - 1) / 3
  }
}
