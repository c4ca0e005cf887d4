import Foundation
import Postgres
import Reconciliation
import Run

/// Daily totals in nightly reports, for prior-period adjustments. A night reports its own day and each earlier day that
/// has changed, so the newest report of a day is the current one.
package struct ReportedDays {
  /// Selects the nights whose reports count, by business day.
  package enum Nights {
    /// Nights of earlier days, with an earlier as-of.
    case before(String)
    /// Nights of days up to this one, with the same or an earlier as-of.
    case upTo(String)
    /// All nights but this day's, with an earlier as-of; for days before it.
    case but(String)

    fileprivate var day: String {
      switch self {
      case .before(let day), .upTo(let day), .but(let day): day
      }
    }

    fileprivate var comparison: (night: String, asOf: String, spokenOf: String) {
      switch self {
      case .before: ("<", "<", "<")
      case .upTo: ("<=", "<=", "<=")
      case .but: ("<>", "<", "<")
      }
    }
  }

  /// The days that a run totals: those of the period and whole days of the lookback before it. A narrowed run sees only
  /// a part of each day and has none.
  package static func days(_ plan: AuditPlan, in zone: TimeZone) -> [DayTotals.Day] {
    if plan.selection.isNarrowing { return [] }
    var days: [Period] = []
    var day = Period.dayBefore(plan.period.end, in: zone)
    while day.start >= plan.period.start || day.start >= plan.rules.lookbackStart, days.count < longestLookback {
      days.append(day)
      day = Period.dayBefore(day.start, in: zone)
    }
    return days.reversed().map { DayTotals.Day(name: $0.since, start: $0.start, end: $0.end) }
  }

  private static let longestLookback = 4_000

  /// The newest reported totals of each day in one time zone. With `isOfOwnNight`, those of the day's own night.
  package static func statements(
    of nights: Nights, asOf: Instant, isOfOwnNight: Bool = false, timeZone: String,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: DayTotals.Sums] {
    let compares = nights.comparison
    let rows = try connection.execute(
      """
      SELECT s.day::text, t.currency, t.disposition, t.orders, t.amount FROM (
        SELECT DISTINCT ON (d.day) d.run_id, d.day FROM (
          -- A night that was made again counts with its newest report.
          SELECT DISTINCT ON (period_until) run_id, period_until, as_of FROM night_audit.runs
          WHERE is_nightly AND complete IS NOT NULL
            AND period_until \(compares.night) $1::text::date AND as_of \(compares.asOf) $2
          ORDER BY period_until, as_of DESC, started_at DESC) n
        JOIN night_audit.reported_days d USING (run_id)
        WHERE d.time_zone = $3 AND d.day \(compares.spokenOf) $1::text::date
          AND (d.day = n.period_until OR NOT \(isOfOwnNight))
        ORDER BY d.day, n.as_of DESC, n.period_until DESC) s
      LEFT JOIN night_audit.reported_totals t USING (run_id, day)
      """, [.text(nights.day), .timestamp(asOf.microseconds), .text(timeZone)])
    var statements: [String: DayTotals.Sums] = [:]
    for row in rows {
      let day = try row.text(0)
      var sums = statements[day] ?? [:]
      if let currency = try row.optionalText(1).flatMap({ Currency(code: $0) }),
        let disposition = try row.optionalText(2).flatMap({ Disposition(rawValue: $0) }),
        let amount = try? row.numeric(4).scaledInt128(decimals: Int(currency.digits))
      {
        sums[DayTotals.Bucket(currency: currency, disposition: disposition)] = DayTotals.Sum(
          orders: Int(try row.int64(3)), minorUnits: amount)
      }
      statements[day] = sums
    }
    return statements
  }

  /// Days from `first` on that earlier nights reported in other time zones, with other hours.
  package static func reportedInOtherTimeZones(
    from first: String, before night: String, asOf: Instant, timeZone: String,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<String> {
    let rows = try connection.execute(
      """
      SELECT DISTINCT d.day::text FROM night_audit.runs n JOIN night_audit.reported_days d USING (run_id)
      WHERE n.is_nightly AND n.complete IS NOT NULL AND n.period_until < $2::text::date AND n.as_of < $3
        AND d.day >= $1::text::date AND d.time_zone <> $4
      """, [.text(first), .text(night), .timestamp(asOf.microseconds), .text(timeZone)])
    return Set(try rows.texts())
  }

  /// Saves the totals of a night's own day and of each day that it adjusts.
  package static func save(
    _ totals: DayTotals, adjustments: [Adjustment], record: RunRecord, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let days = Set(adjustments.map(\.day)).union([record.period.until]).sorted()
    var lines: [(day: String, bucket: DayTotals.Bucket, sum: DayTotals.Sum)] = []
    var spoken: [String] = []
    for day in days {
      guard let sums = totals.sums(of: day) else { continue }
      spoken.append(day)
      for (bucket, sum) in sums { lines.append((day, bucket, sum)) }
    }
    try NightTable.insert(
      spoken, [.text("day", as: "date") { $0 }, .text("time_zone") { _ in record.timeZone }], into: "reported_days",
      of: record, on: connection)
    try NightTable.insert(
      lines,
      [
        .text("day", as: "date") { $0.day }, .text("currency") { $0.bucket.currency.code },
        .text("disposition") { $0.bucket.disposition.rawValue }, .bigint("orders") { Int64($0.sum.orders) },
        .text("amount", as: "numeric") { Money.decimalText($0.sum.minorUnits, digits: $0.bucket.currency.digits) },
      ], into: "reported_totals", of: record, on: connection)
  }
}
