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

  /// The as-of of the last one before another.
  ///
  /// - Parameter day: of the other. The same one made again tells the same again.
  package static func last(
    before asOf: Instant, day: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Instant? {
    try connection.execute(
      "SELECT max(r.as_of) FROM night_audit.runs r WHERE r.as_of < $1 AND \(isBeforeDay)",
      [.timestamp(asOf.microseconds), .text(day)]
    ).single().optionalTimestamp(0).map { Instant(microseconds: $0) }
  }
}
