import Postgres
import Reconciliation
import Run
import Streams

/// The period of each refund: that of the night that reported it first.
/// A night reports the refunds of its own day, and the refunds of an earlier day that Apple stated after the night of
/// that day. A day without a night keeps its refunds for the night that is still to be made for it.
package struct ReportedRefunds {
  package struct Night: Hashable, Sendable {
    package var span: Range<Instant>
    package var asOf: Instant
  }

  /// A refund of the purchase with these transaction IDs.
  package struct Refund {
    package var transactionIds: [Identifier]
    package var date: Instant

    package init(transactionIds: [Identifier], date: Instant) {
      (self.transactionIds, self.date) = (transactionIds, date)
    }
  }

  private let period: Range<Instant>
  /// The nights up to the as-of, the earliest first.
  private let nights: [Night]
  /// True if the report is a night's, or of days for which no night was made yet.
  private let isNight: Bool
  /// Nights of later days list the changes of the refunds that were stored before this instant, so the report has these
  /// refunds as they were stored. nil: a night of the newest day has them as they are known now.
  package let storedBefore: Instant?

  package init(_ period: Range<Instant>, nights: [Night], isNight: Bool) {
    (self.period, self.nights) = (period, nights)
    let isNight = isNight || nights.allSatisfy { $0.span.upperBound < period.upperBound }
    self.isNight = isNight
    let later = nights.first { $0.span.lowerBound >= period.upperBound }
    // Another report leaves what changed since the last night to the next night.
    storedBefore = later?.asOf ?? (isNight ? nil : nights.last.map { $0.asOf + .seconds(1) })
  }

  package init(
    _ period: Period, asOf: Instant, isNight: Bool, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let rows = try connection.execute(
      """
      SELECT period_since::timestamp AT TIME ZONE time_zone, (period_until + 1)::timestamp AT TIME ZONE time_zone, as_of
      FROM night_audit.runs r
      WHERE is_nightly AND complete IS NOT NULL AND as_of <= $1
        AND NOT \(PublishedReport.isGone("r", from: "directory"))
      ORDER BY as_of, started_at
      """, [.timestamp(asOf.microseconds)])
    var nights: [Night] = []
    for row in rows {
      let (start, end) = (try row.timestamp(0), try row.timestamp(1))
      guard start < end else { continue }
      nights.append(
        Night(span: Instant(microseconds: start)..<Instant(microseconds: end), asOf: try row.instant(2)))
    }
    self.init(period.start..<period.end, nights: nights, isNight: isNight)
  }

  /// Decides for refunds from before the end of the period whether they belong to it.
  package func areReported(
    _ refunds: [Refund], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Bool] {
    var ids: [(place: Int, id: Identifier)] = []
    for (place, refund) in refunds.enumerated() where hasNight(of: refund.date) {
      for id in refund.transactionIds { ids.append((place, id)) }
    }
    var stated: [Int: Instant] = [:]
    if !ids.isEmpty {
      // A refund that Apple had reversed before this one has an earlier date.
      let rows = try connection.execute(
        """
        SELECT c.place, min(e.as_of) FROM unnest($1::bigint[], $2::text[], $3::timestamptz[]) c (place, id, at)
        CROSS JOIN LATERAL (
          SELECT min(e.as_of) AS as_of FROM night_audit.evidence e
          WHERE e.transaction_id = c.id COLLATE "C" AND e.environment = 'Production' AND e.revoked_at >= c.at
            AND \(EvidenceTable.isCredible("e"))) e
        WHERE e.as_of IS NOT NULL GROUP BY c.place
        """,
        [
          .intArray(ids.map { Int64($0.place) }), .textArray(ids.map(\.id.text)),
          .timestampArray(ids.map { refunds[$0.place].date.microseconds }),
        ])
      for row in rows { stated[Int(try row.int64(0))] = try row.instant(1) }
    }
    return refunds.enumerated().map { isReported(date: $1.date, stated: stated[$0]) }
  }

  /// - Parameter stated: the as-of of the first answer with the refund; nil: it is not stored any more.
  package func isReported(date: Instant, stated: Instant?) -> Bool {
    guard date < period.upperBound else { return false }
    guard let stated, hasNight(of: date) else { return period.contains(date) }
    let missed = nights.first { $0.span.contains(date) && $0.asOf < stated }
    let first = nights.first { night in
      night.asOf >= stated
        && (night.span.contains(date) || missed.map { $0.asOf < night.asOf && date < night.span.lowerBound } ?? false)
    }
    if let first { return period.lowerBound <= first.span.lowerBound && first.span.upperBound <= period.upperBound }
    // Another report leaves a late refund to the next night, so that nights add up to the reports over them.
    return missed == nil ? period.contains(date) : isNight
  }

  private func hasNight(of date: Instant) -> Bool { nights.contains { $0.span.contains(date) } }
}
