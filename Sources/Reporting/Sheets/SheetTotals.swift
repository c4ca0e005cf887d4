/// Sums per currency of the rows that were written to one sheet: what its formulas must come to.
struct SheetTotals {
  struct Sum {
    var units: Int128 = 0
    /// Decimal digits of the units; nil for a count.
    var digits: UInt8?
  }

  struct Line {
    var currency: String
    /// By column.
    var sums: [Int: Sum] = [:]
  }

  private var lines: [Line] = []
  private var places: [String: Int] = [:]
  private var current: Int?

  /// A row of no currency yet.
  mutating func startRow() { current = nil }

  /// The row that is being written is in this currency.
  mutating func select(_ currency: String) {
    if let place = places[currency] {
      current = place
    } else {
      places[currency] = lines.count
      current = lines.count
      lines.append(Line(currency: currency))
    }
  }

  mutating func add(_ units: Int128, digits: UInt8?, column: Int) {
    guard let current else { return }
    lines[current].sums[column, default: Sum(digits: digits)].units += units
  }

  /// Adds the sums of another sheet.
  mutating func add(_ other: SheetTotals) {
    for line in other.lines {
      select(line.currency)
      for (column, sum) in line.sums { add(sum.units, digits: sum.digits, column: column) }
    }
  }

  /// The sum of one column in one currency.
  func units(of currency: String, column: Int?) -> Int128 {
    guard let column, let place = places[currency] else { return 0 }
    return lines[place].sums[column]?.units ?? 0
  }

  /// In alphabetical order.
  var sorted: [Line] { lines.sorted { $0.currency < $1.currency } }
}
