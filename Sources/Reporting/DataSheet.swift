import Foundation
import Reconciliation
import Spreadsheet

/// Where a row of the workbook is.
struct RowPlace {
  var sheet: SheetName
  var row: Int
}

/// A table as a sheet: typed cells below the header in row 1, and more sheets of the same kind when one is full.
struct DataSheet: RowSink {
  let table: ReportTable
  private let columns: [Column]
  /// Where a row says what money it is in.
  private let currencyColumn: Int?
  private let formats: CellFormats
  private let rowsPerSheet: Int
  private var clock: LocalClock
  private var sheet: Sheet
  private var part = 0
  /// The row to be written, counted from zero; the header is row 0.
  private var row = 1
  private var column = 0
  /// Of the row, in points.
  private var height = DataSheet.lineHeight
  private var totals = SheetTotals()
  /// Rows written, all sheets together.
  private(set) var rowCount = 0
  /// Whether rows were left out because even the last sheet is full.
  private(set) var isCut = false
  /// Where the rows of orders are, for links.
  private var orderPlaces: [Identifier: RowPlace] = [:]

  private static let lineHeight = 15.0

  init(
    _ table: ReportTable, in workbook: borrowing Workbook, formats: CellFormats, timeZone: TimeZone,
    rowsPerSheet: Int? = nil
  ) throws(SpreadsheetError) {
    self.table = table
    self.formats = formats
    columns = table.sheetColumns
    currencyColumn = columns.firstIndex { $0.name == "currency" }
    clock = LocalClock(timeZone: timeZone)
    // Lines with sums, one for each currency of the world, need room below the rows.
    self.rowsPerSheet = rowsPerSheet ?? CellRange.maximumRows - 1 - (table.hasTotals ? Currency.all.count + 1 : 0)
    sheet = try workbook.addSheet(named: table.sheetNames[0], storage: .streamed)
    try prepare()
  }

  /// Adds the row that the closure's cells make.
  mutating func row(
    in workbook: borrowing Workbook, _ cells: (inout DataSheet) throws(SpreadsheetError) -> Void
  ) throws(ReportError) {
    do {
      if row > rowsPerSheet { try turnPage(workbook) }
      guard !isCut else { return }
      column = 0
      height = DataSheet.lineHeight
      totals.startRow()
      try cells(&self)
      if height > DataSheet.lineHeight { try sheet.setRow(row, height: height) }
    } catch {
      throw ReportError.workbook(error)
    }
    row += 1
    rowCount += 1
  }

  private mutating func turnPage(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    guard part + 1 < table.sheetNames.count else {
      isCut = true
      return
    }
    try finish()
    part += 1
    row = 1
    sheet = try workbook.addSheet(named: table.sheetNames[part], storage: .streamed)
    try prepare()
  }

  /// The row that was written last.
  var lastPlace: RowPlace { RowPlace(sheet: sheet.name, row: row - 1) }

  /// Lets cells that name this order lead to its row, as long as a sheet takes more links.
  mutating func link(_ orderId: Identifier, to place: RowPlace) {
    if orderPlaces.count < Sheet.maximumLinks { orderPlaces[orderId] = place }
  }

  /// The rows of one column, for formulas; nil when they are none or on several sheets.
  func range(ofColumn name: String) -> SheetRange? {
    guard part == 0, row > 1, let index = columns.firstIndex(where: { $0.name == name }) else { return nil }
    return SheetRange(sheet: sheet.name, range: CellRange(rows: 1...row - 1, columns: index...index))
  }

  // MARK: - Cells

  mutating func text(_ text: String) throws(SpreadsheetError) {
    let position = next()
    switch columns[position].kind {
    case .word:
      try write(text.asWords, position, formats.indented)
    case .orderLink:
      if let place = orderPlaces[Identifier(text)], sheet.remainingLinks > 0, !text.isEmpty {
        try sheet.writeLink(
          to: CellReference(row: place.row, column: 0), on: place.sheet, text: CellText.fitting(text), row: row,
          column: position, format: formats.link)
      } else {
        try write(text, position, formats.text)
      }
    case .people, .status:
      try write(text, position, formats.entry)
    case .prose:
      // Nobody makes rows of a streamed sheet as high as their text but we.
      let lines = (Double(text.count) / (1.1 * columns[position].width)).rounded(.up)
      height = max(height, min(lines, 10) * DataSheet.lineHeight)
      try write(text, position, formats.prose)
    case .text, .count, .tally, .code, .amount, .price, .percentage, .instant:
      if position == currencyColumn { totals.select(text) }
      try write(text, position, isBesideNumber(position) ? formats.indented : formats.text)
    }
  }

  mutating func id(_ id: Identifier) throws(SpreadsheetError) { try text(id.text) }

  mutating func count(_ number: Int64) throws(SpreadsheetError) {
    let position = next()
    let format = columns[position].kind == .code ? formats.code : formats.count
    if columns[position].kind == .tally { totals.add(Int128(number), digits: nil, column: position) }
    try sheet.writeNumber(Double(number), row: row, column: position, format: format)
  }

  mutating func decimal(_ units: Int128, digits: UInt8) throws(SpreadsheetError) {
    let position = next()
    if columns[position].kind == .amount { totals.add(units, digits: digits, column: position) }
    try sheet.writeNumber(
      Money.number(units, digits: digits), row: row, column: position, format: formats.amount(digits: digits))
  }

  mutating func instant(_ instant: Instant) throws(SpreadsheetError) {
    let position = next()
    let seconds = clock.localSeconds(instant)
    do {
      try sheet.writeDateTime(localSecondsSince1970: seconds, row: row, column: position, format: formats.instant)
    } catch {
      guard error.code == .dateOutOfRange else { throw error }
      // Excel has no such year; a row with a broken date is reported all the same.
      try write(instant.text, position, formats.text)
    }
  }

  mutating func blank() throws(SpreadsheetError) {
    let position = next()
    switch columns[position].kind {
    case .people, .status: try sheet.writeBlank(row: row, column: position, format: formats.entry)
    case .text, .word, .orderLink, .prose, .count, .tally, .code, .amount, .price, .percentage, .instant: break
    }
  }

  private mutating func next() -> Int {
    defer { column += 1 }
    return column
  }

  private func write(_ text: String, _ position: Int, _ format: CellFormat) throws(SpreadsheetError) {
    try sheet.writeText(
      CellText.fitting(text, marker: " … [cut]"), row: row, column: position, format: format)
  }

  // MARK: - Around the cells

  private func prepare() throws(SpreadsheetError) {
    for (position, column) in columns.enumerated() {
      try sheet.setColumns(position...position, width: column.width)
    }
    try sheet.freezePanes(aboveRow: 1, leftOfColumn: table.frozenColumns)
    try sheet.setTabColour(table.tabColour)
    try sheet.setUpPrinting(
      PrintSetup {
        $0.isLandscape = true
        $0.fitsToOnePageWide = true
        $0.repeatedRows = 0...0
        $0.header = "&L&A&R&F"
        $0.footer = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"
      })
    try sheet.setRow(0, height: 32)
    try sheet.writeHeader(of: excelTable, row: 0, firstColumn: 0)
  }

  private var excelTable: ExcelTable {
    ExcelTable(
      name: table.tableName,
      columns: columns.indices.map { ExcelTable.Column(header: columns[$0].title, headerFormat: header($0)) },
      style: .medium(2))
  }

  private func header(_ position: Int) -> CellFormat {
    let kind = columns[position].kind
    if kind.isNumber { return formats.headerRight }
    if kind == .instant { return formats.headerCentre }
    return isBesideNumber(position) || kind == .word ? formats.headerIndented : formats.header
  }

  private func isBesideNumber(_ position: Int) -> Bool { position > 0 && columns[position - 1].kind.isNumber }

  /// Ends the sheet that rows go to now: sums below the rows, the table, what colours cells and helps people.
  mutating func finish() throws(SpreadsheetError) {
    let lastRow = row - 1
    guard lastRow > 0 else { return try sheet.setAutofilter(area(rows: 0...0)) }
    try writeTotals(lastRow: lastRow)
    if part == 0 {
      try sheet.addTable(excelTable, firstRow: 0, firstColumn: 0, rowCount: lastRow)
    } else {
      try sheet.setAutofilter(area(rows: 0...lastRow))
    }
    for (position, column) in columns.enumerated() {
      let cells = CellRange(rows: 1...lastRow, columns: position...position)
      if column.kind == .status { try sheet.addChoice(of: ["open", "acknowledged", "closed"], in: cells) }
      if column.name == "severity" { try colourSeverity(cells) }
      if column.name == "age_days" { try markOld(cells) }
    }
  }

  /// Marks what is older than a week, proofs only while they are not settled.
  private func markOld(_ cells: CellRange) throws(SpreadsheetError) {
    guard let outcome = columns.firstIndex(where: { $0.name == "outcome" }) else {
      return try sheet.addConditionalFormat(.number(.greater, 7, formats.old), in: cells)
    }
    let state = CellReference(row: 1, column: outcome)
    let age = CellReference(row: 1, column: cells.columns.lowerBound)
    try sheet.addConditionalFormat(.formula("AND(\(state)<>\"verified\",\(age)>7)", formats.old), in: cells)
  }

  private func area(rows: ClosedRange<Int>) -> CellRange {
    CellRange(rows: rows, columns: 0...columns.count - 1)
  }

  private func colourSeverity(_ cells: CellRange) throws(SpreadsheetError) {
    for severity in Severity.allCases {
      let format =
        switch severity {
        case .critical: formats.critical
        case .major: formats.major
        case .minor: formats.minor
        }
      try sheet.addConditionalFormat(.text(equals: severity.rawValue, format), in: cells)
    }
  }

  /// One line for each currency, below an empty row that keeps them out of the table.
  private mutating func writeTotals(lastRow: Int) throws(SpreadsheetError) {
    defer { totals = SheetTotals() }
    guard table.hasTotals, let currencyColumn else { return }
    let currencies = CellRange(rows: 1...lastRow, columns: currencyColumn...currencyColumn)
    for (offset, line) in totals.sorted.enumerated() {
      let totalRow = lastRow + 2 + offset
      for (position, column) in columns.enumerated() {
        if position == currencyColumn {
          try sheet.writeText(line.currency, row: totalRow, column: position, format: formats.totalLabel)
        } else if let sum = line.sums[position] {
          let cells = CellRange(rows: 1...lastRow, columns: position...position)
          let name = CellReference(row: totalRow, column: currencyColumn)
          try sheet.writeFormula(
            "SUMIF(\(absolute: currencies),\(name),\(absolute: cells))",
            result: Money.number(sum.units, digits: sum.digits ?? 0), row: totalRow, column: position,
            format: sum.digits.map { formats.total(digits: $0) } ?? formats.totalCount)
        } else if column.name == table.totalLabelColumn {
          try sheet.writeText("Total", row: totalRow, column: position, format: formats.totalLabel)
        } else {
          try sheet.writeBlank(row: totalRow, column: position, format: formats.totalLabel)
        }
      }
    }
  }
}

extension Money {
  /// Minor units as the nearest floating-point number of major units, which is all that a spreadsheet has.
  static func number(_ units: Int128, digits: UInt8) -> Double {
    Double(units) / Double(powersOfTen[min(Int(digits), powersOfTen.count - 1)])
  }
}

extension String {
  /// `paid_not_delivered` as people write it.
  var asWords: String {
    let words = replacing("_", with: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}
