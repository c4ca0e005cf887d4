import Postgres
import Reconciliation
import Run
import Streams

/// The night that a report is compared with: the last complete one, otherwise the last with a report. A night older
/// than the newest known one has saved nothing to compare with, nor has one whose re-run was forgotten.
package struct BaseNight: Hashable, Sendable {
  package var runId: String
  package var asOf: Instant
  /// False if no complete night exists.
  package var isComplete: Bool

  package static func before(
    _ asOf: Instant, period: Period, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> BaseNight? {
    // A night is compared with the last one before its as-of. For a longer period, the night before it was made on the
    // period's first day; later nights do not describe its beginning.
    let latest = period.since == period.until ? asOf : period.start + .days(1)
    let rows = try connection.execute(
      """
      SELECT run_id::text, as_of, complete FROM night_audit.runs r
      WHERE is_nightly AND complete IS NOT NULL AND as_of < $1 AND period_until < $2::text::date
        AND EXISTS (SELECT FROM night_audit.findings_met m WHERE m.run_id = r.run_id)
        AND NOT \(PublishedReport.isGone("r", from: "directory")) AND NOT \(PublishedReport.isGone("r", from: "as_of"))
      ORDER BY greatest(as_of, $3), complete DESC, period_until DESC, as_of DESC, started_at DESC LIMIT 1
      """, [.timestamp(asOf.microseconds), .text(period.since), .timestamp(latest.microseconds)])
    return try rows.first.map { row throws(PostgresError) in
      BaseNight(runId: try row.text(0), asOf: try row.instant(1), isComplete: try row.bool(2))
    }
  }
}

extension Instant {
  /// The instant as an SQL expression to the microsecond, where parameters are not allowed.
  package var sqlText: String {
    // PostgreSQL 13 and 14 parse at most 2^31 of a unit.
    let (seconds, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    return "(timestamptz 'epoch' + \(seconds) * interval '1 second' + \(rest) * interval '1 microsecond')"
  }
}
