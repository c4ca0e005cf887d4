import Reconciliation
import Spreadsheet

/// The first sheet: scope, completeness, controls, amounts and findings.
struct SummaryPage {
  let sheet: Sheet
  let formats: SummaryFormats
  let options: ReportOptions
  let summaryDigest: String
  var row = 0

  /// The row of tiles. It is written last, because it refers to the controls.
  var tileRow = 0
  var bannerRow = 0
  var results: CellRange?
  var unbalanced = 0
  var figures = SummaryCells()
  /// Cells with a defined name, for formulas and macros.
  var names: [String: CellReference] = [:]
  private var pageBreakRows: [Int] = []

  /// Height of a default row, 15 points.
  static let pixelsPerRow = 20

  static let lastColumn = 10
  private static let widths = (names: 44.0, numbers: 16.0)

  init(
    _ sheet: Sheet, in workbook: borrowing Workbook, options: ReportOptions, summaryDigest: String
  ) throws(SpreadsheetError) {
    (self.sheet, self.summaryDigest, self.options) = (sheet, summaryDigest, options)
    formats = try SummaryFormats(workbook)
    try sheet.setColumns(0...0, width: SummaryPage.widths.names)
    try sheet.hideGridlines()
    try sheet.setTabColour(Palette.navy)
    try sheet.activate()
  }

  consuming func write(
    totals: Totals, facts: SummaryFacts, sheets: TableFormulas, in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    try sheet.setColumns(1...SummaryPage.lastColumn, width: SummaryPage.width(totals, facts, sheets))
    try writeTitle(facts)
    try writeNavigation(sheets.sheets)
    try writeChanges(facts.changes)
    try writeFirst(facts.first)
    try writeRefundRequests(facts)
    try writeOwners(facts.findings)
    try writeDecisions(facts)
    try writeScope(totals, facts)
    beginPage()
    let money = try writeMoney(totals, facts.findings.atStake, sheets)
    try writeSalesAndLiabilities(totals, facts, sheets)
    try writeRefundRates(facts)
    try writeJournal(sheets)
    try writeRollForward(facts, sheets)
    beginPage()
    try writeFindings(facts, sheets)
    try writeAdjustments(facts)
    beginPage()
    try writeCharts(money, totals: totals, history: facts.history, in: workbook)
    beginPage()
    try writeControls(
      LiveControls(totals: totals, facts: facts, options: options, sheets: sheets, money: money, figures))
    beginPage()
    if let tieOut = facts.tieOut {
      try writeTieOut(tieOut)
      if !tieOut.days.isEmpty { try writeTrend(tieOut, in: workbook) }
    }
    try writeContents(sheets.sheets)
    try writeSignatures()
    try writeTiles(facts.tiles(totals))
    for (name, cell) in names.sorted(by: { $0.key < $1.key }) {
      let range = CellRange(rows: cell.row...cell.row, columns: cell.column...cell.column)
      try workbook.defineName(name, for: SheetRange(sheet: sheet.name, range: range))
    }
    let rows = pageBreakRows
    try sheet.setUpPrinting(
      PrintSetup {
        $0.pageBreakRows = rows
        $0.footer = "&LCustomer amounts as recorded; proceeds are named&RPage &P of &N"
      })
    try sheet.protect()
  }

  /// All number columns are as wide as the largest sum needs, because charts span them.
  private static func width(_ totals: Totals, _ facts: SummaryFacts, _ sheets: TableFormulas) -> Double {
    var widths = ColumnWidths(least: [SummaryPage.widths.numbers])
    func fit(_ units: Int128, _ currency: Currency) {
      widths.fit(units, digits: currency.digits, column: 0, isBold: true)
    }
    let (findings, roll) = (facts.findings, facts.findings.rollForward)
    for money in [totals.ordered, findings.atStake, roll.opening, roll.new, roll.closed, roll.changed]
      + facts.history.map(\.atStake)
    {
      for (currency, units) in money.sorted { fit(units, currency) }
    }
    for adjustment in facts.adjustments {
      let (before, now) = (adjustment.reported.minorUnits, adjustment.now.minorUnits)
      for units in [before, now, now - before] { fit(units, adjustment.bucket.currency) }
    }
    for (currency, units) in facts.adjustments.net { fit(units, currency) }
    if let refunds = sheets[.refunds] {
      for currency in refunds.tableTotals.sorted.compactMap({ Currency(code: $0.currency) }) {
        fit(refunds.tableTotals.units(of: currency.code, column: refunds.position(of: "amount")), currency)
      }
    }
    return widths[0]
  }

  private mutating func beginPage() { pageBreakRows.append(row) }
}

/// The content of a cell in a table of the first sheet. Its format follows from the content.
enum SummaryCell {
  case blank
  case text(String)
  case rightText(String)
  case figure(LiveFigure)

  static func count(_ count: Int) -> SummaryCell { .figure(LiveFigure(nil, count)) }

  static func money(_ units: Int128, _ currency: Currency) -> SummaryCell {
    .figure(LiveFigure(nil, units, currency))
  }
}

extension SummaryPage {
  /// Writes cells from left to right, and goes to the next row.
  mutating func writeRow(_ cells: [SummaryCell], from column: Int = 0) throws(SpreadsheetError) {
    for (offset, cell) in cells.enumerated() {
      let column = column + offset
      switch cell {
      case .blank: break
      case .text(let text):
        try sheet.writeText(CellText.fitting(text), row: row, column: column, format: formats[.tableText])
      case .rightText(let text): try sheet.writeText(text, row: row, column: column, format: formats[.tableTextRight])
      case .figure(let figure):
        try write(figure, column: column, figure.digits.map { formats.amount(digits: $0) } ?? formats[.tableCount])
      }
    }
    row += 1
  }

  func write(_ figure: LiveFigure, column: Int, _ format: CellFormat) throws(SpreadsheetError) {
    switch figure.formula {
    case .none: try sheet.writeNumber(figure.result, row: row, column: column, format: format)
    case .some(let formula):
      try sheet.writeFormula(formula, result: figure.result, row: row, column: column, format: format)
    }
  }

  /// - Parameter height: the height of the row in points; nil: that of the text.
  mutating func line(_ text: String, _ format: CellFormat, height: Double? = nil) throws(SpreadsheetError) {
    try sheet.setRow(row, height: height ?? Self.height(of: text, charactersPerLine: 190))
    try sheet.merge(text, 0...SummaryPage.lastColumn, row: row, format)
    row += 1
  }

  /// The height of a row in points, because Excel does not fit heights to merged cells.
  static func height(of text: String, charactersPerLine: Int) -> Double {
    15 * Double(max(1, (text.count + charactersPerLine - 1) / charactersPerLine))
  }

  mutating func bullets(_ texts: some Sequence<String>) throws(SpreadsheetError) {
    for text in texts { try line("•  \(text)", formats[.value]) }
  }

  mutating func gap() throws(SpreadsheetError) {
    try sheet.setRow(row, height: 8)
    row += 1
  }

  mutating func heading(_ text: String) throws(SpreadsheetError) { try line(text, formats[.heading], height: 24) }

  /// - Parameter texts: count of the first titles that are above text; the others are above numbers.
  mutating func header(_ titles: [String], texts: Int = 1, from column: Int = 0) throws(SpreadsheetError) {
    for (offset, title) in titles.enumerated() {
      let format = offset < texts ? formats[.tableHeader] : formats[.tableHeaderRight]
      try sheet.writeText(title, row: row, column: column + offset, format: format)
    }
    row += 1
  }

  mutating func fact(_ label: String, _ value: String) throws(SpreadsheetError) {
    try sheet.writeText(label, row: row, column: 0, format: formats[.label])
    try sheet.merge(value, 1...SummaryPage.lastColumn, row: row, formats[.value])
    row += 1
  }
}
