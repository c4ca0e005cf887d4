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

  /// Where the row of large figures is; it is written when it is known where the control totals are.
  private var tileRow = 0
  /// The cells that say whether a control total balances.
  private var results: CellRange?
  private var rowsThatBeginPages: [Int] = []

  /// In rows.
  static let chartHeight = 15

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
    try sheet.setColumns(0...0, width: 38)
    try sheet.setColumns(1...SummaryPage.lastColumn, width: 14.5)
    try sheet.hideGridlines()
    try sheet.setTabColour(Palette.navy)
    try sheet.activate()
  }

  /// - Parameter sheets: the data sheets, ended, in the order of their tabs.
  consuming func write(
    totals: Totals, facts: SummaryFacts, control: [ControlTotal], sheets: [DataSheet], in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    try writeTitle(facts)
    try writeNavigation(sheets)
    try writeScope(totals, facts)
    try writeControl(control)
    try writeTiles(totals, facts.findings, control)
    try writeMoney(totals, users: sheets.first { $0.table == .users })
    try writeAdjustments(facts.adjustments)
    beginPage()
    try writeFindings(facts.findings, sheet: sheets.first { $0.table == .findings }, in: workbook)
    try writeContents(sheets)
    try writeSignatures()
    beginPage()
    try writeHistory(facts.history, currencies: chartedCurrencies(totals, facts.history), in: workbook)
    let rows = rowsThatBeginPages
    try sheet.setUpPrinting(
      PrintSetup {
        $0.isLandscape = true
        $0.pagesWide = 1
        $0.rowsThatBeginPages = rows
        $0.header = "&L&A&R&F"
        $0.footer = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"
      })
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
    for reason in facts.incompleteReasons { try line("•  \(reason)", formats.value, height: nil) }
    try gap()
    tileRow = row
    row += 2
    try gap()
  }

  /// What a reader wants to know before anything else.
  private func writeTiles(
    _ totals: Totals, _ findings: FindingsSummary, _ control: [ControlTotal]
  ) throws(SpreadsheetError) {
    try sheet.setRow(tileRow, height: 20)
    try sheet.setRow(tileRow + 1, height: 32)
    try sheet.writeText("Control totals", row: tileRow, column: 0, format: formats.tileLabel)
    if let results {
      let count = results.rows.count
      try sheet.writeFormula(
        "IF(COUNTIF(\(results),\"balanced\")=\(count),\"balanced\",\"NOT BALANCED\")", result: "balanced",
        row: tileRow + 1, column: 0, format: formats.tileGood)
      let cell = CellRange(rows: tileRow + 1...tileRow + 1, columns: 0...0)
      try sheet.addConditionalFormat(.text(equals: "NOT BALANCED", formats.bad), in: cell)
    }
    let critical = findings.count(.critical)
    let tiles = [
      ("Orders read", totals.ordersRead, formats.tile),
      ("Open findings", findings.closing, formats.tile),
      ("Critical", critical, critical > 0 ? formats.tileBad : formats.tile),
      ("New since the run before", findings.new, formats.tile),
      ("At stake, amount unknown", findings.open.unknown, findings.open.unknown > 0 ? formats.tileBad : formats.tile),
    ]
    for (position, (label, number, format)) in tiles.enumerated() {
      let columns = 1 + 2 * position...2 + 2 * position
      try sheet.mergeCells(
        CellRange(rows: tileRow...tileRow, columns: columns), text: label, format: formats.tileLabel)
      try sheet.mergeCells(
        CellRange(rows: tileRow + 1...tileRow + 1, columns: columns), text: "", format: format)
      try sheet.writeInteger(number, row: tileRow + 1, column: columns.lowerBound, format: format)
    }
  }

  /// One line of links, so that no sheet is further than a click from the first screen.
  private mutating func writeNavigation(_ sheets: [DataSheet]) throws(SpreadsheetError) {
    try sheet.setRow(row, height: 20)
    try sheet.writeText("Go to", row: row, column: 0, format: formats.label)
    for (position, data) in sheets.enumerated() {
      let name = data.table.sheetName(part: 1)
      try sheet.writeLink(
        to: CellReference(row: 0, column: 0), on: name, text: name.description, row: row, column: 1 + position,
        format: formats.navigation)
    }
    row += 2
  }

  private mutating func writeScope(_ totals: Totals, _ facts: SummaryFacts) throws(SpreadsheetError) {
    try heading("What was audited")
    let days = facts.since == facts.until ? facts.since : "\(facts.since) to \(facts.until)"
    try fact("Period", "\(days), \(facts.timeZone)")
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
    row += 1
    try fact("Configuration", facts.configuration)
    try fact(
      "Run", "summary.json has the SHA-256 \(summaryDigest.prefix(16))…; run.json beside it names the run that made it")
    try fact(
      "Amounts",
      "Customer amounts as the shop recorded them: not Apple's proceeds, and not for revenue recognition. "
        + "Amounts of different currencies are never added up.")
    row += 1
  }

  // MARK: - Control totals

  private mutating func writeControl(_ control: [ControlTotal]) throws(SpreadsheetError) {
    try heading("Control totals")
    try header(["Two ways to the same sum", "Left", "Right", "Difference"])
    try sheet.writeText("Result", row: row - 1, column: 4, format: formats.tableHeaderCentre)
    let first = row
    for total in control {
      let left = CellReference(row: row, column: 1)
      let right = CellReference(row: row, column: 2)
      let difference = CellReference(row: row, column: 3)
      let digits = total.left.split(separator: ".", omittingEmptySubsequences: false).dropFirst().first?.count ?? 0
      let format = formats.amount(digits: UInt8(clamping: digits))
      try sheet.writeText(total.name, row: row, column: 0, format: formats.tableText)
      try sheet.writeNumber(Double(total.left) ?? 0, row: row, column: 1, format: format)
      try sheet.writeNumber(Double(total.right) ?? 0, row: row, column: 2, format: format)
      try sheet.writeFormula("ROUND(\(left)-\(right),\(digits))", result: 0, row: row, column: 3, format: format)
      try sheet.writeFormula(
        "IF(\(difference)=0,\"balanced\",\"NOT BALANCED\")", result: "balanced", row: row, column: 4,
        format: formats.balanced)
      row += 1
    }
    let results = CellRange(rows: first...max(first, row - 1), columns: 4...4)
    try sheet.addConditionalFormat(.text(equals: "balanced", formats.good), in: results)
    try sheet.addConditionalFormat(.text(equals: "NOT BALANCED", formats.bad), in: results)
    self.results = results
    row += 1
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
    let all = options.hasFiles ? "; all are in \(data.table.fileName) beside this workbook." : "."
    if data.table == .receipts, !options.listsAllReceipts {
      return "Only those of the \(grouped(options.receiptsInScope)) receipts that are not verified\(all)"
    }
    if data.table == .orders, !options.listsAllOrders {
      return "Only those of the \(grouped(options.ordersInPeriod)) orders with findings\(all)"
    }
    return data.table.shape.sheetNote
  }

  private func grouped(_ number: Int) -> String {
    var groups = String(number)
    for offset in stride(from: groups.count - 3, to: 0, by: -3) {
      groups.insert(",", at: groups.index(groups.startIndex, offsetBy: offset))
    }
    return groups
  }

  // MARK: - Sign-off

  private mutating func writeSignatures() throws(SpreadsheetError) {
    try heading("Sign-off")
    for role in ["Prepared by", "Reviewed by"] {
      try sheet.setRow(row, height: 24)
      try sheet.writeText(role, row: row, column: 0, format: formats.label)
      try entry(columns: 1...4)
      try sheet.writeText("Date", row: row, column: 6, format: formats.label)
      try entry(columns: 7...SummaryPage.lastColumn)
      row += 1
    }
    try sheet.setRow(row, height: 24)
    try sheet.writeText("Remark", row: row, column: 0, format: formats.label)
    try entry(columns: 1...SummaryPage.lastColumn)
    row += 2
  }

  private func entry(columns: ClosedRange<Int>) throws(SpreadsheetError) {
    try sheet.mergeCells(CellRange(rows: row...row, columns: columns), text: "", format: formats.signature)
  }
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
