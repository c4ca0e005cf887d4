import Postgres
import Reconciliation
import Reporting
import Run

extension DecisionCounts {
  /// Counts the decisions of people after `base` and up to `asOf`; none without a night to compare with.
  init(since base: Instant?, until asOf: Instant, on own: borrowing BlockingConnection) throws(PostgresError) {
    self.init()
    guard let base else { return }
    let rows = try own.execute(
      """
      SELECT CASE event WHEN 'status' THEN detail WHEN 'acceptance' THEN CASE WHEN detail <> '' THEN 'accepted' END
        ELSE event END, count(DISTINCT finding_id)
      FROM night_audit.finding_events
      WHERE actor IS NOT NULL AND as_of > $1 AND as_of <= $2 GROUP BY 1
      """, [.timestamp(base.microseconds), .timestamp(asOf.microseconds)])
    for row in rows {
      if let code = try row.optionalText(0) { counts[code] = Int(try row.int64(1)) }
    }
  }
}
