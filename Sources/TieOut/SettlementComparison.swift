import Postgres
import Reconciliation
import Streams

/// Compares proceeds in sales reports with finance reports, product by product.
enum SettlementComparison {
  /// In days. Older periods keep their last result.
  private static let longestPeriodAge = 200

  struct Result {
    var periods: [TieOutTable.Period] = []
    var names: [String] = []
    var movedUnits = Millionths.zero
    var settled: [ProceedsSettlement.Key: Millionths] = [:]
    /// Periods with a FINANCE_DETAIL of every vendor.
    var whole: Set<FiscalPeriod> = []
    var reasons: [String] = []

    /// Apple's payment, zero for a currency that its reports lack; nil if a report is missing.
    func earned(_ period: FiscalPeriod, _ currency: Identifier) -> Millionths? {
      whole.contains(period) ? settled[.init(period: period, currency: currency)] ?? .zero : nil
    }
  }

  private typealias Key = (sku: Identifier, country: Identifier, currency: Identifier, sign: Int32)

  static func periods(_ today: ReportDay) -> [FiscalPeriod] {
    FiscalCalendar.periods.filter { $0.last < today && today.number - $0.last.number <= longestPeriodAge }
  }

  static func run(
    _ reports: SettlementReports, asOf: Instant, sales: borrowing BlockingConnection,
    finance: borrowing BlockingConnection, hasSales: (FiscalPeriod) -> Bool
  ) throws -> Result {
    let periods = periods(reports.today)
    guard let first = periods.first else { return Result() }
    let whole = Set(periods.filter(reports.areComplete))
    var settlement = ProceedsSettlement(today: reports.today, whole: whole)
    var sold = try sales.copyOut(
      """
      SELECT s.sku, s.country, s.proceeds_currency, s.sign, s.day, s.developer_proceeds, sum(s.units),
        CASE WHEN bool_and(s.customer_currency = s.proceeds_currency) THEN sum(s.units * abs(s.customer_price)) END
      FROM \(try ConnectSalesRows.ofDailyReports(asOf)) AND \(try ConnectSalesRows.isProceeds)
        AND s.day >= \(first.first.number)
      GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
      """)
    var settled = try finance.copyOut(
      """
      SELECT s.sku, s.country, s.currency, sign(s.quantity)::int AS sign, s.transaction_day, s.partner_share, r.name,
        sum(s.quantity), sum(s.extended_share)
      FROM night_audit.connect_settlements s JOIN \(try ConnectReportTable.current(asOf)) r USING (report_id)
      WHERE r.kind = 'FINANCE_DETAIL' AND r.state = 'reported' AND (s.partner_share <> 0 OR s.extended_share <> 0)
        AND r.name >= \(try PostgresLiteral.text(first.description))
      GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7
      """)
    var (hasSold, hasSettled) = (try sold.advance(), try settled.advance())
    while hasSold || hasSettled {
      let keys = [hasSold ? try key(sold) : nil, hasSettled ? try key(settled) : nil].compactMap { $0 }
      guard let key = keys.min(by: { $0 < $1 }) else { break }
      var sides = SettlementSides(currency: key.currency)
      while hasSold, try self.key(sold) == key {
        var gross = SettlementSides.Gross.inOtherCurrency
        if let amount = try sold.optionalNumeric(7) {
          gross = SettlementSides.Gross(try Millionths(amount), country: key.country)
        }
        sides.sold.append(
          .init(
            day: ReportDay(number: Int(try sold.int32(4))), units: try Millionths(sold.numeric(6)),
            share: try Millionths(sold.numeric(5)), gross: gross))
        hasSold = try sold.advance()
      }
      while hasSettled, try self.key(settled) == key {
        if let period = FiscalCalendar.period(named: try settled.text(6)) {
          sides.settled.append(
            .init(
              period: period, transactionDay: ReportDay(number: Int(try settled.int32(4))),
              units: try Millionths(settled.numeric(7)), share: try Millionths(settled.numeric(5)),
              extended: try Millionths(settled.numeric(8))))
        }
        hasSettled = try settled.advance()
      }
      settlement.add(sides)
    }
    var result = Result(
      names: periods.map(\.description), movedUnits: settlement.movedUnits, whole: whole,
      reasons: reports.reasons(periods))
    for (key, line) in settlement.lines.sorted(by: { $0.key < $1.key }) where whole.contains(key.period) {
      result.settled[key] = line.settled
      result.periods.append(
        .init(name: key.period.description, currency: key.currency, line: line, hasSales: hasSales(key.period)))
    }
    return result
  }

  private static func key(_ row: borrowing CopyReader) throws(PostgresError) -> Key {
    (try row.id(0), try row.id(1), try row.id(2), try row.int32(3))
  }

  /// Sentences about differences between Apple's two kinds of finance report.
  static func crossChecks(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    let rows = try connection.execute(
      """
      WITH reports AS \(try ConnectReportTable.current(asOf)),
      sums AS (
        SELECT r.name, r.vendor, r.kind, s.currency, sum(s.extended_share) AS earned
        FROM night_audit.connect_settlements s JOIN reports r USING (report_id)
        WHERE r.state = 'reported' GROUP BY 1, 2, 3, 4),
      both_kinds AS (
        SELECT name, vendor FROM reports
        WHERE kind IN ('FINANCIAL', 'FINANCE_DETAIL') AND state = 'reported'
        GROUP BY 1, 2 HAVING count(*) = 2)
      SELECT name, vendor, currency, coalesce(d.earned, 0)::text, coalesce(f.earned, 0)::text
      FROM (SELECT * FROM sums WHERE kind = 'FINANCE_DETAIL') d
      FULL JOIN (SELECT * FROM sums WHERE kind = 'FINANCIAL') f USING (name, vendor, currency)
      JOIN both_kinds USING (name, vendor)
      WHERE coalesce(d.earned, 0) <> coalesce(f.earned, 0)
      ORDER BY name COLLATE "C", vendor COLLATE "C", currency COLLATE "C"
      """)
    return try rows.map { (row) throws(PostgresError) in
      """
      finance reports of \(try row.text(0)), vendor \(try row.text(1)): FINANCE_DETAIL makes \(try row.text(3)) \
      \(try row.text(2)), FINANCIAL \(try row.text(4))
      """
    }
  }
}
