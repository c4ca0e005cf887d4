import Reconciliation
import Spreadsheet

/// An adjustment as `summary.json` has it.
struct AdjustmentLine: Codable {
  struct Sum: Codable {
    let orders: Int
    let amount: String

    init(_ sum: DayTotals.Sum, digits: UInt8) {
      orders = sum.orders
      amount = Money.decimalText(sum.minorUnits, digits: digits)
    }
  }

  let day: String
  let currency: String
  let disposition: String
  let reported: Sum
  let now: Sum

  init(_ adjustment: Adjustment) {
    let currency = adjustment.bucket.currency
    day = adjustment.day
    self.currency = currency.code
    disposition = adjustment.bucket.disposition.rawValue
    reported = Sum(adjustment.reported, digits: currency.digits)
    now = Sum(adjustment.now, digits: currency.digits)
  }
}

extension SummaryPage {
  /// A page is no place for more; `summary.json` has them all.
  private static let adjustmentRows = 60

  /// What late facts changed about days that were reported before.
  mutating func writeAdjustments(_ adjustments: [Adjustment]) throws(SpreadsheetError) {
    if adjustments.isEmpty { return }
    try heading("Adjustments to earlier days")
    try line(
      "Facts that arrived after these days were reported. The nights' own reports stay as they were.", formats.label,
      height: nil)
    try sheet.setRow(row, height: 32)
    try header(["Disposition", "Day", "Currency"], texts: 3)
    row -= 1
    try header(
      ["Orders reported", "Orders now", "Orders changed", "Amount reported", "Amount now", "Amount changed"], texts: 0,
      from: 3)
    for adjustment in adjustments.prefix(SummaryPage.adjustmentRows) { try write(adjustment) }
    let rest = adjustments.count - SummaryPage.adjustmentRows
    if rest > 0 { try line("… and \(rest) more, in summary.json.", formats.value, height: nil) }
    row += 1
  }

  private mutating func write(_ adjustment: Adjustment) throws(SpreadsheetError) {
    let currency = adjustment.bucket.currency
    let format = formats.amount(digits: currency.digits)
    try sheet.writeText(
      adjustment.bucket.disposition.rawValue.asWords, row: row, column: 0, format: formats.tableText)
    try sheet.writeText(adjustment.day, row: row, column: 1, format: formats.tableText)
    try sheet.writeText(currency.code, row: row, column: 2, format: formats.tableText)
    try sheet.writeInteger(adjustment.reported.orders, row: row, column: 3, format: formats.tableCount)
    try sheet.writeInteger(adjustment.now.orders, row: row, column: 4, format: formats.tableCount)
    try writeDifference(
      from: 3, to: 4, result: Double(adjustment.now.orders - adjustment.reported.orders), column: 5,
      formats.tableCount)
    for (column, sum) in [(6, adjustment.reported), (7, adjustment.now)] {
      try sheet.writeNumber(
        Money.number(sum.minorUnits, digits: currency.digits), row: row, column: column, format: format)
    }
    try writeDifference(
      from: 6, to: 7,
      result: Money.number(adjustment.now.minorUnits - adjustment.reported.minorUnits, digits: currency.digits),
      column: 8, format)
    row += 1
  }

  private func writeDifference(
    from: Int, to: Int, result: Double, column: Int, _ format: CellFormat
  ) throws(SpreadsheetError) {
    let (before, after) = (CellReference(row: row, column: from), CellReference(row: row, column: to))
    try sheet.writeFormula("\(after)-\(before)", result: result, row: row, column: column, format: format)
  }
}
