import Postgres
import Reconciliation

/// Published reports of all orders. Whatever came up after the last of them belongs into the next one.
package enum PublishedReport {
  /// The time covered by a report: from the previous published report (exclusive) to its own as-of.
  package struct Span: Hashable, Sendable {
    package var after: Instant?
    package var until: Instant

    var parameters: [PostgresValue] { [.timestamp(until.microseconds), .timestamp(after?.microseconds)] }
  }

  /// SQL: the run `r` has published a report of all orders, for another business day than `$2`. The same night made
  /// again reports the same again.
  package static let publishedRunCondition = """
    (r.complete IS NOT NULL AND r.publication = 'published' AND NOT \(isGone("r", from: "directory"))
      AND CASE WHEN r.is_nightly THEN r.period_until <> $2::text::date
        ELSE EXISTS (SELECT FROM night_audit.findings_met m WHERE m.run_id = r.run_id) END)
    """

  /// SQL: a later run had replaced the run `run` at `place` and was forgotten, so its result is gone too. `place` is
  /// `directory` for its report, or `as_of` for the rows that nights save.
  package static func isGone(_ run: String, from place: String) -> String {
    // A held run recorded no orders, so it only replaced an earlier held one.
    """
    (EXISTS (SELECT FROM night_audit.runs b WHERE b.publication = 'forgotten'
      AND (b.orders_read IS NOT NULL
        OR b.content IS NOT NULL AND \(run).publication = 'held' AND '\(place)' = 'directory')
      AND b.is_nightly = \(run).is_nightly AND b.\(place) = \(run).\(place)
      AND \(ForgottenRun.ran("b")) > \(run).started_at))
    """
  }

  /// SQL for the instant under which a run of as-of `asOf` records something. It is just after any later night, because
  /// that night has begun and may not see the record.
  package static func noted(_ asOf: String) -> String {
    // An as-of in the future is a mistake, to be undone.
    """
    greatest(\(asOf), (SELECT max(r.as_of) + interval '1 microsecond' FROM night_audit.runs r
      WHERE r.is_nightly AND r.publication IS DISTINCT FROM 'forgotten' AND r.as_of > \(asOf)
        AND r.as_of <= clock_timestamp()))
    """
  }

  /// The as-of of the last published report before `asOf`, for another business day than `day`.
  package static func last(
    before asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Instant? {
    try connection.execute(
      "SELECT max(r.as_of) FROM night_audit.runs r WHERE r.as_of < $1 AND \(publishedRunCondition)",
      [.timestamp(asOf.microseconds), .text(day)]
    ).single().optionalTimestamp(0).map { Instant(microseconds: $0) }
  }
}
