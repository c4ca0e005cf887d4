/// A cell by row and column from zero: row 0, column 0 is A1. Excel's limits are checked on use.
package struct CellReference: Hashable, Sendable {
  package let row: Int
  package let column: Int

  package init(row: Int, column: Int) { (self.row, self.column) = (row, column) }

  package var a1: String { "\(Self.letters(column))\(row + 1)" }

  package var absolute: String { "$\(Self.letters(column))$\(row + 1)" }

  // Bijective base 26: A, B, … Z, AA, …
  private static func letters(_ column: Int) -> String {
    var letters: [Character] = []
    var rest = column + 1
    while rest > 0 {
      let digit = (rest - 1) % 26
      letters.append(Character(Unicode.Scalar(UInt8(ascii: "A") + UInt8(digit))))
      rest = (rest - 1) / 26
    }
    return String(letters.reversed())
  }
}

/// A rectangle of cells, from zero, both ends included. Excel's limits are checked on use.
package struct CellRange: Hashable, Sendable {
  package static let maximumRows = 1_048_576
  package static let maximumColumns = 16_384

  package let rows: ClosedRange<Int>
  package let columns: ClosedRange<Int>

  package init(rows: ClosedRange<Int>, columns: ClosedRange<Int>) { (self.rows, self.columns) = (rows, columns) }

  package var a1: String { text(\.a1) }

  package var absolute: String { text(\.absolute) }

  var isOnSheet: Bool {
    rows.lowerBound >= 0 && rows.upperBound < Self.maximumRows
      && columns.lowerBound >= 0 && columns.upperBound < Self.maximumColumns
  }

  private func text(_ form: (CellReference) -> String) -> String {
    let first = CellReference(row: rows.lowerBound, column: columns.lowerBound)
    let last = CellReference(row: rows.upperBound, column: columns.upperBound)
    return first == last ? form(first) : "\(form(first)):\(form(last))"
  }
}

/// A range on a named sheet, for charts and defined names. The sheet need not exist yet.
package struct SheetRange: Hashable, Sendable {
  package let sheet: SheetName
  package let range: CellRange

  package init(sheet: SheetName, range: CellRange) { (self.sheet, self.range) = (sheet, range) }
}
