import AuditStore
import Auditing
import Postgres
import Reconciliation
import Reporting
import SalesStore

/// The changes between two runs, with their reasons.
package struct RunDifference: Sendable {
  package struct Document: Encodable, Sendable {
    struct Total: Encodable, Sendable {
      let currency: String
      let disposition: String
      let from: String?
      let to: String?
    }

    struct Change: Encodable, Sendable {
      let findingId: String
      let kind: String
      let severity: String
      let subject: String
      let orderId: String?
      /// `opened`, `reopened` or `closed`.
      let event: String
      let asOf: Instant
      /// Facts that arrived between the two runs, oldest first.
      var reasons: [String] = []
    }

    struct Answers: Encodable, Sendable {
      let channel: String
      let outcome: String
      let count: Int64
    }

    /// Facts that arrived between the runs; `revocations` of the evidence report a refund.
    struct Facts: Encodable, Sendable {
      let answers: [Answers]
      let evidence: Int64
      let revocations: Int64
      let decisions: Int64
    }

    let from: PastRun.Document
    let to: PastRun.Document
    let configurationChanged: Bool
    let timeZoneChanged: Bool
    let totals: [Total]
    /// Prior-period adjustments to days that the first run had reported.
    let adjustments: [AdjustmentText]
    var findings: [Change]
    let facts: Facts
  }

  let first: PastRun
  let second: PastRun
  package private(set) var document: Document

  init(
    from first: PastRun, to second: PastRun, sales: SalesRows, shop: borrowing BlockingConnection,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    self.first = first
    self.second = second
    let between = Between(first, second)
    let adjustments = Adjustment.between(
      try RunDifference.statements(first, connection), try RunDifference.statements(second, connection))
    document = Document(
      from: first.document, to: second.document, configurationChanged: first.configuration != second.configuration,
      timeZoneChanged: first.period.timeZone != second.period.timeZone,
      totals: try RunDifference.totals(first, second, connection), adjustments: adjustments.map { AdjustmentText($0) },
      findings: try RunDifference.changes(from: first, to: second, connection),
      facts: try RunDifference.facts(between, first, second, connection))
    try explainFindings(between, sales, shop: shop, connection)
  }

  private static func facts(
    _ between: Between, _ first: PastRun, _ second: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Document.Facts {
    let answers = try connection.execute(
      """
      SELECT channel, outcome, count(*) FROM \(ForgottenRun.tableWithCorrectedAsOf("answers", ["run_id", "channel", "outcome"])) e
      WHERE \(between.condition)
      GROUP BY channel, outcome ORDER BY channel, outcome
      """, between.parameters
    ).map { row throws(PostgresError) in
      Document.Answers(channel: try row.text(0), outcome: try row.text(1), count: try row.int64(2))
    }
    let facts = try connection.execute(
      """
      SELECT count(*), count(revoked_at) FROM \(ForgottenRun.tableWithCorrectedAsOf("evidence", ["run_id", "revoked_at"])) e
      WHERE \(between.condition)
      """, between.parameters
    ).single()
    let decisions = try connection.execute(
      """
      SELECT count(*) FROM night_audit.finding_events e WHERE run_id IS NULL AND recorded_at > $1 AND recorded_at <= $2
      """, [.timestamp(first.startedAt.microseconds), .timestamp(second.startedAt.microseconds)]
    ).single().int64(0)
    return Document.Facts(
      answers: answers, evidence: try facts.int64(0), revocations: try facts.int64(1), decisions: decisions)
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
      of: .upTo(run.period.until), asOf: run.asOf, timeZone: run.period.timeZone, on: connection)
  }

  private static func totals(
    _ first: PastRun, _ second: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Document.Total] {
    try connection.execute(
      """
      SELECT currency, disposition, a.amount::text, b.amount::text
      FROM (SELECT * FROM night_audit.run_totals WHERE run_id = $1::uuid) a
      FULL JOIN (SELECT * FROM night_audit.run_totals WHERE run_id = $2::uuid) b USING (currency, disposition)
      ORDER BY currency, disposition
      """, [.text(first.runId), .text(second.runId)]
    ).map { row throws(PostgresError) in
      Document.Total(
        currency: try row.text(0), disposition: try row.text(1), from: try row.optionalText(2),
        to: try row.optionalText(3))
    }
  }

  /// Reads changes as-of by as-of: the newest run of an as-of counts, and forgotten runs do not.
  private static func changes(
    from first: PastRun, to second: PastRun, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Document.Change] {
    try connection.execute(
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
      ]
    ).map { row throws(PostgresError) in
      Document.Change(
        findingId: try row.text(0), kind: try row.text(1), severity: try row.text(2), subject: try row.text(3),
        orderId: try row.optionalText(4), event: try row.text(5), asOf: Instant(microseconds: try row.timestamp(6)))
    }
  }

  private mutating func explainFindings(
    _ between: Between, _ sales: SalesRows, shop: borrowing BlockingConnection,
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if document.findings.isEmpty { return }
    let ids = Set(document.findings.map(\.findingId)).sorted()
    var reasons = try ChangeReasons(
      findingIds: ids, condition: between.condition, parameters: between.parameters, withClaims: true, on: connection)
    try reasons.add(ids, after: first.asOf, upTo: second.asOf, sales: sales, shop: shop, on: connection)
    for index in document.findings.indices {
      document.findings[index].reasons = reasons[document.findings[index].findingId]
    }
  }
}
