import Postgres
import Reconciliation

/// Nights that people have got: what came to light after the last of them is told by the next one, whichever run met it.
package enum PublishedNight {
  /// What a night has to tell: from the last one that was published, itself outside, to its own as-of.
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

  /// As SQL, of the runs `r`, whether it is one before the business day that the second parameter names.
  package static let isBeforeDay =
    "r.is_nightly AND r.complete IS NOT NULL AND r.publication = 'published' AND r.period_until < $2::text::date"

  /// As SQL, the instant under which something is noted that a run of an as-of meets: that as-of, or the first moment after
  /// a night that has begun since and may not see it any more.
  ///
  /// - Parameter asOf: as SQL.
  package static func noted(_ asOf: String) -> String {
    """
    greatest(\(asOf), (SELECT max(r.as_of) + interval '1 microsecond' FROM night_audit.runs r
      WHERE r.is_nightly AND r.publication IS DISTINCT FROM 'forgotten' AND r.as_of > \(asOf)))
    """
  }

  /// The as-of of the last one before another.
  ///
  /// - Parameter day: of the other. The same one made again tells the same again.
  package static func last(
    before asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Instant? {
    let rows = try connection.execute(
      """
      SELECT r.as_of FROM night_audit.runs r WHERE r.as_of < $1 AND \(isBeforeDay)
      ORDER BY r.period_until DESC, r.as_of DESC LIMIT 1
      """, [.timestamp(asOf.microseconds), .text(day)]
    )
    for row in rows { return Instant(microseconds: try row.timestamp(0)) }
    return nil
  }
}
