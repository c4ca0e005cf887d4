import Foundation
import Postgres
import Reconciliation
import Run
import Streams

/// Business days since the last night that no report of all orders covers, so that their refunds are in no file.
package enum UncoveredDays {
  package static func before(
    _ period: Period, asOf: Instant, in zone: TimeZone, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String] {
    let rows = try connection.execute(
      """
      WITH reports AS (
        SELECT period_since, period_until, time_zone, is_nightly, r.as_of FROM night_audit.runs r
        WHERE complete IS NOT NULL AND as_of < $1 AND NOT \(PublishedReport.isGone("r", from: "directory"))
          AND (is_nightly OR EXISTS (SELECT FROM night_audit.findings_met m WHERE m.run_id = r.run_id)))
      SELECT period_since::text, period_until::text, time_zone, is_nightly, as_of FROM reports
      WHERE period_until >= (SELECT max(period_until) - 1 FROM reports WHERE is_nightly AND period_until < $2::text::date)
      """, [.timestamp(asOf.microseconds), .text(period.since)])
    var reports: [(span: Range<Instant>, isNightly: Bool)] = []
    for row in rows {
      let (since, until, zone) = (try row.text(0), try row.text(1), TimeZone(identifier: try row.text(2)))
      guard let zone, let covered = try? Period(since: since, until: until, in: zone) else { continue }
      // A manual report may be made before its period ends.
      let end = min(covered.end, try row.instant(4))
      if covered.start < end { reports.append((covered.start..<end, try row.bool(3))) }
    }
    // A day that has not ended cannot have a report.
    return days(before: min(period.start, Period.dayBefore(asOf, in: zone).end), reports, in: zone)
  }

  /// The message with the remedy; nil if there are no such days.
  package static func remedy(_ days: [String]) -> String? {
    guard let first = days.first else { return nil }
    let names = days.joined(separator: ", ")
    return "no report covers \(names), so refunds of that time are in no file; for each day run: "
      + "night-audit run --date \(first)"
  }

  /// Days between the last night and `end` that reports do not fully cover.
  static func days(
    before end: Instant, _ reports: [(span: Range<Instant>, isNightly: Bool)], in zone: TimeZone
  ) -> [String] {
    let earlier = reports.filter { $0.span.lowerBound < end }
    guard var covered = earlier.filter(\.isNightly).map(\.span.upperBound).max() else { return [] }
    var days: [String] = []
    func add(from first: Instant, to last: Instant) {
      var instant = first
      while instant < last, days.count < longest {
        let name = Period.dayText(of: instant, in: zone)
        if days.last != name { days.append(name) }
        guard let day = try? Period(since: name, until: name, in: zone) else { return }
        instant = day.end
      }
    }
    for report in earlier.map(\.span).sorted(by: { $0.lowerBound < $1.lowerBound }) {
      add(from: covered, to: report.lowerBound)
      covered = max(covered, report.upperBound)
    }
    add(from: covered, to: end)
    return days
  }

  /// More days need no warning.
  private static let longest = 31
}
