import Foundation
import Reconciliation
import Spreadsheet

/// The workbook of a report. A sheet's rows wait in temporary files beside it, so memory grows with links alone.
struct ReportBook: ~Copyable {
  private let workbook: Workbook
  private let options: ReportOptions
  private let summary: Sheet
  private var sheets: DataSheets

  static func fileName(_ options: ReportOptions) -> String { "night-audit-\(options.date).xlsx" }

  init(_ options: ReportOptions, rowsPerSheet: Int? = nil) throws(SpreadsheetError) {
    let workbook = try Workbook(
      path: "\(options.directory)/\(ReportBook.fileName(options))", temporaryDirectory: options.directory,
      properties: DocumentProperties(
        title: "App Store night audit \(options.date)", subject: "Orders, payments and deliveries compared",
        author: "night-audit",
        comments: "Customer amounts as recorded by the shop; not proceeds, not for revenue recognition.",
        created: max(1, options.asOf.seconds), custom: [("As of", options.asOf.text), ("Period ends", options.date)]))
    // The order of the tabs is the order in which sheets are added.
    let summary = try workbook.addSheet(named: "Summary", storage: .inMemory)
    sheets = try DataSheets(workbook, options, rowsPerSheet: rowsPerSheet)
    self.workbook = workbook
    self.summary = summary
    self.options = options
  }

  mutating func write(order judgement: borrowing Judgement) throws(ReportError) {
    guard options.listsAllOrders || !judgement.findings.isEmpty else { return }
    try sheets.orders.row(in: workbook) { (row) throws(SpreadsheetError) in try row.order(judgement) }
    if !judgement.findings.isEmpty {
      sheets.findings.link(judgement.row.orderId, to: sheets.orders.lastPlace)
    }
  }

  mutating func write(finding: ReportedFinding) throws(ReportError) {
    try sheets.findings.row(in: workbook) { (row) throws(SpreadsheetError) in
      try row.finding(finding, asOf: options.asOf)
      try row.text(finding.remark)
    }
  }

  mutating func write(receipt: Receipt) throws(ReportError) {
    guard options.listsAllReceipts || receipt.state.outcome != .verified else { return }
    try sheets.receipts.row(in: workbook) { (row) throws(SpreadsheetError) in
      try row.receipt(receipt, asOf: options.asOf)
    }
  }

  mutating func write(refund: RefundRow) throws(ReportError) {
    try sheets.refunds.row(in: workbook) { (row) throws(SpreadsheetError) in try row.refund(refund) }
  }

  mutating func write(sandbox row: SandboxRow) throws(ReportError) {
    try sheets.sandbox.row(in: workbook) { (sheet) throws(SpreadsheetError) in try sheet.sandbox(row) }
  }

  mutating func write(user key: Totals.UserKey, _ line: Totals.Line) throws(ReportError) {
    try sheets.users.row(in: workbook) { (row) throws(SpreadsheetError) in try row.user(key, line) }
  }

  mutating func write(pricePoint key: Totals.PricePoint, _ line: Totals.Line) throws(ReportError) {
    try sheets.amounts.row(in: workbook) { (row) throws(SpreadsheetError) in try row.pricePoint(key, line) }
  }

  /// Writes what is left, ends every sheet and brings the workbook to disk.
  consuming func finish(
    totals: Totals, summary facts: SummaryFacts, control: [ControlTotal], summaryDigest: String
  ) throws(ReportError) {
    do {
      try sheets.finish()
      let page = try SummaryPage(summary, in: workbook, options: options, summaryDigest: summaryDigest)
      try page.write(totals: totals, facts: facts, control: control, sheets: sheets.all, in: workbook)
      try workbook.close()
    } catch {
      throw ReportError.workbook(error)
    }
  }
}

/// The data sheets of a workbook.
private struct DataSheets {
  var findings: DataSheet
  var users: DataSheet
  var amounts: DataSheet
  var refunds: DataSheet
  var sandbox: DataSheet
  var receipts: DataSheet
  var orders: DataSheet

  /// Adds them in the order of their tabs.
  init(_ workbook: borrowing Workbook, _ options: ReportOptions, rowsPerSheet: Int?) throws(SpreadsheetError) {
    let formats = try CellFormats(workbook)
    func sheet(_ table: ReportTable, _ workbook: borrowing Workbook) throws(SpreadsheetError) -> DataSheet {
      try DataSheet(table, in: workbook, formats: formats, timeZone: options.timeZone, rowsPerSheet: rowsPerSheet)
    }
    findings = try sheet(.findings, workbook)
    users = try sheet(.users, workbook)
    amounts = try sheet(.amounts, workbook)
    refunds = try sheet(.refunds, workbook)
    sandbox = try sheet(.sandbox, workbook)
    receipts = try sheet(.receipts, workbook)
    orders = try sheet(.orders, workbook)
  }

  /// In the order of their tabs.
  var all: [DataSheet] { [findings, users, amounts, refunds, sandbox, receipts, orders] }

  mutating func finish() throws(SpreadsheetError) {
    try findings.finish()
    try users.finish()
    try amounts.finish()
    try refunds.finish()
    try sandbox.finish()
    try receipts.finish()
    try orders.finish()
  }
}
