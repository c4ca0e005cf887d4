import AuditStore
import Auditing
import Foundation
import Postgres
import Reconciliation
import Reporting
import SalesStore

/// The changes between two runs, with their reasons.
package struct RunDifference: Sendable {
  package struct Total: Sendable {
    package var currency: String
    package var disposition: String
    package var before: String?
    package var after: String?
  }

  package struct Change: Sendable {
    package var findingId: String
    package var kind: String
    package var severity: String
    package var subject: String
    package var orderId: String?
    /// `opened`, `reopened` or `closed`.
    package var event: String
    package var at: Instant
    /// Facts that arrived between the two runs, oldest first.
    package var reasons: [String]
  }

  package struct Answers: Sendable {
    package var channel: String
    package var outcome: String
    package var count: Int64
  }

  package var first: PastRun
  package var second: PastRun
  package var totals: [Total]
  /// Prior-period adjustments to days that the first run had reported.
  package var adjustments: [Adjustment]
  package var findings: [Change]
  package var answers: [Answers]
  /// Facts about transactions that arrived between the runs; `revocations` of them report a refund.
  package var evidence: Int64
  package var revocations: Int64
  package var decisions: Int64

  package var configurationChanged: Bool { first.configuration != second.configuration }
  package var timeZoneChanged: Bool { first.timeZone != second.timeZone }

  init(
    from first: PastRun, to second: PastRun, sales: SalesRows, shop: borrowing BlockingConnection,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    self.first = first
    self.second = second
    let between = Between(first, second)
    totals = try RunDifference.totals(first, second, connection)
    adjustments = Adjustment.between(
      try RunDifference.statements(first, connection), try RunDifference.statements(second, connection))
    answers = try connection.execute(
      """
      SELECT channel, outcome, count(*) FROM \(ForgottenRun.tableWithCorrectedAsOf("answers", ["run_id", "channel", "outcome"])) e
      WHERE \(between.condition)
      GROUP BY channel, outcome ORDER BY channel, outcome
      """, between.parameters
    ).map { row throws(PostgresError) in
      Answers(channel: try row.text(0), outcome: try row.text(1), count: try row.int64(2))
    }
    let facts = try connection.execute(
      """
      SELECT count(*), count(revoked_at) FROM \(ForgottenRun.tableWithCorrectedAsOf("evidence", ["run_id", "revoked_at"])) e
      WHERE \(between.condition)
      """, between.parameters
    ).single()
    evidence = try facts.int64(0)
    revocations = try facts.int64(1)
    decisions = try connection.execute(
      """
      SELECT count(*) FROM night_audit.finding_events e WHERE run_id IS NULL AND recorded_at > $1 AND recorded_at <= $2
      """, [.timestamp(first.startedAt.microseconds), .timestamp(second.startedAt.microseconds)]
    ).single().int64(0)
    findings = try RunDifference.changes(from: first, to: second, connection)
    try explainFindings(between, sales, shop: shop, connection)
  }

  /// Selects rows dated after the first as-of, up to the second; for equal as-ofs, rows of the second run.
  private struct Between {
    let condition = "(e.as_of > $1 AND e.as_of <= $2 OR e.run_id = $3::uuid AND $1 = $2)"
    let parameters: [PostgresValue]

    init(_ first: PastRun, _ second: PastRun) {
      parameters = [
        .timestamp(first.asOf.microseconds), .timestamp(second.asOf.microseconds),
        .text(first.runId == second.runId ? nil : second.runId),
      ]
    }
  }

  private static func statements(
    _ run: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: DayTotals.Sums] {
    try ReportedDays.statements(
      of: .upTo(run.until), asOf: run.asOf, timeZone: run.timeZone, on: connection)
  }

  private static func totals(
    _ first: PastRun, _ second: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Total] {
    try connection.execute(
      """
      SELECT currency, disposition, a.amount::text, b.amount::text
      FROM (SELECT * FROM night_audit.run_totals WHERE run_id = $1::uuid) a
      FULL JOIN (SELECT * FROM night_audit.run_totals WHERE run_id = $2::uuid) b USING (currency, disposition)
      ORDER BY currency, disposition
      """, [.text(first.runId), .text(second.runId)]
    ).map { row throws(PostgresError) in
      Total(
        currency: try row.text(0), disposition: try row.text(1), before: try row.optionalText(2),
        after: try row.optionalText(3))
    }
  }

  /// Reads changes as-of by as-of: the newest run of an as-of counts, and forgotten runs do not.
  private static func changes(
    from first: PastRun, to second: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Change] {
    let rows = try connection.execute(
      """
      WITH events AS (
        SELECT e.finding_id, e.as_of, (e.as_of, r.started_at) > ($1, $2) AS is_later, e.event_id, e.event <> 'closed' AS is_open
        FROM night_audit.finding_events e JOIN night_audit.runs r USING (run_id)
        WHERE e.event IN ('opened', 'reopened', 'kept_open', 'closed') AND r.publication IS DISTINCT FROM 'forgotten'
          AND (e.as_of, r.started_at) <= ($3, $4)
          AND e.finding_id IN (
            SELECT b.finding_id FROM night_audit.finding_events b WHERE b.as_of >= $1 AND b.as_of <= $3)),
      latest AS (
        SELECT DISTINCT ON (finding_id, as_of, is_later) finding_id, as_of, is_later, is_open FROM events
        ORDER BY finding_id, as_of, is_later, event_id DESC),
      steps AS (
        SELECT *, coalesce(lag(is_open) OVER earlier, false) AS was_open,
          coalesce(bool_or(is_open) OVER (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false) AS was_known
        FROM latest WINDOW earlier AS (PARTITION BY finding_id ORDER BY as_of, is_later))
      SELECT f.finding_id, f.kind, f.severity, f.subject, f.order_id,
        CASE WHEN NOT s.is_open THEN 'closed' WHEN s.was_known THEN 'reopened' ELSE 'opened' END AS event, s.as_of
      FROM steps s JOIN night_audit.findings f USING (finding_id)
      WHERE s.is_later AND s.is_open <> s.was_open
      ORDER BY s.is_open, s.was_known, f.severity, f.kind, f.subject, f.finding_id, s.as_of
      """,
      [
        .timestamp(first.asOf.microseconds), .timestamp(first.startedAt.microseconds),
        .timestamp(second.asOf.microseconds), .timestamp(second.startedAt.microseconds),
      ])
    var changes: [Change] = []
    for row in rows {
      changes.append(
        Change(
          findingId: try row.text(0), kind: try row.text(1), severity: try row.text(2), subject: try row.text(3),
          orderId: try row.optionalText(4), event: try row.text(5), at: Instant(microseconds: try row.timestamp(6)),
          reasons: []))
    }
    return changes
  }

  private mutating func explainFindings(
    _ between: Between, _ sales: SalesRows, shop: borrowing BlockingConnection,
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if findings.isEmpty { return }
    let ids = Set(findings.map(\.findingId)).sorted()
    var reasons = try ChangeReasons(
      findingIds: ids, condition: between.condition, parameters: between.parameters, withClaims: true, on: connection)
    try reasons.add(ids, after: first.asOf, upTo: second.asOf, sales: sales, shop: shop, on: connection)
    for index in findings.indices { findings[index].reasons = reasons[findings[index].findingId] }
  }
}
