import Foundation
import Reconciliation
import Spreadsheet

/// The first sheet: what was audited, whether it is whole and balanced, and where the money and the findings are.
struct SummaryPage {
  let sheet: Sheet
  let formats: SummaryFormats
  let options: ReportOptions
  /// Of `summary.json`: 64 hexadecimal digits.
  let summaryDigest: String
  /// The row to be written, counted from zero.
  var row = 0

  /// Where the row of large figures is; it is written when it is known where the controls are.
  private var tileRow = 0
  /// Where the line over everything is that says whether the controls balance.
  private var bannerRow = 0
  /// The cells that say whether a control balances.
  private var results: CellRange?
  private var unbalanced = 0
  /// Cells that other parts of the page refer to.
  var figures = SummaryCells()
  /// Cells that formulas and macros can call by a name.
  var names: [String: CellReference] = [:]
  private var rowsThatBeginPages: [Int] = []

  /// Of a row that is not set: 15 points.
  static let pixelsPerRow = 20

  /// The first column holds names, the others one number each.
  static let lastColumn = 10

  init(
    _ sheet: Sheet, in workbook: borrowing Workbook, options: ReportOptions, summaryDigest: String
  ) throws(SpreadsheetError) {
    self.sheet = sheet
    self.summaryDigest = summaryDigest
    self.options = options
    formats = try SummaryFormats(workbook)
    try sheet.setColumns(0...0, width: 44)
    try sheet.setColumns(1...SummaryPage.lastColumn, width: 14.5)
    try sheet.hideGridlines()
    try sheet.setTabColour(Palette.navy)
    try sheet.activate()
  }

  /// - Parameter sheets: the data sheets, ended.
  consuming func write(
    totals: Totals, facts: SummaryFacts, sheets: TableFormulas, in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    try writeTitle(facts)
    try writeNavigation(sheets.sheets)
    try writeScope(totals, facts)
    let money = try writeMoney(totals, sheets)
    try writeRollForward(facts, sheets)
    try writeChanges(facts.changes)
    beginPage()
    try writeFindings(facts, sheets)
    try writeAdjustments(facts.adjustments)
    beginPage()
    try writeControls(
      LiveControls(totals: totals, facts: facts, options: options, sheets: sheets, money: money, figures))
    if let tieOut = facts.tieOut { try writeTieOut(tieOut) }
    try writeContents(sheets.sheets)
    try writeSignatures()
    beginPage()
    try writeCharts(money, totals: totals, history: facts.history, in: workbook)
    if let tieOut = facts.tieOut { try writeTrend(tieOut, in: workbook) }
    try writeTiles(totals, facts.findings)
    for (name, cell) in names.sorted(by: { $0.key < $1.key }) {
      let range = CellRange(rows: cell.row...cell.row, columns: cell.column...cell.column)
      try workbook.defineName(name, for: SheetRange(sheet: sheet.name, range: range))
    }
    let rows = rowsThatBeginPages
    try sheet.setUpPrinting(
      PrintSetup {
        $0.isLandscape = true
        $0.pagesWide = 1
        $0.rowsThatBeginPages = rows
        $0.header = "&L&A&R&F"
        $0.footer = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"
      })
    try sheet.protect(allowing: [.selectLockedCells, .selectUnlockedCells, .formatColumns, .formatRows])
  }

  private mutating func beginPage() { rowsThatBeginPages.append(row) }

  // MARK: - What was audited

  private mutating func writeTitle(_ facts: SummaryFacts) throws(SpreadsheetError) {
    try line("App Store night audit \(options.date)", formats.title, height: 34)
    try line(options.apps.joined(separator: " · "), formats.subtitle, height: 20)
    try line(
      facts.isComplete
        ? "COMPLETE: every check that was due was answered."
        : "INCOMPLETE: the report is right as far as it goes, but something is missing.",
      facts.isComplete ? formats.complete : formats.incomplete, height: 26)
    bannerRow = row
    row += 1
    for reason in facts.incompleteReasons { try line("•  \(reason)", formats.value, height: nil) }
    for (app, kinds) in facts.notChecked.sorted(by: { $0.key < $1.key }) {
      let words = kinds.map { $0.rawValue.replacing("_", with: " ") }.joined(separator: ", ")
      try line("•  Not checked for \(app), whose channel does not tell: \(words).", formats.value, height: nil)
    }
    try gap()
    tileRow = row
    row += 2
    try gap()
  }

  /// What a reader wants to know before anything else.
  private func writeTiles(_ totals: Totals, _ findings: FindingsSummary) throws(SpreadsheetError) {
    try sheet.setRow(bannerRow, height: 26)
    let banner = CellRange(rows: bannerRow...bannerRow, columns: 0...SummaryPage.lastColumn)
    try sheet.mergeCells(banner, text: "", format: formats.complete)
    if let results {
      let count = results.rows.count
      try sheet.writeFormula(
        """
        IF(COUNTIF(\(results),"balanced")=\(count),"BALANCED: all \(count) controls agree.",\
        "NOT BALANCED: "&(\(count)-COUNTIF(\(results),"balanced"))&" of \(count) controls do not agree. Do not use these numbers.")
        """,
        result: unbalanced == 0
          ? "BALANCED: all \(count) controls agree."
          : "NOT BALANCED: \(unbalanced) of \(count) controls do not agree. Do not use these numbers.", row: bannerRow,
        column: 0,
        format: formats.complete)
      try sheet.addConditionalFormat(
        .formula("COUNTIF(\(absolute: results),\"balanced\")<>\(count)", formats.bad), in: banner)
    }
    try sheet.setRow(tileRow, height: 20)
    try sheet.setRow(tileRow + 1, height: 32)
    let tiles: [(String, Int, CellFormat)] = [
      ("Orders read", totals.ordersRead, formats.tile),
      ("Open findings", findings.closing, formats.tile),
      ("Critical", findings.count(.critical), findings.count(.critical) > 0 ? formats.tileBad : formats.tile),
      ("New", findings.new, formats.tile),
      ("Closed", findings.closed, formats.tile),
      ("Of unknown amount", findings.open.unknown, findings.open.unknown > 0 ? formats.tileBad : formats.tile),
    ]
    var column = 0
    for (position, (label, number, format)) in tiles.enumerated() {
      let columns = position == 0 ? 0...0 : column...column + 1
      if columns.count == 1 {
        try sheet.writeText(label, row: tileRow, column: column, format: formats.tileLabel)
      } else {
        try sheet.mergeCells(
          CellRange(rows: tileRow...tileRow, columns: columns), text: label, format: formats.tileLabel)
        try sheet.mergeCells(
          CellRange(rows: tileRow + 1...tileRow + 1, columns: columns), text: "", format: format)
      }
      try sheet.writeInteger(number, row: tileRow + 1, column: column, format: format)
      column += columns.count
    }
  }

  /// One line of links, so that no sheet is further than a click from the first screen.
  private mutating func writeNavigation(_ sheets: [DataSheet]) throws(SpreadsheetError) {
    try sheet.setRow(row, height: 20)
    try sheet.writeText("Go to", row: row, column: 0, format: formats.label)
    for (position, name) in (sheets.map { $0.table.sheetName(part: 1) } + ["About"]).enumerated() {
      try sheet.writeLink(
        to: CellReference(row: 0, column: 0), on: name, text: name.description, row: row, column: 1 + position,
        format: formats.navigation)
    }
    row += 2
  }

  private mutating func writeScope(_ totals: Totals, _ facts: SummaryFacts) throws(SpreadsheetError) {
    try heading("What was audited")
    try sheet.writeText("Period, last day", row: row, column: 0, format: formats.label)
    figures.day = CellReference(row: row, column: 1)
    names["LastDay"] = CellReference(row: row, column: 1)
    try sheet.writeText(facts.until, row: row, column: 1, format: formats.value)
    if facts.since != facts.until {
      try sheet.writeText("from \(facts.since)", row: row, column: 2, format: formats.value)
    }
    row += 1
    try sheet.writeText("As of", row: row, column: 0, format: formats.label)
    var clock = LocalClock(timeZone: options.timeZone)
    let local = clock.localSeconds(options.asOf)
    try sheet.mergeCells(CellRange(rows: row...row, columns: 1...2), text: "", format: formats.instant)
    do {
      try sheet.writeDateTime(localSecondsSince1970: local, row: row, column: 1, format: formats.instant)
    } catch {
      guard error.code == .dateOutOfRange else { throw error }
      try sheet.writeText(options.asOf.text, row: row, column: 1, format: formats.value)
    }
    row += 1
    try fact("Times in sheets", "\(facts.timeZone); in CSV files UTC")
    try sheet.writeText("Orders read", row: row, column: 0, format: formats.label)
    try sheet.writeInteger(totals.ordersRead, row: row, column: 1, format: formats.value)
    names["OrdersRead"] = CellReference(row: row, column: 1)
    row += 1
    try fact("Settings", "on the sheet About, with what every bucket, kind and reason means")
    try fact(
      "Run", "summary.json has the SHA-256 \(summaryDigest.prefix(16))…; run.json beside it names the run that made it")
    try fact(
      "Amounts",
      "Customer amounts as the shop recorded them: not Apple's proceeds, and not for revenue recognition. "
        + "Amounts of different currencies are never added up.")
    row += 1
  }

  // MARK: - Controls

  /// Each side is a formula over the sheets, so that a number that somebody changes is found.
  private mutating func writeControls(_ live: LiveControls) throws(SpreadsheetError) {
    try heading("Controls")
    try line(
      "Two ways to the same number. Both are calculated from the sheets: change a cell there, and its line turns red here "
        + "and so does the banner.", formats.label, height: nil)
    try header(["Two ways to the same number", "Left", "Right", "Difference"])
    try sheet.writeText("Result", row: row - 1, column: 4, format: formats.tableHeaderCentre)
    let first = row
    for control in live.controls {
      let left = CellReference(row: row, column: 1)
      let right = CellReference(row: row, column: 2)
      let difference = CellReference(row: row, column: 3)
      let digits = Int(control.digits)
      let format = formats.amount(digits: control.digits)
      try sheet.writeText(control.name, row: row, column: 0, format: formats.tableText)
      try write(control.left, column: 1, format)
      try write(control.right, column: 2, format)
      let isBalanced = control.isBalanced
      if !isBalanced { unbalanced += 1 }
      try sheet.writeFormula(
        "ROUND(\(left)-\(right),\(digits))", result: control.left.result - control.right.result, row: row, column: 3,
        format: format)
      try sheet.writeFormula(
        "IF(\(difference)=0,\"balanced\",\"NOT BALANCED\")", result: isBalanced ? "balanced" : "NOT BALANCED", row: row,
        column: 4, format: formats.balanced)
      if let note = control.note {
        try sheet.mergeCells(
          CellRange(rows: row...row, columns: 5...SummaryPage.lastColumn), text: note, format: formats.label)
      }
      row += 1
    }
    let results = CellRange(rows: first...max(first, row - 1), columns: 4...4)
    try sheet.addConditionalFormat(.text(equals: "balanced", formats.good), in: results)
    try sheet.addConditionalFormat(.text(equals: "NOT BALANCED", formats.bad), in: results)
    self.results = results
    row += 1
  }

  /// A number, by a formula where there is one.
  func write(_ figure: LiveFigure, column: Int, _ format: CellFormat) throws(SpreadsheetError) {
    switch figure.formula {
    case .none: try sheet.writeNumber(figure.result, row: row, column: column, format: format)
    case .some(let formula):
      try sheet.writeFormula(formula, result: figure.result, row: row, column: column, format: format)
    }
  }

  // MARK: - Where everything is

  private mutating func writeContents(_ sheets: [DataSheet]) throws(SpreadsheetError) {
    try heading("Sheets of this workbook")
    try header(["Sheet", "Rows"])
    row -= 1
    try sheet.mergeCells(
      CellRange(rows: row...row, columns: 2...SummaryPage.lastColumn), text: "What it holds",
      format: formats.tableHeader)
    row += 1
    for data in sheets {
      for (position, part) in data.parts.enumerated() {
        try sheet.writeLink(
          to: CellReference(row: 0, column: 0), on: part.name, text: part.name.description, row: row, column: 0,
          format: formats.link)
        try sheet.writeInteger(part.rows, row: row, column: 1, format: formats.tableCount)
        try sheet.mergeCells(
          CellRange(rows: row...row, columns: 2...SummaryPage.lastColumn),
          text: position == 0 ? note(on: data) : "Continues \(data.parts[position - 1].name).",
          format: formats.tableText)
        row += 1
      }
    }
    row += 1
  }

  private func note(on data: DataSheet) -> String {
    let all =
      if options.hasFiles, let name = data.table.fileName { "; all are in \(name) beside this workbook." } else { "." }
    if data.table == .receipts, !options.listsAllReceipts {
      return "Only those of the \(grouped(options.receiptsInScope)) receipts that are not verified\(all)"
    }
    if data.table == .orders, !options.listsAllOrders {
      return "Only those of the \(grouped(options.ordersInPeriod)) orders with findings\(all)"
    }
    return data.table.shape.sheetNote
  }

  // MARK: - Sign-off

  private mutating func writeSignatures() throws(SpreadsheetError) {
    try heading(SignOff.heading)
    try line(
      "What you write here comes back with `night-audit findings import`, together with the sheet Findings.",
      formats.label, height: nil)
    for label in SignOff.labels {
      try sheet.setRow(row, height: 24)
      try sheet.writeText(label, row: row, column: 0, format: formats.label)
      try sheet.mergeCells(
        CellRange(rows: row...row, columns: 1...6), text: "",
        format: label == SignOff.date ? formats.signatureDate : formats.signature)
      row += 1
    }
    row += 1
  }
}

/// The lines that people sign, each with an open cell to its right.
package enum SignOff {
  /// What stands over them.
  package static let heading = "Sign-off"
  package static let preparedBy = "Prepared by"
  package static let reviewedBy = "Reviewed by"
  package static let date = "Date"
  package static let remark = "Remark"
  package static let labels = [preparedBy, reviewedBy, date, remark]
  /// The sheet that they stand on.
  package static let sheet = "Summary"
}

// What all sections are made of.
extension SummaryPage {
  /// One text across the page.
  mutating func line(_ text: String, _ format: CellFormat, height: Double?) throws(SpreadsheetError) {
    if let height { try sheet.setRow(row, height: height) }
    try sheet.mergeCells(
      CellRange(rows: row...row, columns: 0...SummaryPage.lastColumn), text: CellText.fitting(text), format: format)
    row += 1
  }

  /// A little room.
  mutating func gap() throws(SpreadsheetError) {
    try sheet.setRow(row, height: 8)
    row += 1
  }

  mutating func heading(_ text: String) throws(SpreadsheetError) {
    try line(text, formats.heading, height: 24)
  }

  /// - Parameter texts: how many of them, from the left, head text; the others head numbers.
  mutating func header(_ titles: [String], texts: Int = 1, from column: Int = 0) throws(SpreadsheetError) {
    for (offset, title) in titles.enumerated() {
      let format = offset < texts ? formats.tableHeader : formats.tableHeaderRight
      try sheet.writeText(title, row: row, column: column + offset, format: format)
    }
    row += 1
  }

  mutating func fact(_ label: String, _ value: String) throws(SpreadsheetError) {
    try sheet.writeText(label, row: row, column: 0, format: formats.label)
    try sheet.mergeCells(
      CellRange(rows: row...row, columns: 1...SummaryPage.lastColumn), text: CellText.fitting(value),
      format: formats.value)
    row += 1
  }
}
