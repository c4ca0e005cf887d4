import AuditStore
import Postgres
import Reconciliation
import Streams

extension CheckTable {
  /// The table with the policy of the newest run; nil before the first run.
  static func ofNewestRun(on connection: borrowing BlockingConnection) throws -> CheckTable? {
    let rows = try connection.execute("SELECT value FROM night_audit.asking_state WHERE key = 'times'")
    return try rows.first.flatMap { Dueness.Policy(try $0.text(0)) }.map(CheckTable.init)
  }

  /// Stores since when each check supports an accusation that was open just before `asOf`, with the new due dates.
  /// A past day made again changes nothing, because a run of a later as-of has noted later accusations. A night made
  /// again notes the same accusations, because findings that it has opened or closed itself do not count yet.
  func noteAccusations(before asOf: Instant, on connection: borrowing BlockingConnection) throws {
    let isNewest = try connection.execute(
      """
      INSERT INTO night_audit.asking_state AS s (key, value) VALUES ('accusations', $1::bigint::text)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value
        WHERE CASE WHEN \(InterNightState.isNumber("s.value")) THEN s.value::bigint <= $1 ELSE true END RETURNING 1
      """, [.int(asOf.microseconds)])
    if isNewest.isEmpty { return }
    let changes = try CheckTable.changedAccusations(on: connection)
    let subjects = changes.keys.sorted { ($0.kind.rawValue, $0.id) < ($1.kind.rawValue, $1.id) }
    for start in stride(from: 0, to: subjects.count, by: 1_000) {
      let part = subjects[start..<min(start + 1_000, subjects.count)]
      try change(where: CheckQueue.isListed("$1", "$2"), part.parameters, on: connection) { row in
        row.history.accusedSince = changes[row.subject] ?? nil
        return true
      }
    }
  }

  /// SQL: the checks behind findings that accuse, of any severity, and were open at `noted.at`, with the oldest opening.
  /// A finding rests on the receipts of its order, on the receipt that it names, and on the look-up of its order's ID.
  private static let accused = """
    SELECT proof.subject_kind, proof.subject_id, min(f.opened_at) AS since
    FROM noted JOIN night_audit.findings f ON f.opened_at < noted.at AND (f.closed_at IS NULL OR f.closed_at >= noted.at)
    CROSS JOIN LATERAL (
      SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
      WHERE c.order_id = f.order_id AND c.subject_kind = 'receipt'
      UNION SELECT 'receipt', f.receipt_id WHERE f.receipt_id IS NOT NULL
      UNION SELECT 'lookup', l.subject_id FROM night_audit.lookups l WHERE l.order_id = f.order_id) proof
    WHERE f.kind IN (\(FindingKind.allCases.filter { $0.has(.accusesCustomer) }.map { "'\($0.rawValue)'" }.joined(separator: ", ")))
    GROUP BY proof.subject_kind, proof.subject_id
    """

  /// The checks whose stored beginning of an accusation differs from the findings, with the right one. Empty before the
  /// first run.
  static func changedAccusations(on connection: borrowing BlockingConnection) throws -> [CheckSubject: Instant?] {
    let rows = try connection.execute(
      """
      WITH noted AS MATERIALIZED (
        SELECT timestamptz 'epoch' + value::bigint * interval '1 microsecond' AS at FROM night_audit.asking_state
        WHERE key = 'accusations' AND \(InterNightState.isNumber("value"))),
      accused AS MATERIALIZED (\(accused))
      SELECT c.subject_kind, c.subject_id, a.since FROM accused a
      JOIN night_audit.receipt_checks c USING (subject_kind, subject_id)
      WHERE c.accused_since IS DISTINCT FROM a.since
      UNION ALL
      SELECT c.subject_kind, c.subject_id, NULL FROM noted CROSS JOIN night_audit.receipt_checks c
      WHERE c.accused_since IS NOT NULL AND NOT EXISTS (
        SELECT FROM accused a WHERE a.subject_kind = c.subject_kind AND a.subject_id = c.subject_id)
      """)
    return try rows.reduce(into: [:]) { changes, row in
      changes.updateValue(try row.optionalInstant(2), forKey: try CheckSubject(of: row))
    }
  }
}

extension Dueness.Policy {
  init?(_ text: String) {
    let times = text.split(separator: " ").compactMap { Int64($0) }
    guard times.count == 3 else { return nil }
    self.init(
      staleAfter: Span(microseconds: times[0]), refundWindow: Span(microseconds: times[1]),
      lookback: Span(microseconds: times[2]))
  }
}
