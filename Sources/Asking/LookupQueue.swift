import AuditStore
import Postgres
import Reconciliation
import SalesStore

/// The part of the queue that is about orders that name a transaction id and have no receipt: only the App Store Server
/// API can be asked about them.
///
/// A question is an app and an id, and which orders wait for it stands in `night_audit.lookups`.
struct LookupQueue: Sendable {
  let sales: SalesRows
  /// The apps that are asked through the App Store Server API.
  let bundleIds: [String]
  /// The app of orders that name none.
  let onlyBundleId: String?
  /// What the filters list, on orders aliased `o`.
  let condition: String
  /// Orders from here on are looked up.
  let horizon: Instant
  /// What critical findings rest on, as `CheckQueue.due`.
  var isCritical = "FALSE"

  /// Longer ids are none of Apple's. They share a question with those that begin alike, and get the same answer; an index
  /// could not hold them.
  private static let longestId = 64

  /// The orders that wait, with `$1` the apps, `$2` the app of those that name none, and `$3` the horizon.
  private var wanted: String {
    """
    SELECT DISTINCT ON (1) o.order_id::text COLLATE "C" AS order_id,
      app.bundle_id || '/' || CASE WHEN octet_length(o.transaction_id::text) <= \(Self.longestId) THEN o.transaction_id::text
        ELSE left(o.transaction_id::text, \(Self.longestId)) || '…' END COLLATE "C" AS subject_id,
      o.created_at::timestamptz AS created_at, o.status::text IS DISTINCT FROM 'verified' AS is_urgent
    FROM \(sales.schema).orders o
    JOIN unnest($1::text[]) AS app (bundle_id) ON app.bundle_id = coalesce(o.bundle_id::text, $2)
    WHERE o.transaction_id::text <> '' AND o.order_id::text <> '' AND isfinite(o.created_at) AND o.created_at >= $3
      AND NOT EXISTS (
        SELECT 1 FROM \(sales.schema).receipts r
        WHERE r.order_id::text = o.order_id::text AND isfinite(r.received_at)
          AND r.status::text IN ('unverified', 'verified', 'timeout', 'rejected'))
    ORDER BY 1, 2
    """
  }

  private var parameters: [PostgresValue] {
    [.textArray(bundleIds), .text(onlyBundleId), .timestamp(horizon.microseconds)]
  }

  /// Takes in orders that wait for a look-up since the last time, and lets go of those that have a receipt now.
  ///
  /// - Returns: how many questions are new or have another order waiting.
  func enqueue(_ session: PostgresSession, asOf: Instant) async throws -> Int {
    if bundleIds.isEmpty { return 0 }
    return try await session.execute(
      """
      WITH wanted AS MATERIALIZED (\(wanted)),
      settled AS (
        DELETE FROM night_audit.lookups l USING \(sales.schema).orders o
        WHERE o.order_id::text = l.order_id AND o.created_at >= $3
          AND NOT EXISTS (SELECT 1 FROM wanted w WHERE w.order_id = l.order_id)),
      changed AS (
        INSERT INTO night_audit.lookups AS known (order_id, subject_id)
        SELECT w.order_id, w.subject_id FROM wanted w
        LEFT JOIN night_audit.lookups l ON l.order_id = w.order_id WHERE l.subject_id IS DISTINCT FROM w.subject_id
        ON CONFLICT (order_id) DO UPDATE SET subject_id = excluded.subject_id
        RETURNING order_id, subject_id)
      INSERT INTO night_audit.receipt_checks AS known
        (subject_kind, subject_id, order_id, received_at, reason, next_attempt, is_urgent)
      SELECT 'lookup', c.subject_id, min(c.order_id), max(w.created_at), 'never_checked', $4, bool_or(w.is_urgent)
      FROM changed c JOIN wanted w ON w.order_id = c.order_id GROUP BY c.subject_id
      ON CONFLICT (subject_kind, subject_id) DO UPDATE SET
        received_at = greatest(known.received_at, excluded.received_at), is_urgent = known.is_urgent OR excluded.is_urgent,
        next_attempt = CASE known.outcome WHEN 'not_found' THEN excluded.next_attempt ELSE known.next_attempt END
      """, parameters + [.timestamp(asOf.microseconds)]
    ).affectedRows
  }

  /// How many questions the queue does not know yet.
  func unknownCount(_ session: PostgresSession) async throws -> Int {
    if bundleIds.isEmpty { return 0 }
    let rows = try await session.execute(
      """
      SELECT count(DISTINCT w.subject_id) FROM (\(wanted)) w
      JOIN \(sales.schema).orders o ON o.order_id::text = w.order_id AND (\(condition))
      WHERE NOT EXISTS (
        SELECT 1 FROM night_audit.receipt_checks c WHERE c.subject_kind = 'lookup' AND c.subject_id = w.subject_id)
      """, parameters)
    return Int(try rows.single().int64(0))
  }

  /// Which look-ups are due, with the parameters of `CheckQueue.due`.
  private var due: String {
    let orders = "JOIN \(sales.schema).orders o ON o.order_id::text = l.order_id AND (\(condition))"
    return """
      c.subject_kind = 'lookup' AND (\(CheckQueue.due) AND EXISTS (
        SELECT 1 FROM night_audit.lookups l \(condition == "TRUE" ? "" : orders) WHERE l.subject_id = c.subject_id)
        OR \(isCritical))
      """
  }

  /// How many are due now.
  func dueCount(_ session: PostgresSession, instants: [PostgresValue]) async throws -> Int {
    if bundleIds.isEmpty { return 0 }
    let rows = try await session.execute(
      """
      SELECT count(*) FROM night_audit.receipt_checks c
      WHERE \(due) AND split_part(c.subject_id, '/', 1) = ANY ($4::text[])
      """, instants + [.textArray(bundleIds)])
    return Int(try rows.single().int64(0))
  }

  /// Leases the next batch.
  ///
  /// - Parameters:
  ///   - instants: those of `CheckQueue.due`, `$1` to `$3`.
  ///   - lease: how many, for whom and how many seconds: `$4` to `$6`.
  func claim(
    _ session: PostgresSession, instants: [PostgresValue], lease: [PostgresValue]
  ) async throws -> [DueCheck] {
    if bundleIds.isEmpty { return [] }
    let rows = try await session.execute(
      """
      WITH due AS (
        SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
        WHERE \(due) AND split_part(c.subject_id, '/', 1) = ANY ($7::text[])
          AND (c.leased_until IS NULL OR c.leased_until < clock_timestamp())
        ORDER BY \(CheckQueue.rank(isCritical)), NOT c.is_urgent, c.next_attempt, c.subject_id
        LIMIT $4 FOR UPDATE OF c SKIP LOCKED)
      UPDATE night_audit.receipt_checks c
      SET leased_by = $5::uuid, leased_until = clock_timestamp() + make_interval(secs => $6::int)
      FROM due
      WHERE c.subject_kind = due.subject_kind AND c.subject_id = due.subject_id
      RETURNING \(DueCheck.columns)
      """, instants + lease + [.textArray(bundleIds)])
    return try rows.map { row in
      let id = try row.text(0)
      // A bundle id has no slash.
      let parts = id.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      var due = try DueCheck(
        row, subject: CheckSubject(kind: .lookup, id: Identifier(id)),
        matter: .lookup(transactionId: parts.count > 1 ? String(parts[1]) : ""))
      due.bundleId = parts.first.map(String.init)
      return due
    }
  }
}
