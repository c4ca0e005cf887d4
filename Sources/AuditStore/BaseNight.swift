import Postgres
import Reconciliation
import Run

/// The night that a report is compared with: the last complete one, or where there never was one, the last that left a
/// report. A night that was made for an earlier instant than is already known has left nothing to compare with, nor has
/// one that was made again, where the second run was forgotten.
package struct BaseNight: Hashable, Sendable {
  package var runId: String
  package var asOf: Instant
  /// Whether everything that was due then was answered; false where there never was such a night.
  package var isComplete: Bool

  /// The night before an as-of; of nights, the one before the business day.
  ///
  /// - Parameter period: of the report. A longer one is compared with what was open as it began.
  package static func before(
    _ asOf: Instant, period: Period, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> BaseNight? {
    // The folder of a day follows that of the day before it, as it lies there. A longer period tells what came and went in
    // it: the night before it is made on its first day, and what was made later is no picture of its beginning.
    let latest = period.since == period.until ? asOf : period.start + .days(1)
    let rows = try connection.execute(
      """
      SELECT run_id::text, as_of, complete FROM night_audit.runs r
      WHERE is_nightly AND complete IS NOT NULL AND as_of < $1 AND period_until < $2::text::date
        AND EXISTS (SELECT FROM night_audit.findings_met m WHERE m.run_id = r.run_id)
        AND NOT \(PublishedReport.isGone("r", from: "directory")) AND NOT \(PublishedReport.isGone("r", from: "as_of"))
      ORDER BY greatest(as_of, $3), complete DESC, period_until DESC, as_of DESC, started_at DESC LIMIT 1
      """, [.timestamp(asOf.microseconds), .text(period.since), .timestamp(latest.microseconds)])
    for row in rows {
      return BaseNight(
        runId: try row.text(0), asOf: Instant(microseconds: try row.timestamp(1)), isComplete: try row.bool(2))
    }
    return nil
  }
}

extension Instant {
  /// The instant as an expression of SQL, where no parameter can stand: to the microsecond.
  package var sqlText: String {
    // PostgreSQL 13 and 14 read no more than 2^31 of a unit.
    let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return "(timestamptz 'epoch' + \(seconds) * interval '1 second' + \(rest) * interval '1 microsecond')"
  }
}
