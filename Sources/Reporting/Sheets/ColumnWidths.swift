import Reconciliation

/// How wide the columns of a sheet must be, in characters. A number that is longer than its cell prints as `###`.
struct ColumnWidths {
  /// How much wider bold digits are.
  private static let boldness = 1.1

  private var widths: [Double]
  /// The largest magnitude that each column has had: by its decimal digits, with and without a minus.
  private var largest: [UInt128]

  /// - Parameter least: the width of each column, whatever it holds.
  init(least: [Double]) {
    widths = least
    largest = Array(repeating: 0, count: least.count * Money.powersOfTen.count * 2)
  }

  subscript(column: Int) -> Double { widths[column] }

  /// Makes room for a number: so many units of its last digit.
  mutating func fit(_ units: Int128, digits: UInt8, column: Int, isBold: Bool = false) {
    let kinds = Money.powersOfTen.count
    let place = (column * kinds + min(Int(digits), kinds - 1)) * 2 + (units < 0 ? 1 : 0)
    // Of millions of rows hardly any has a larger number than those before it.
    guard isBold || units.magnitude > largest[place] else { return }
    largest[place] = max(largest[place], units.magnitude)
    let length = Double(Money.printedLength(units, digits: digits))
    widths[column] = max(widths[column], (isBold ? length * ColumnWidths.boldness : length).rounded(.up))
  }
}

extension Money {
  /// How many characters a sheet shows of so many units: the digits, commas between thousands, the point and the minus.
  static func printedLength(_ units: Int128, digits: UInt8) -> Int {
    let length = decimalText(units, digits: digits).utf8.count
    let whole = length - (units < 0 ? 1 : 0) - (digits > 0 ? Int(digits) + 1 : 0)
    return length + (whole - 1) / 3
  }
}
