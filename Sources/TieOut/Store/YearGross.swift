import Postgres
import Reconciliation

/// What customers paid in a calendar year, per month, country and currency: the question of tax forms, which fiscal
/// periods do not answer.
package struct YearGross: Sendable {
  package struct Line: Hashable, Sendable {
    /// `2026-11`; `2026` for the year.
    package var month: String
    package var country: Identifier
    package var currency: Identifier
    package var gross: Millionths
  }

  package var lines: [Line] = []
  /// Months that have ended and that reports cover in part or not at all: nothing of them is in a sum.
  package var missing: [String] = []
  /// The month that has not ended: its sums are of the days that are reported.
  package var running: String?

  /// From the monthly reports; where there is none from the daily ones, when every day has its own.
  package static func read(
    year: Int, today: ReportDay, vendors: [String], on connection: borrowing BlockingConnection
  ) throws -> YearGross {
    var result = YearGross()
    var years: [Line: Millionths] = [:]
    let monthly = try ConnectReportTable.known(.sales, frequency: "MONTHLY", on: connection)
    let daily = try ConnectReportTable.known(.sales, frequency: "DAILY", on: connection)
    let window = ReportWindow(today: today, first: today, margin: 0, known: daily, vendors: vendors)
    for month in 1...12 {
      guard let first = ReportDay(year: year, month: month, day: 1), first < today else { continue }
      let last = first.advanced(by: ReportDay.days(of: month, in: year) - 1)
      let name = first.month
      let known = monthly[name] ?? [:]
      let awaited = Set(vendors).union(known.filter { $0.value.isAwaited(of: $0.key, among: vendors) }.keys)
      let hasMonth = !awaited.isEmpty && awaited.allSatisfy { known[$0]?.state.isSettled == true }
      let hasDays = last < today && (first...last).allSatisfy(window.isSettled)
      if last >= today { result.running = name }
      if last < today, !hasMonth, !hasDays {
        result.missing.append(name)
        continue
      }
      for line in try lines(name, frequency: hasMonth ? "MONTHLY" : "DAILY", first...last, on: connection) {
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

  private static func lines(
    _ month: String, frequency: String, _ days: ClosedRange<ReportDay>, on connection: borrowing BlockingConnection
  ) throws -> [Line] {
    let rows = try connection.execute(
      """
      SELECT s.country, s.customer_currency, sum(s.units * s.customer_price)
      FROM night_audit.connect_sales s JOIN night_audit.connect_reports_current r USING (report_id)
      WHERE r.kind = 'SALES' AND r.frequency = $1 AND r.state = 'reported' AND s.day BETWEEN $2 AND $3
      GROUP BY 1, 2 HAVING sum(s.units * s.customer_price) <> 0 ORDER BY 1, 2
      """, [.text(frequency), .int(Int64(days.lowerBound.number)), .int(Int64(days.upperBound.number))])
    var lines: [Line] = []
    for row in rows {
      lines.append(
        Line(
          month: month, country: Identifier(try row.text(0)), currency: Identifier(try row.text(1)),
          gross: try Millionths(row.numeric(2))))
    }
    return lines
  }
}
