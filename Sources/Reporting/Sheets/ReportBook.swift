import Foundation
import Reconciliation
import Spreadsheet

/// The workbook of a report. Rows wait in temporary files, so that memory grows only with links.
struct ReportBook: ~Copyable {
  private let workbook: Workbook
  private let options: ReportOptions
  private let summary: Sheet
  private let about: Sheet
  private var sheets: DataSheets

  static func fileName(_ options: ReportOptions) -> String { "night-audit-\(options.period.name).xlsx" }

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
    let sheets = try DataSheets(workbook, options, rowsPerSheet: rowsPerSheet)
    let about = try workbook.addSheet(named: AboutPage.name, storage: .inMemory)
    self.sheets = sheets
    self.workbook = workbook
    self.summary = summary
    self.about = about
    self.options = options
  }

  mutating func write(_ order: OrderLine) throws(ReportError) {
    guard options.listsAllOrders || order.findings != nil else { return }
    try sheets.orders.add(order, in: workbook)
    if order.findings != nil {
      sheets.findings.link(order.orderId, to: sheets.orders.lastPlace)
      sheets.periodFindings?.link(order.orderId, to: sheets.orders.lastPlace)
    }
  }

  mutating func write(_ finding: FindingLine) throws(ReportError) {
    try sheets.findings.add(finding, in: workbook)
    if let occurredAt = finding.reported.finding.occurredAt, options.period.contains(occurredAt) {
      try sheets.periodFindings?.add(finding, in: workbook)
    }
  }

  mutating func write(_ line: ReceiptLine) throws(ReportError) {
    guard options.listsAllReceipts || line.receipt.state.outcome != .verified else { return }
    try sheets.receipts.add(line, in: workbook)
  }

  mutating func write(_ refund: RefundRow) throws(ReportError) { try sheets.refunds.add(refund, in: workbook) }

  mutating func write(_ request: RefundRequestRow) throws(ReportError) {
    try sheets.refundRequests.add(request, in: workbook)
  }

  mutating func write(_ line: JournalLine) throws(ReportError) { try sheets.journal?.add(line, in: workbook) }

  mutating func write(_ row: SandboxRow) throws(ReportError) { try sheets.sandbox.add(row, in: workbook) }

  mutating func write(_ change: ChangeRow) throws(ReportError) { try sheets.changes.add(change, in: workbook) }

  mutating func write(_ day: DayLine) throws(ReportError) { try sheets.days.add(day, in: workbook) }

  mutating func write(_ line: TieOutLine) throws(ReportError) { try sheets.tieOut?.add(line, in: workbook) }

  mutating func write(_ line: SettlementLine) throws(ReportError) { try sheets.settlement?.add(line, in: workbook) }

  mutating func write(_ product: ProductLine) throws(ReportError) { try sheets.products.add(product, in: workbook) }

  mutating func write(_ user: UserLine) throws(ReportError) { try sheets.users.add(user, in: workbook) }

  mutating func write(_ point: PricePointLine) throws(ReportError) { try sheets.amounts.add(point, in: workbook) }

  consuming func finish(
    totals: Totals, summary facts: SummaryFacts, summaryDigest: String
  ) throws(ReportError) {
    do {
      try sheets.finish()
      let page = try SummaryPage(summary, in: workbook, options: options, summaryDigest: summaryDigest)
      try page.write(totals: totals, facts: facts, sheets: TableFormulas(sheets.all), in: workbook)
      try AboutPage(about, in: workbook, options: options).write(facts)
      try workbook.close()
    } catch {
      throw ReportError.workbook(error)
    }
  }
}

private struct DataSheets {
  var findings: DataSheet
  var periodFindings: DataSheet?
  var changes: DataSheet
  var days: DataSheet
  var tieOut: DataSheet?
  var settlement: DataSheet?
  var products: DataSheet
  var users: DataSheet
  var amounts: DataSheet
  var refunds: DataSheet
  var refundRequests: DataSheet
  var journal: DataSheet?
  var sandbox: DataSheet
  var receipts: DataSheet
  var orders: DataSheet

  init(_ workbook: borrowing Workbook, _ options: ReportOptions, rowsPerSheet: Int?) throws(SpreadsheetError) {
    let formats = try CellFormats(workbook)
    func sheet(_ table: ReportTable, _ workbook: borrowing Workbook) throws(SpreadsheetError) -> DataSheet {
      try DataSheet(table, in: workbook, formats: formats, options: options, rowsPerSheet: rowsPerSheet)
    }
    findings = try sheet(.findings, workbook)
    periodFindings = options.period.isRange ? try sheet(.periodFindings, workbook) : nil
    changes = try sheet(.changes, workbook)
    days = try sheet(.days, workbook)
    tieOut = options.hasTieOut ? try sheet(.tieOut, workbook) : nil
    settlement = options.hasTieOut ? try sheet(.settlement, workbook) : nil
    products = try sheet(.products, workbook)
    users = try sheet(.users, workbook)
    amounts = try sheet(.amounts, workbook)
    refunds = try sheet(.refunds, workbook)
    refundRequests = try sheet(.refundRequests, workbook)
    journal = options.hasJournal ? try sheet(.journal, workbook) : nil
    sandbox = try sheet(.sandbox, workbook)
    receipts = try sheet(.receipts, workbook)
    orders = try sheet(.orders, workbook)
  }

  var all: [DataSheet] {
    [findings] + [periodFindings].compactMap(\.self) + [changes, days] + [tieOut, settlement].compactMap(\.self)
      + [products, users, amounts, refunds, refundRequests] + [journal].compactMap(\.self)
      + [sandbox, receipts, orders]
  }

  mutating func finish() throws(SpreadsheetError) {
    try findings.finish()
    try periodFindings?.finish()
    try changes.finish()
    try days.finish()
    try tieOut?.finish()
    try settlement?.finish()
    try products.finish()
    try users.finish()
    try amounts.finish()
    try refunds.finish()
    try refundRequests.finish()
    try journal?.finish()
    try sandbox.finish()
    try receipts.finish()
    try orders.finish()
  }
}
