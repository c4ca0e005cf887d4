/// One cell, counted from zero: row 0, column 0 is A1.
package struct CellReference: Hashable, Sendable {
  /// From zero.
  package let row: Int
  /// From zero.
  package let column: Int

  /// A cell; that Excel has it is checked where it is used.
  package init(row: Int, column: Int) {
    self.row = row
    self.column = column
  }

  /// The cell as people write it: `C12`.
  package var a1: String { "\(Self.letters(column))\(row + 1)" }

  /// The cell as it stays when a formula is copied: `$C$12`.
  package var absolute: String { "$\(Self.letters(column))$\(row + 1)" }

  /// A, B, ... Z, AA, ...: bijective base 26.
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

/// A rectangle of cells, counted from zero, both ends included.
package struct CellRange: Hashable, Sendable {
  /// Rows of a sheet: `xl` since Excel 2007.
  package static let maximumRows = 1_048_576
  /// Columns of a sheet, A to XFD.
  package static let maximumColumns = 16_384

  /// From zero.
  package let rows: ClosedRange<Int>
  /// From zero.
  package let columns: ClosedRange<Int>

  /// A range; that Excel has it is checked where it is used.
  package init(rows: ClosedRange<Int>, columns: ClosedRange<Int>) {
    self.rows = rows
    self.columns = columns
  }

  /// The range as people write it: `A1:C12`, or `A1` for a single cell.
  package var a1: String { text(\.a1) }

  /// The range as it stays when a formula is copied: `$A$1:$C$12`.
  package var absolute: String { text(\.absolute) }

  /// Whether Excel has all of these cells.
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

/// A range on a named sheet, for charts and defined names.
package struct SheetRange: Hashable, Sendable {
  /// The sheet, which need not exist yet.
  package let sheet: SheetName
  /// The cells on it.
  package let range: CellRange

  /// A range on a sheet of the same workbook.
  package init(sheet: SheetName, range: CellRange) {
    self.sheet = sheet
    self.range = range
  }
}
