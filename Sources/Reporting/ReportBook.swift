import Foundation
import Reconciliation
import Spreadsheet

/// The workbook of a report. Rows wait in temporary files, so that memory grows only with links.
struct ReportBook: ~Copyable {
  private let workbook: Workbook
  private let options: ReportOptions
  private let summary: Sheet
  private let about: Sheet
  /// By the table's raw value; nil for a table without a sheet.
  private var sheets: [DataSheet?]

  static func fileName(_ options: ReportOptions) -> String { "night-audit-\(options.period.folderName).xlsx" }

  init(_ options: ReportOptions, rowsPerSheet: Int? = nil) throws(SpreadsheetError) {
    let workbook = try Workbook(
      path: "\(options.directory)/\(ReportBook.fileName(options))", temporaryDirectory: options.directory,
      properties: DocumentProperties(
        title: "App Store night audit \(options.period.days)", subject: "Orders, payments and deliveries compared",
        author: "night-audit",
        comments: "Customer amounts as recorded by the shop; not proceeds, not for revenue recognition.",
        created: max(1, options.asOf.seconds),
        custom: [("As of", options.asOf.text), ("Period ends", options.period.until)]))
    // Sheets are added in the order of their tabs.
    let summary = try workbook.addSheet(named: "Summary", storage: .inMemory)
    let formats = try CellFormats(workbook)
    var sheets: [DataSheet?] = []
    for table in ReportTable.allCases {
      sheets.append(
        table.hasSheet(options)
          ? try DataSheet(table, in: workbook, formats: formats, options: options, rowsPerSheet: rowsPerSheet) : nil)
    }
    let about = try workbook.addSheet(named: AboutPage.name, storage: .inMemory)
    self.sheets = sheets
    self.workbook = workbook
    self.summary = summary
    self.about = about
    self.options = options
  }

  mutating func write(_ order: OrderLine) throws(ReportError) {
    guard options.listsAllOrders || order.findings != nil else { return }
    try add(order, to: .orders)
    guard order.findings != nil, let place = sheets[ReportTable.orders.rawValue]?.lastPlace else { return }
    for table in [ReportTable.findings, .periodFindings] { sheets[table.rawValue]?.link(order.orderId, to: place) }
  }

  mutating func write(_ finding: FindingLine) throws(ReportError) {
    try add(finding, to: .findings)
    if let occurredAt = finding.reported.finding.occurredAt, options.period.contains(occurredAt) {
      try add(finding, to: .periodFindings)
    }
  }

  mutating func write(_ receipt: Receipt) throws(ReportError) {
    guard options.listsAllReceipts || receipt.state.outcome != .verified else { return }
    try add(receipt, to: .receipts)
  }

  mutating func write<Row: TableRow>(_ row: Row) throws(ReportError) { try add(row, to: Row.table) }

  private mutating func add<Row: TableRow>(_ row: Row, to table: ReportTable) throws(ReportError) {
    try sheets[table.rawValue]?.add(row, in: workbook)
  }

  consuming func finish(totals: Totals, summary facts: SummaryFacts, summaryDigest: String) throws(ReportError) {
    do {
      for place in sheets.indices { try sheets[place]?.finish() }
      let page = try SummaryPage(summary, in: workbook, options: options, summaryDigest: summaryDigest)
      try page.write(totals: totals, facts: facts, sheets: TableFormulas(sheets.compactMap(\.self)), in: workbook)
      try AboutPage(about, in: workbook, options: options).write(facts)
      try workbook.close()
    } catch {
      throw ReportError.workbook(error)
    }
  }
}
