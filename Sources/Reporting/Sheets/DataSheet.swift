import Foundation
import Reconciliation
import Spreadsheet

/// Where the row of an order is. There is one for each of many orders, so it is small.
struct RowPlace {
  /// Counted from 1.
  var part: Int32
  /// Counted from zero; the header is row 0.
  var row: Int32
}

/// A table as a sheet: typed cells below the header in row 1, and more sheets of the same kind when one is full.
struct DataSheet {
  /// One sheet of several.
  struct Part {
    var name: SheetName
    var rows = 0
  }

  let table: ReportTable
  /// In the order of the sheet.
  private let columns: [ColumnHead]
  /// Where each of them is in the file.
  private let places: [Int]
  private let pseudonyms: Pseudonyms?
  /// Named in the headers of times.
  private let zoneName: String
  /// Where a row says what money it is in.
  private let currencyColumn: Int?
  private let formats: CellFormats
  private let rowsPerSheet: Int
  private var clock: LocalClock
  private var sheet: Sheet
  /// The sheets that rows went to, the last one being written.
  private(set) var parts: [Part] = []
  /// The row to be written, counted from zero; the header is row 0.
  private var row = 1
  /// Of the row, in points.
  private var height = DataSheet.lineHeight
  private var totals = SheetTotals()
  /// Of the sheets before this one.
  private var totalsBefore = SheetTotals()
  /// Rows written, all sheets together.
  var rowCount: Int { parts.reduce(0) { $0 + $1.rows } }
  /// Where the rows of orders are, for links.
  private var orderPlaces: [Identifier: RowPlace] = [:]
  /// Where the first row with each of the words of the program's own is.
  private(set) var firstPlaces: [String: RowPlace] = [:]

  private static let lineHeight = 15.0

  init(
    _ table: ReportTable, in workbook: borrowing Workbook, formats: CellFormats, options: ReportOptions,
    rowsPerSheet: Int? = nil
  ) throws(SpreadsheetError) {
    self.table = table
    self.formats = formats
    places = table.sheetColumns
    let fileColumns = table.columns
    columns = places.map { fileColumns[$0] }
    currencyColumn = columns.firstIndex { $0.type == .currency }
    pseudonyms = options.pseudonyms
    zoneName = options.timeZone.identifier
    clock = LocalClock(timeZone: options.timeZone)
    // Lines with sums, one for each currency of the world, need room below the rows.
    self.rowsPerSheet =
      rowsPerSheet ?? CellRange.maximumRows - 1 - (table.shape.totalLabelColumn == nil ? 0 : Currency.all.count + 1)
    let name = table.sheetName(part: 1)
    sheet = try workbook.addSheet(named: name, storage: .streamed)
    parts = [Part(name: name)]
    try prepare()
  }

  /// Adds a row of this table.
  mutating func add<Row: TableRow>(_ line: Row, in workbook: borrowing Workbook) throws(ReportError) {
    let fileColumns = Row.columns
    try add(in: workbook) { fileColumns[$0].cell(line) }
  }

  /// Adds a row of cells, each asked for by its place in the file.
  mutating func add(in workbook: borrowing Workbook, _ cell: (Int) -> Cell) throws(ReportError) {
    do {
      if row > rowsPerSheet { try turnPage(workbook) }
      height = DataSheet.lineHeight
      totals.startRow()
      if let currencyColumn, case .text(let code) = cell(places[currencyColumn]) { totals.select(code) }
      for (position, place) in places.enumerated() {
        var cell = cell(place)
        if let pseudonyms { cell = pseudonyms.apply(to: cell, as: columns[position].type) }
        try write(cell, position)
      }
      if height > DataSheet.lineHeight { try sheet.setRow(row, height: height) }
    } catch {
      throw ReportError.workbook(error)
    }
    row += 1
    parts[parts.count - 1].rows += 1
  }

  private mutating func turnPage(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    try finish(isLast: false)
    let name = table.sheetName(part: parts.count + 1)
    sheet = try workbook.addSheet(named: name, storage: .streamed)
    parts.append(Part(name: name))
    row = 1
    try prepare()
  }

  /// The row that was written last.
  var lastPlace: RowPlace { RowPlace(part: Int32(parts.count), row: Int32(row - 1)) }

  /// Lets cells that name this order lead to its row, as long as a sheet takes more links.
  mutating func link(_ orderId: Identifier, to place: RowPlace) {
    if orderPlaces.count < Sheet.maximumLinks { orderPlaces[orderId] = place }
  }

  /// The cells of a column, by its name, on every sheet that has rows.
  func cells(of column: String) -> [SheetRange] {
    guard let position = columns.firstIndex(where: { $0.name == column }) else { return [] }
    return parts.filter { $0.rows > 0 }.map { part in
      SheetRange(sheet: part.name, range: CellRange(rows: 1...part.rows, columns: position...position))
    }
  }

  private func sums(_ position: Int, _ currencyColumn: Int, _ code: CellReference) -> [Formula] {
    parts.filter { $0.rows > 0 }.map { part in
      let codes = SheetRange(
        sheet: part.name, range: CellRange(rows: 1...part.rows, columns: currencyColumn...currencyColumn))
      let cells = SheetRange(sheet: part.name, range: CellRange(rows: 1...part.rows, columns: position...position))
      return "SUMIF(\(codes),\(code),\(cells))"
    }
  }

  // MARK: - Cells

  private func write(_ text: String, _ position: Int, _ format: CellFormat) throws(SpreadsheetError) {
    try sheet.writeText(
      CellText.fitting(text, marker: " … [cut]"), row: row, column: position, format: format)
  }

  private mutating func write(_ cell: Cell, _ position: Int) throws(SpreadsheetError) {
    let type = columns[position].type
    switch cell {
    case .blank:
      // What people fill in has to be open, and its looks say so.
      if type.isForPeople { try sheet.writeBlank(row: row, column: position, format: formats.entry(type)) }
    case .text(let text), .figure(let text): try write(text: text, position, type)
    case .id(let id): try write(text: id.text, position, type)
    case .count(let number):
      if type == .tally { totals.add(Int128(number), digits: nil, column: position) }
      try sheet.writeNumber(
        Double(number), row: row, column: position, format: type == .code ? formats.code : formats.count)
    case .decimal(let units, let digits):
      if type == .amount || type == .share { totals.add(units, digits: digits, column: position) }
      try sheet.writeNumber(
        Money.number(units, digits: digits), row: row, column: position,
        format: type == .share ? formats.share(digits: digits) : formats.amount(digits: digits))
    case .instant(let instant):
      try write(localSeconds: clock.localSeconds(instant), else: instant.text, position, formats.instant)
    case .day(let day):
      guard let date = CivilDate(day) else { return try write(text: day, position, type) }
      try write(localSeconds: date.daysSince1970 * 86_400, else: day, position, formats.entry(type))
    }
  }

  private func write(
    localSeconds: Int64, else text: String, _ position: Int, _ format: CellFormat
  ) throws(SpreadsheetError) {
    do {
      try sheet.writeDateTime(localSecondsSince1970: localSeconds, row: row, column: position, format: format)
    } catch {
      guard error.code == .dateOutOfRange else { throw error }
      // Excel has no such year; a row with a broken date is reported all the same.
      try write(text, position, formats.text)
    }
  }

  private mutating func write(text: String, _ position: Int, _ type: ColumnType) throws(SpreadsheetError) {
    switch type {
    case .spelt:
      if firstPlaces[text] == nil { firstPlaces[text] = RowPlace(part: Int32(parts.count), row: Int32(row)) }
      try write(text.asWords, position, formats.indented)
    case .orderLink:
      guard let place = orderPlaces[Identifier(text)], sheet.remainingLinks > 0, !text.isEmpty else {
        return try write(text, position, formats.text)
      }
      try sheet.writeLink(
        to: CellReference(row: Int(place.row), column: 0), on: ReportTable.orders.sheetName(part: Int(place.part)),
        text: CellText.fitting(text), row: row, column: position, format: formats.link)
    case .people, .status, .due: try write(text, position, formats.entry(type))
    case .prose:
      // Nobody makes rows of a streamed sheet as high as their text but we.
      let lines = (Double(text.characterCount) / (1.1 * columns[position].width)).rounded(.up)
      height = max(height, min(lines, 10) * DataSheet.lineHeight)
      try write(text, position, formats.prose)
    case .text, .id, .user, .digest, .word, .flag, .currency, .count, .number, .tally, .code, .amount, .share, .price,
      .percentage, .exact, .instant:
      try write(text, position, isBesideNumber(position) ? formats.indented : formats.text)
    }
  }

  // MARK: - Around the cells

  private func prepare() throws(SpreadsheetError) {
    for (position, column) in columns.enumerated() {
      try sheet.setColumns(position...position, width: column.width)
    }
    let shape = table.shape
    try sheet.freezePanes(aboveRow: 1, leftOfColumn: shape.frozenColumns)
    try sheet.setTabColour(shape.tabColour)
    try sheet.setUpPrinting(
      PrintSetup {
        $0.isLandscape = true
        $0.pagesWide = shape.pagesWide
        $0.repeatedRows = 0...0
        if shape.pagesWide > 1 { $0.repeatedColumns = 0...shape.frozenColumns - 1 }
        $0.header = "&L&A&R&F"
        $0.footer = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"
      })
    try sheet.setRow(0, height: 32)
    try sheet.writeHeader(of: excelTable, row: 0, firstColumn: 0)
    for (position, column) in columns.enumerated() {
      try sheet.addNote(note(on: column), row: 0, column: position)
    }
    try sheet.protect(allowing: [.selectLockedCells, .selectUnlockedCells, .formatColumns, .formatRows, .sort, .filter])
  }

  private func note(on column: ColumnHead) -> String {
    guard column.type.isMoney else { return column.meaning }
    return "\(column.meaning) \(ReportTable.moneyRule)\(table.shape.moneyNote)"
  }

  private var excelTable: ExcelTable {
    ExcelTable(
      name: table.shape.formulaName, part: parts.count,
      columns: columns.indices.map { ExcelTable.Column(header: title(of: columns[$0]), headerFormat: header($0)) },
      style: .medium(2))
  }

  /// The CSV's words; what is shown in a zone's time names the zone.
  private func title(of column: ColumnHead) -> String {
    column.type == .instant ? "\(column.title) (\(zoneName))" : column.title
  }

  private func header(_ position: Int) -> CellFormat {
    let type = columns[position].type
    if type.isNumber { return formats.headerRight }
    if type == .instant || type == .due { return formats.headerCentre }
    return isBesideNumber(position) || type == .spelt ? formats.headerIndented : formats.header
  }

  private func isBesideNumber(_ position: Int) -> Bool { position > 0 && columns[position - 1].type.isNumber }

  /// Ends the table.
  mutating func finish() throws(SpreadsheetError) { try finish(isLast: true) }

  /// Ends the sheet that rows go to now: sums below the rows, the table, what colours cells and helps people.
  private mutating func finish(isLast: Bool) throws(SpreadsheetError) {
    let lastRow = row - 1
    guard lastRow > 0 else { return try sheet.setAutofilter(area(rows: 0...0)) }
    if table.shape.totalLabelColumn != nil { try writeTotals(lastRow: lastRow, isLast: isLast) }
    try sheet.addTable(excelTable, firstRow: 0, firstColumn: 0, rowCount: lastRow)
    for (position, column) in columns.enumerated() {
      let cells = CellRange(rows: 1...lastRow, columns: position...position)
      if column.type == .status { try sheet.addChoice(of: FindingStatus.allCases.map(\.rawValue), in: cells) }
      if column.type == .due { try sheet.addDayEntry(in: cells) }
      if column.type == .severity { try colourSeverity(cells) }
      if column.type == .days { try markOld(cells) }
    }
    try sheet.ignoreNumbersAsText(
      in: columns.indices.filter { columns[$0].type.isId }.map {
        CellRange(rows: 1...lastRow, columns: $0...$0)
      })
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

  /// One line for each currency, below an empty row that keeps them out of the table. Those of the last sheet are the sums
  /// of all sheets.
  private mutating func writeTotals(lastRow: Int, isLast: Bool) throws(SpreadsheetError) {
    guard let currencyColumn else { return }
    totalsBefore.add(totals)
    let lines = isLast ? totalsBefore : totals
    totals = SheetTotals()
    let label =
      switch (parts.count, isLast) {
      case (1, true): "Total"
      case (_, true): "Total of all sheets"
      case (_, false): "Total of this sheet"
      }
    for (offset, line) in lines.sorted.enumerated() {
      let totalRow = lastRow + 2 + offset
      let name = CellReference(row: totalRow, column: currencyColumn)
      for (position, column) in columns.enumerated() {
        if position == currencyColumn {
          try sheet.writeText(line.currency, row: totalRow, column: position, format: formats.totalLabel)
        } else if let sum = line.sums[position] {
          try sheet.writeFormula(
            isLast && parts.count > 1
              ? .sum(of: sums(position, currencyColumn, name))
              : sumOfThisSheet(position, currencyColumn, name, lastRow: lastRow),
            result: Money.number(sum.units, digits: sum.digits ?? 0), row: totalRow, column: position,
            format: sum.digits.map { formats.total(digits: $0) } ?? formats.totalCount)
        } else if column.name == table.shape.totalLabelColumn {
          try sheet.writeText(label, row: totalRow, column: position, format: formats.totalLabel)
        } else {
          try sheet.writeBlank(row: totalRow, column: position, format: formats.totalLabel)
        }
      }
    }
  }

  private func sumOfThisSheet(
    _ position: Int, _ currencyColumn: Int, _ code: CellReference, lastRow: Int
  ) -> Formula {
    let codes = CellRange(rows: 1...lastRow, columns: currencyColumn...currencyColumn)
    let cells = CellRange(rows: 1...lastRow, columns: position...position)
    return "SUMIF(\(absolute: codes),\(code),\(absolute: cells))"
  }
}

extension Money {
  /// Minor units as the nearest floating-point number of major units, which is all that a spreadsheet has.
  static func number(_ units: Int128, digits: UInt8) -> Double {
    // The compiler's way from 128 bits to a floating-point number is long.
    let number = Int64(exactly: units).map(Double.init) ?? Double(units)
    return number / Double(powersOfTen[min(Int(digits), powersOfTen.count - 1)])
  }
}

extension String {
  /// As `count`, which is slow, for text that is nearly always ASCII.
  fileprivate var characterCount: Int {
    // CR and LF together are one character.
    utf8.allSatisfy { $0 < 0x80 && $0 != 0x0D } ? utf8.count : count
  }
}
