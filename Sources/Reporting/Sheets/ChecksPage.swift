import Spreadsheet

struct CheckedColumns {
  let names: CellRange
  let results: CellRange

  var count: Int { results.rows.count }

  var formula: Formula { "COUNTIF(\(on(results)),\"as written\")" }

  var changed: Formula {
    let changes = results.rows.map { row -> Formula in
      let (result, name) = (cell(row, results), cell(row, names))
      return "IF(\(result)=\"as written\",\"\",\" \"&\(name)&\".\")"
    }
    return "IF(\(formula)=\(count),\"\",\"Changed:\"&\(Formula.joined(changes)))"
  }

  private func on(_ range: CellRange) -> SheetRange { SheetRange(sheet: AboutPage.name, range: range) }

  private func cell(_ row: Int, _ range: CellRange) -> SheetRange {
    on(CellRange(rows: row...row, columns: range.columns))
  }
}

/// Hidden columns of the last sheet with the fingerprints of each column, now and when it was written.
struct ChecksPage {
  /// The first column to the right of the visible ones.
  private enum Column: Int, CaseIterable {
    case sheet = 6
    case name, method, now, then, result

    var title: String {
      switch self {
      case .sheet: "Sheet"
      case .name: "Column"
      case .method: "What is added up"
      case .now: "Now"
      case .then: "As written"
      case .result: "Result"
      }
    }
  }

  private static let firstPlaceColumn = 13

  private let sheet: Sheet
  private let formats: SummaryFormats
  private var row = 3

  init(_ sheet: Sheet, in workbook: borrowing Workbook) throws(SpreadsheetError) {
    self.sheet = sheet
    formats = try SummaryFormats(workbook)
  }

  consuming func write(_ tables: [DataSheet]) throws(SpreadsheetError) -> [ReportTable: CheckedColumns] {
    let last = ChecksPage.firstPlaceColumn + Fingerprint.places
    try sheet.setColumns(Column.sheet.rawValue...last, width: 22, isHidden: true)
    try sheet.writeText(
      "What every column came to when it was written, and what it comes to now. The summary's controls read it.",
      row: 0, column: Column.sheet.rawValue, format: formats.label)
    for (place, weight) in Fingerprint.weights.enumerated() {
      try sheet.writeInteger(place + 1, row: 0, column: ChecksPage.firstPlaceColumn + place)
      try sheet.writeInteger(weight, row: 1, column: ChecksPage.firstPlaceColumn + place)
    }
    try sheet.writeInteger(Fingerprint.places + 1, row: 0, column: last)
    for column in Column.allCases {
      try sheet.writeText(column.title, row: 2, column: column.rawValue, format: formats.tableHeader)
    }
    var checked: [ReportTable: CheckedColumns] = [:]
    for table in tables where table.isChecked {
      checked[table.table] = try write(table)
    }
    return checked
  }

  private mutating func write(_ table: DataSheet) throws(SpreadsheetError) -> CheckedColumns {
    let first = row
    for position in table.columns.indices where !table.isOpen(table.columns[position].type) {
      try write(table, position)
    }
    let rows = first...row - 1
    func cells(_ column: Column) -> CellRange {
      CellRange(rows: rows, columns: column.rawValue...column.rawValue)
    }
    return CheckedColumns(names: cells(.name), results: cells(.result))
  }

  private mutating func write(_ table: DataSheet, _ position: Int) throws(SpreadsheetError) {
    let print = table.fingerprints[position]
    let title = CellReference(row: row, column: Column.name.rawValue)
    let (now, then) = (
      CellReference(row: row, column: Column.now.rawValue), CellReference(row: row, column: Column.then.rawValue)
    )
    let areas = table.areas(ofColumn: position)
    for (column, text) in [
      (Column.sheet, table.table.sheetName(part: 1).description), (.name, table.title(ofColumn: position)),
      (.method, print.method.words),
    ] { try sheet.writeText(text, row: row, column: column.rawValue, format: formats.tableText) }
    try sheet.writeArrayFormula(
      print.formula(over: areas, places: { places($0, $1, row: 0) }, weights: { places(1, $0, row: 1) }),
      result: print.result, row: row, column: now.column, format: formats.tableCount)
    try sheet.writeNumber(print.result, row: row, column: then.column, format: formats.tableCount)
    let heads = table.parts.map { part -> Formula in
      let head = SheetRange(sheet: part.name, range: CellRange(rows: 0...0, columns: position...position))
      return "EXACT(\(head),\(title))"
    }
    try sheet.writeFormula(
      "IF(ISNUMBER(\(now)),IF(AND(\(now)=\(then),\(Formula.arguments(heads))),\"as written\",\"CHANGED\"),\"CHANGED\")",
      result: "as written", row: row, column: Column.result.rawValue, format: formats.balanced)
    row += 1
  }

  private func places(_ first: Int, _ count: Int, row: Int) -> CellRange {
    let column = ChecksPage.firstPlaceColumn + first - 1
    return CellRange(rows: row...row, columns: column...column + count - 1)
  }
}
