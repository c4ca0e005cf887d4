import AppStore
import Postgres
import Reconciliation

/// `night_audit.sweeps`: the cursors of one app.
///
/// Only production is swept. No finding and no total depends on what becomes of a sandbox purchase after it was made,
/// and testers' purchases would fill the tables at a tenth of the speed.
package struct SweepTable: Sendable {
  package static let environment = AppleEnvironment.production

  package let bundleId: String

  package init(bundleId: String) { self.bundleId = bundleId }

  /// The cursors of all types, new ones included.
  package func cursors(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SweepCursor] {
    let rows = try connection.execute(
      """
      SELECT notification_type, swept_until, last_attempt, reason, window_start, window_end, pagination_token, refused
      FROM night_audit.sweeps WHERE bundle_id = $1 AND environment = $2
      """, [.text(bundleId), .text(Self.environment.rawValue)])
    var known: [SweptType: SweepCursor] = [:]
    for row in rows {
      guard let type = SweptType(rawValue: try row.text(0)) else { continue }
      var cursor = SweepCursor(type: type)
      cursor.sweptUntil = try row.optionalTimestamp(1).map { Instant(microseconds: $0) }
      cursor.lastAttempt = Instant(microseconds: try row.timestamp(2))
      cursor.shortfall = try row.optionalText(3).map { SweepShortfall(rawValue: $0) ?? .unfinished }
      if let start = try row.optionalTimestamp(4), let end = try row.optionalTimestamp(5) {
        cursor.window = SweepCursor.Window(
          start: Instant(microseconds: start), end: Instant(microseconds: end),
          paginationToken: try row.optionalText(6), refused: Int(try row.int32(7)))
      }
      known[type] = cursor
    }
    return SweptType.allCases.map { known[$0] ?? SweepCursor(type: $0) }
  }

  /// Stores a cursor; part of the transaction that stores what it has passed.
  package func save(_ cursor: SweepCursor, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt, reason,
        window_start, window_end, pagination_token, refused)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::int)
      ON CONFLICT (bundle_id, environment, notification_type) DO UPDATE SET
        swept_until = excluded.swept_until, last_attempt = excluded.last_attempt, reason = excluded.reason,
        window_start = excluded.window_start, window_end = excluded.window_end,
        pagination_token = excluded.pagination_token, refused = excluded.refused
      """,
      [
        .text(bundleId), .text(Self.environment.rawValue), .text(cursor.type.rawValue),
        .timestamp(cursor.sweptUntil?.microseconds), .timestamp(cursor.lastAttempt?.microseconds),
        .text(cursor.shortfall?.rawValue), .timestamp(cursor.window?.start.microseconds),
        .timestamp(cursor.window?.end.microseconds), .text(cursor.window?.paginationToken),
        .int(Int64(cursor.window?.refused ?? 0)),
      ])
  }
}
