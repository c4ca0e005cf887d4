import Foundation
import Reconciliation
import Spreadsheet

/// The row of an order; small because there is one for each of many orders.
struct RowPlace {
  var part: Int32
  /// Counted from 0; the header is row 0.
  var row: Int32
}

/// A table as a sheet with typed cells below a header; it continues on further sheets when one is full.
struct DataSheet {
  struct Part {
    var name: SheetName
    var rows = 0
  }

  let table: ReportTable
  let columns: [ColumnHead]
  /// The file's position of each sheet column.
  private let places: [Int]
  private let pseudonyms: Pseudonyms?
  let zoneName: String
  let currencyColumn: Int?
  let formats: CellFormats
  private let rowsPerSheet: Int
  private var clock: LocalClock
  /// The as-of as Excel's local date and time; nil if Excel cannot show it.
  let asOfSerial: Double?
  var sheet: Sheet
  var parts: [Part] = []
  /// The next row, counted from 0; the header is row 0.
  var row = 1
  private var height = DataSheet.lineHeight
  var totals = SheetTotals()
  var totalsBefore = SheetTotals()
  var rowCount: Int { parts.reduce(0) { $0 + $1.rows } }
  var widths: ColumnWidths
  private var orderPlaces: [Identifier: RowPlace] = [:]
  /// The first row of each kind, as targets of links.
  private(set) var firstPlaces: [String: RowPlace] = [:]

  private static let lineHeight = 15.0

  init(
    _ table: ReportTable, in workbook: borrowing Workbook, formats: CellFormats, options: ReportOptions,
    rowsPerSheet: Int? = nil
  ) throws(SpreadsheetError) {
    (self.table, self.formats) = (table, formats)
    places = table.sheetColumns
    let fileColumns = table.columns
    columns = places.map { fileColumns[$0] }
    currencyColumn = columns.firstIndex { $0.type == .currency }
    widths = ColumnWidths(least: columns.map(\.width))
    pseudonyms = options.pseudonyms
    zoneName = options.zoneName
    clock = LocalClock(timeZone: options.timeZone)
    asOfSerial = ExcelDate.serial(secondsSince1970: clock.localSeconds(options.asOf))
    // Leaves room for the lines of sums, one for each currency of the world.
    self.rowsPerSheet =
      rowsPerSheet ?? CellRange.maximumRows - 1 - (table.shape.totalLabelColumn == nil ? 0 : Currency.all.count + 1)
    let name = table.sheetName(part: 1)
    sheet = try workbook.addSheet(named: name, storage: .streamed)
    parts = [Part(name: name)]
    try prepare()
  }

  mutating func add<Row: TableRow>(_ line: Row, in workbook: borrowing Workbook) throws(ReportError) {
    let fileColumns = Row.columns
    try add(in: workbook) { fileColumns[$0].cell(line) }
  }

  mutating func add(in workbook: borrowing Workbook, _ cell: (Int) -> Cell) throws(ReportError) {
    do {
      if row > rowsPerSheet { try startNextSheet(workbook) }
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

  private mutating func startNextSheet(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    try finish(isLast: false)
    let name = table.sheetName(part: parts.count + 1)
    sheet = try workbook.addSheet(named: name, storage: .streamed)
    parts.append(Part(name: name))
    row = 1
    try prepare()
  }

  var lastPlace: RowPlace { RowPlace(part: Int32(parts.count), row: Int32(row - 1)) }

  /// Makes cells with this order ID link to its row, up to Excel's limit of links.
  mutating func link(_ orderId: Identifier, to place: RowPlace) {
    if orderPlaces.count < Sheet.maximumLinks { orderPlaces[orderId] = place }
  }

  /// The sums of all sheets of the table, finished or not.
  var tableTotals: SheetTotals {
    var sums = totalsBefore
    sums.add(totals)
    return sums
  }

  func position(of column: String) -> Int? { columns.firstIndex { $0.name == column } }

  func cells(of column: String) -> [SheetRange] { position(of: column).map { cells(at: $0) } ?? [] }

  private func cells(at position: Int) -> [SheetRange] {
    parts.filter { $0.rows > 0 }.map { part in
      SheetRange(sheet: part.name, range: CellRange(rows: 1...part.rows, columns: position...position))
    }
  }

  func sums(_ position: Int, _ currencyColumn: Int, _ code: CellReference) -> [Formula] {
    zip(cells(at: currencyColumn), cells(at: position)).map { codes, cells in "SUMIF(\(codes),\(code),\(cells))" }
  }

  // MARK: - Cells

  func isOpen(_ type: ColumnType) -> Bool { type.isForPeople && table.shape.takesEntries }

  private mutating func write(_ text: String, _ position: Int, _ format: CellFormat) throws(SpreadsheetError) {
    let text = CellText.fitting(text, marker: " … [cut]")
    try sheet.writeText(text, row: row, column: position, format: format)
  }

  private mutating func write(_ cell: Cell, _ position: Int) throws(SpreadsheetError) {
    let type = columns[position].type
    switch cell {
    case .blank:
      // Cells for people's entries are unlocked and formatted even if they are empty.
      if isOpen(type) { try sheet.writeBlank(row: row, column: position, format: formats.entry(type)) }
    case .text(let text), .figure(let text): try write(text: text, position, type)
    case .id(let id): try write(text: id.text, position, type)
    case .count(let number):
      if type == .tally { totals.add(Int128(number), digits: nil, column: position) }
      widths.fit(Int128(number), digits: 0, column: position)
      try sheet.writeNumber(
        Double(number), row: row, column: position, format: type == .code ? formats[.code] : formats[.count])
    case .decimal(let units, let digits):
      if type == .amount || type == .share { totals.add(units, digits: digits, column: position) }
      widths.fit(units, digits: digits, column: position)
      try sheet.writeNumber(
        Money.number(units, digits: digits), row: row, column: position, format: formats.amount(digits: digits))
    case .instant(let instant):
      try write(localSeconds: clock.localSeconds(instant), else: instant.text, position, formats[.instant])
    case .day(let day):
      guard let date = CivilDate(day) else { return try write(text: day, position, type) }
      try write(
        localSeconds: date.daysSince1970 * 86_400, else: day, position,
        isOpen(type) ? formats.entry(type) : formats[.day])
    }
  }

  private mutating func write(
    localSeconds: Int64, else text: String, _ position: Int, _ format: CellFormat
  ) throws(SpreadsheetError) {
    do {
      try sheet.writeDateTime(localSecondsSince1970: localSeconds, row: row, column: position, format: format)
    } catch {
      guard error.code == .dateOutOfRange else { throw error }
      // Excel supports no such year; a bad row is shown as text.
      try write(text, position, formats[.text])
    }
  }

  private mutating func write(text: String, _ position: Int, _ type: ColumnType) throws(SpreadsheetError) {
    switch type {
    case .spelt:
      if firstPlaces[text] == nil { firstPlaces[text] = RowPlace(part: Int32(parts.count), row: Int32(row)) }
      try write(text.titles, position, needsIndent(position) ? formats[.indented] : formats[.text])
    case .orderLink:
      guard let place = orderPlaces[Identifier(text)], sheet.remainingLinks > 0, !text.isEmpty else {
        return try write(text, position, formats[.text])
      }
      let text = CellText.fitting(text)
      try sheet.writeLink(
        to: CellReference(row: Int(place.row), column: 0), on: ReportTable.orders.sheetName(part: Int(place.part)),
        text: text, row: row, column: position, format: formats[.link])
    case .people, .status, .due:
      try write(text, position, isOpen(type) ? formats.entry(type) : formats[.prose])
    case .prose:
      let text = clock.localTimes(in: text)
      // Excel does not fit row heights of streamed sheets.
      let lines = (Double(text.characterCount) / (1.1 * columns[position].width)).rounded(.up)
      height = max(height, min(lines, 10) * DataSheet.lineHeight)
      try write(text, position, needsIndent(position) ? formats[.indentedProse] : formats[.prose])
    case .flag:
      try write(
        text == "true" ? "Yes" : "No", position, needsIndent(position) ? formats[.indented] : formats[.text])
    case .text, .id, .user, .digest, .word, .currency, .day, .count, .number, .tally, .code, .amount, .share,
      .price, .percentage, .exact, .instant:
      try write(text, position, needsIndent(position) ? formats[.indented] : formats[.text])
    }
  }
}

extension Money {
  /// Minor units as the nearest floating-point number of major units, the only number type of spreadsheets.
  static func number(_ units: Int128, digits: UInt8) -> Double {
    let number = Int64(exactly: units).map(Double.init) ?? Double(units)
    return number / Double(powersOfTen[min(Int(digits), powersOfTen.count - 1)])
  }
}

extension String {
  /// `count` with a fast path for ASCII.
  fileprivate var characterCount: Int {
    // CR LF is one character.
    utf8.allSatisfy { $0 < 0x80 && $0 != 0x0D } ? utf8.count : count
  }
}
