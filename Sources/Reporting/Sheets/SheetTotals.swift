/// Sums by currency of the rows of a sheet: the expected results of its formulas.
struct SheetTotals {
  struct Sum {
    var units: Int128 = 0
    var digits: UInt8?
  }

  struct Line {
    var currency: String
    var sums: [Int: Sum] = [:]
  }

  private var lines: [Line] = []
  private var places: [String: Int] = [:]
  private var current: Int?

  mutating func startRow() { current = nil }

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

  mutating func add(_ other: SheetTotals) {
    for line in other.lines {
      select(line.currency)
      for (column, sum) in line.sums { add(sum.units, digits: sum.digits, column: column) }
    }
  }

  func units(of currency: String, column: Int?) -> Int128 {
    guard let column, let place = places[currency] else { return 0 }
    return lines[place].sums[column]?.units ?? 0
  }

  var sorted: [Line] { lines.sorted { $0.currency < $1.currency } }
}
