import Postgres
import Reconciliation

/// Reports of everything that people have got: what came to light after the last of them is told by the next one, whichever
/// run met it.
package enum PublishedReport {
  /// What a report has to tell: from the last one that was published, itself outside, to its own as-of.
  package struct Span: Hashable, Sendable {
    /// Nil: nothing was ever told.
    package var after: Instant?
    package var until: Instant

    package init(after: Instant?, until: Instant) {
      self.after = after
      self.until = until
    }

    /// Its end and its beginning.
    var parameters: [PostgresValue] {
      [.timestamp(until.microseconds), .timestamp(after?.microseconds)]
    }
  }

  /// As SQL, of the runs `r`, whether people have got its report of everything, and it is not of the business day that the
  /// second parameter names: the same night made again tells the same again.
  package static let hasTold = """
    (r.complete IS NOT NULL AND r.publication = 'published' AND NOT \(isGone("r", from: "directory"))
      AND CASE WHEN r.is_nightly THEN r.period_until <> $2::text::date
        ELSE EXISTS (SELECT FROM night_audit.findings_met m WHERE m.run_id = r.run_id) END)
    """

  /// As SQL, whether a later run had taken a run's place and was forgotten: what lay there is gone with it.
  ///
  /// - Parameters:
  ///   - run: the name that `night_audit.runs` goes by.
  ///   - place: its column `directory`, where its report lies, or `as_of`, under which nights keep what they have told.
  package static func isGone(_ run: String, from place: String) -> String {
    // What was held has recorded no orders: it took no place but that of what was held before it.
    """
    (EXISTS (SELECT FROM night_audit.runs b WHERE b.publication = 'forgotten'
      AND (b.orders_read IS NOT NULL
        OR b.content IS NOT NULL AND \(run).publication = 'held' AND '\(place)' = 'directory')
      AND b.is_nightly = \(run).is_nightly AND b.\(place) = \(run).\(place)
      AND \(ForgottenRun.ran("b")) > \(run).started_at))
    """
  }

  /// As SQL, the instant under which something is noted that a run of an as-of meets: that as-of, or the first moment after
  /// a night that has begun since and may not see it any more.
  ///
  /// - Parameter asOf: as SQL.
  package static func noted(_ asOf: String) -> String {
    // An as-of that has not come is a mistake, which is taken back.
    """
    greatest(\(asOf), (SELECT max(r.as_of) + interval '1 microsecond' FROM night_audit.runs r
      WHERE r.is_nightly AND r.publication IS DISTINCT FROM 'forgotten' AND r.as_of > \(asOf)
        AND r.as_of <= clock_timestamp()))
    """
  }

  /// The as-of of the last one before another.
  ///
  /// - Parameter day: the business day of the other.
  package static func last(
    before asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Instant? {
    try connection.execute(
      "SELECT max(r.as_of) FROM night_audit.runs r WHERE r.as_of < $1 AND \(hasTold)",
      [.timestamp(asOf.microseconds), .text(day)]
    ).single().optionalTimestamp(0).map { Instant(microseconds: $0) }
  }
}
