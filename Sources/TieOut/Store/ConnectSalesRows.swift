import Postgres
import Reconciliation

enum ConnectSalesRows {
  private static let columns = [
    "report_id", "day", "sku", "parent", "type", "country", "customer_currency", "proceeds_currency", "customer_price",
    "developer_proceeds", "sign", "is_renewal", "units", "rows",
  ]

  /// SQL: the rows `s` of the daily reports `r` that are readable at an as-of, with the condition for both.
  static func ofDailyReports(_ asOf: Instant) throws(PostgresError) -> String {
    """
    night_audit.connect_sales s JOIN \(try ConnectReportTable.current(asOf)) r USING (report_id)
    WHERE r.kind = 'SALES' AND r.frequency = 'DAILY' AND r.state = 'reported'
    """
  }

  /// SQL: the rows `s` that are paid. Free units and restores are not, whatever proceeds Apple shows.
  static var isProceeds: String {
    get throws {
      let restores = try SalesRowKind.restores.sorted().map { try PostgresLiteral.text($0.text) }
      return "s.developer_proceeds <> 0 AND s.sign <> 0 AND s.type NOT IN (\(restores.joined(separator: ", ")))"
    }
  }

  /// Streams a report into the table, in the caller's transaction. Returns the rows read, and notes.
  static func read(
    _ bytes: [UInt8], of report: ConnectReport, reportId: Int64, on connection: borrowing BlockingConnection
  ) throws -> (rows: Int, notes: [String]) {
    guard let days = SalesFrequency(rawValue: report.frequency)?.days(digits: report.name) else {
      throw ReportProblem("\(report.frequency) \(report.name) names no days")
    }
    var reading = SalesReport.Reading()
    try connection.copyIn(into: try PostgresIdentifier("night_audit", "connect_sales"), columns: columns) { writer in
      var sums = SalesSums()
      func spill(_ part: SalesSums.Part) throws {
        for (key, sum) in part { try write(key, sum, reportId, &writer) }
      }
      reading = try SalesReport.read(bytes, days: days) { try sums.add($0, spill: spill) }
      try sums.flush(spill)
    }
    let notes =
      reading.unknownColumns.isEmpty ? [] : ["unknown columns: \(reading.unknownColumns.joined(separator: ", "))"]
    return (reading.rows, notes)
  }

  private static func write(
    _ key: SalesSums.Key, _ sum: SalesSums.Sum, _ reportId: Int64, _ writer: inout CopyWriter
  ) throws {
    let price = try key.customerPrice.numeric("Customer Price")
    let proceeds = try key.developerProceeds.numeric("Developer Proceeds")
    let units = try sum.units.numeric("Units")
    try writer.row { (writer) throws(PostgresError) in
      try writer.int(reportId)
      try writer.int(Int64(key.day.number))
      for text in [key.sku, key.parent, key.type, key.country, key.customerCurrency, key.proceedsCurrency] {
        try writer.text(text.text)
      }
      try writer.numeric(price)
      try writer.numeric(proceeds)
      try writer.int(Int64(key.sign))
      try writer.bool(key.isRenewal)
      try writer.numeric(units)
      try writer.int(Int64(sum.rows))
    }
  }
}

enum ConnectSettlementRows {
  private static let columns = [
    "report_id", "transaction_day", "settlement_day", "sku", "country", "currency", "partner_share", "quantity",
    "extended_share",
  ]

  /// Like `ConnectSalesRows.read`. Apple has summed these rows already.
  static func read(
    _ bytes: [UInt8], of report: ConnectReport, reportId: Int64, on connection: borrowing BlockingConnection
  ) throws -> (rows: Int, notes: [String]) {
    guard let period = FiscalCalendar.period(named: report.name) else {
      throw ReportProblem("\(report.name) is not a fiscal period")
    }
    var rows = 0
    let table = try PostgresIdentifier("night_audit", "connect_settlements")
    try connection.copyIn(into: table, columns: columns) { writer in
      rows = try FinanceReport.read(bytes, period: period) { try write($0, reportId, &writer) }.rows
    }
    return (rows, [])
  }

  private static func write(_ row: SettlementRow, _ reportId: Int64, _ writer: inout CopyWriter) throws {
    let share = try row.partnerShare.numeric("Partner Share")
    let quantity = try row.quantity.numeric("Quantity")
    let extended = try row.extendedShare.numeric("Extended Partner Share")
    try writer.row { (writer) throws(PostgresError) in
      try writer.int(reportId)
      try writer.int(row.transactionDay.map { Int64($0.number) })
      try writer.int(row.settlementDay.map { Int64($0.number) })
      for text in [row.sku, row.country, row.currency] { try writer.text(text.text) }
      try writer.numeric(share)
      try writer.numeric(quantity)
      try writer.numeric(extended)
    }
  }
}
