import AppStore
import Postgres
import Reconciliation
import Streams

/// The tables `sweeps` and `sweep_slices`: the cursors of one app. Only production is swept, because nothing depends on
/// later events of sandbox purchases, and they would fill the tables at a tenth of the speed.
package struct SweepTable: Sendable {
  package static let environment = AppleEnvironment.production

  package let bundleId: String

  package init(bundleId: String) { self.bundleId = bundleId }

  package func cursors(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SweepCursor] {
    let rows = try connection.execute(
      """
      SELECT notification_type, swept_until, last_attempt, reason, window_start, window_end
      FROM night_audit.sweeps WHERE bundle_id = $1 AND environment = $2
      """, [.text(bundleId), .text(Self.environment.rawValue)])
    var known: [SweptType: SweepCursor] = [:]
    for row in rows {
      guard let type = SweptType(rawValue: try row.text(0)) else { continue }
      var cursor = SweepCursor(type: type)
      (cursor.sweptUntil, cursor.lastAttempt) = (try row.optionalInstant(1), try row.optionalInstant(2))
      cursor.shortfall = try row.optionalText(3).map { SweepShortfall(rawValue: $0) ?? .unfinished }
      if let start = try row.optionalInstant(4), let end = try row.optionalInstant(5) {
        cursor.window = SweepCursor.Window(start: start, end: end)
      }
      known[type] = cursor
    }
    let slices = try connection.execute(
      """
      SELECT notification_type, slice_start, slice_end, pagination_token
      FROM night_audit.sweep_slices WHERE bundle_id = $1 AND environment = $2 ORDER BY slice_start
      """, [.text(bundleId), .text(Self.environment.rawValue)])
    for row in slices {
      guard let type = SweptType(rawValue: try row.text(0)) else { continue }
      known[type]?.slices.append(
        SweepSlice(
          start: try row.instant(1), end: try row.instant(2), paginationToken: try row.optionalText(3)))
    }
    return SweptType.allCases.map { known[$0] ?? SweepCursor(type: $0) }
  }

  /// The instant up to which Apple's notifications of sales are known.
  package func salesKnownUntil(_ connection: borrowing BlockingConnection) throws(PostgresError) -> Instant {
    try cursors(connection).filter(\.type.reportsSales).map { $0.sweptUntil ?? Instant(seconds: 0) }.min()
      ?? Instant(seconds: 0)
  }

  /// Stores a cursor; part of the transaction that stores its facts. `stored` is the current row.
  package func save(
    _ cursor: SweepCursor, over stored: SweepCursor, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let key: [PostgresValue] = [.text(bundleId), .text(Self.environment.rawValue), .text(cursor.type.rawValue)]
    try connection.postpone(
      """
      INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt, reason,
        window_start, window_end)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
      ON CONFLICT (bundle_id, environment, notification_type) DO UPDATE SET
        swept_until = excluded.swept_until, last_attempt = excluded.last_attempt, reason = excluded.reason,
        window_start = excluded.window_start, window_end = excluded.window_end
      """,
      key + [
        .timestamp(cursor.sweptUntil?.microseconds), .timestamp(cursor.lastAttempt?.microseconds),
        .text(cursor.shortfall?.rawValue), .timestamp(cursor.window?.start.microseconds),
        .timestamp(cursor.window?.end.microseconds),
      ])
    let gaps = cursor.gaps.filter { !stored.gaps.contains($0) }
    if !gaps.isEmpty {
      try connection.postpone(
        """
        INSERT INTO night_audit.sweep_gaps AS known (bundle_id, environment, notification_type, gap_start, gap_end, as_of)
        SELECT $1, $2, $3, met.*, \(PublishedReport.noted("$6::timestamptz")) FROM unnest($4::timestamptz[], $5::timestamptz[]) AS met
        ON CONFLICT (bundle_id, environment, notification_type, gap_start) DO UPDATE
        SET gap_end = excluded.gap_end, as_of = excluded.as_of WHERE excluded.gap_end > known.gap_end
        """,
        key + [
          .timestampArray(gaps.map(\.start.microseconds)), .timestampArray(gaps.map(\.end.microseconds)),
          .timestamp(cursor.lastAttempt?.microseconds),
        ])
    }
    let kept = Set(cursor.slices.map(\.start))
    let gone = stored.slices.map(\.start).filter { !kept.contains($0) }
    if !gone.isEmpty {
      try connection.postpone(
        """
        DELETE FROM night_audit.sweep_slices
        WHERE bundle_id = $1 AND environment = $2 AND notification_type = $3 AND slice_start = ANY ($4)
        """, key + [.timestampArray(gone.map(\.microseconds))])
    }
    let known = Set(stored.slices.map(\.unseen))
    let changed = cursor.slices.map(\.unseen).filter { !known.contains($0) }
    if changed.isEmpty { return }
    try connection.postpone(
      """
      INSERT INTO night_audit.sweep_slices
        (bundle_id, environment, notification_type, slice_start, slice_end, pagination_token)
      SELECT $1, $2, $3, * FROM unnest($4::timestamptz[], $5::timestamptz[], $6::text[])
      ON CONFLICT (bundle_id, environment, notification_type, slice_start) DO UPDATE SET
        slice_end = excluded.slice_end, pagination_token = excluded.pagination_token
      """,
      key + [
        .timestampArray(changed.map(\.start.microseconds)), .timestampArray(changed.map(\.end.microseconds)),
        .textArray(changed.map(\.paginationToken)),
      ])
  }
}
