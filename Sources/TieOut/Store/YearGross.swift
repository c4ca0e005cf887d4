import Postgres
import Reconciliation

/// Customer prices of a calendar year, by month, country and currency, for tax forms.
package struct YearGross: Sendable {
  package struct Line: Hashable, Sendable {
    package var month: String
    package var country: Identifier
    package var currency: Identifier
    package var gross: Millionths
  }

  package let year: Int
  package var lines: [Line] = []
  /// Ended months with a missing report of some vendor: they are in no sum.
  package var missing: [String] = []
  /// The month that has not ended; its sums cover reported days only.
  package var running: String?

  package static func read(
    year: Int, today: ReportDay, asOf: Instant, vendors: [String], on connection: borrowing BlockingConnection
  ) throws -> YearGross {
    var result = YearGross(year: year)
    var years: [Line: Millionths] = [:]
    let reports = MonthReports(
      monthly: try ConnectReportTable.known(.sales, frequency: "MONTHLY", asOf: asOf, on: connection),
      daily: try ConnectReportTable.known(.sales, frequency: "DAILY", asOf: asOf, on: connection), configured: vendors)
    for month in 1...12 {
      guard let days = ReportDay.month(month, of: year), days.lowerBound < today else { continue }
      let isRunning = days.upperBound >= today
      if isRunning { result.running = days.lowerBound.month }
      guard let sources = isRunning ? reports.running(days) : reports.whole(days) else {
        result.missing.append(days.lowerBound.month)
        continue
      }
      for line in try lines(days, of: sources, asOf: asOf, on: connection) {
        result.lines.append(line)
        var key = line
        key.month = "\(year)"
        key.gross = .zero
        years[key, default: .zero] += line.gross
      }
    }
    result.lines += years.map { key, gross in
      Line(month: key.month, country: key.country, currency: key.currency, gross: gross)
    }.sorted { ($0.country, $0.currency) < ($1.country, $1.currency) }
    return result
  }

  /// Restores are left out: Apple shows their original price, but no one pays it again.
  private static func lines(
    _ days: ClosedRange<ReportDay>, of sources: MonthReports.Sources, asOf: Instant,
    on connection: borrowing BlockingConnection
  ) throws -> [Line] {
    let rows = try connection.execute(
      """
      SELECT s.country, s.customer_currency, sum(s.units * s.customer_price)
      FROM night_audit.connect_sales s JOIN \(try ConnectReportTable.current(asOf)) r USING (report_id)
      WHERE r.kind = 'SALES' AND r.state = 'reported' AND s.day BETWEEN $1 AND $2 AND s.type <> ALL ($3::text[])
        AND (r.frequency = 'MONTHLY' AND r.vendor = ANY ($4::text[])
          OR r.frequency = 'DAILY' AND r.vendor = ANY ($5::text[]))
      GROUP BY 1, 2 HAVING sum(s.units * s.customer_price) <> 0 ORDER BY 1, 2
      """,
      [
        .int(Int64(days.lowerBound.number)), .int(Int64(days.upperBound.number)),
        .textArray(SalesRowKind.restores.map { $0.text }), .textArray(sources.monthly), .textArray(sources.daily),
      ])
    return try rows.map { row in
      Line(
        month: days.lowerBound.month, country: Identifier(try row.text(0)), currency: Identifier(try row.text(1)),
        gross: try Millionths(row.numeric(2)))
    }
  }
}

/// Selects the reports that make up a calendar month, for all vendors.
struct MonthReports {
  struct Sources: Hashable {
    var monthly: [String] = []
    var daily: [String] = []
  }

  private let monthly: ConnectReportTable.KnownReports
  private let daily: ConnectReportTable.KnownReports
  private let configured: [String]
  private let spans: [String: ClosedRange<String>]

  init(
    monthly: ConnectReportTable.KnownReports, daily: ConnectReportTable.KnownReports,
    configured: [String]
  ) {
    (self.monthly, self.daily, self.configured) = (monthly, daily, configured)
    spans = monthly.merging(daily) { month, _ in month }.spans { String($0.prefix(7)) }
  }

  /// For each vendor the monthly report, or the daily ones if complete; nil if a vendor has neither.
  func whole(_ days: ClosedRange<ReportDay>) -> Sources? {
    var sources = Sources()
    for vendor in vendors(of: days) {
      if monthly[days.lowerBound.month]?[vendor]?.state.isFinal == true {
        sources.monthly.append(vendor)
      } else if days.allSatisfy({ daily[$0.description]?[vendor]?.state.isFinal == true }) {
        sources.daily.append(vendor)
      } else {
        return nil
      }
    }
    return sources == Sources() ? nil : sources
  }

  func running(_ days: ClosedRange<ReportDay>) -> Sources { Sources(daily: vendors(of: days)) }

  private func vendors(of days: ClosedRange<ReportDay>) -> [String] {
    Set(configured).union(spans.filter { $0.value.contains(days.lowerBound.month) }.keys).sorted()
  }
}
