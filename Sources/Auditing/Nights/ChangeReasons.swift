import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import SalesStore

/// Why findings opened and closed between two runs: evidence, answers and rows that arrived in between.
package struct ChangeReasons {
  private var reasons: [String: [String]] = [:]

  package subscript(findingId: String) -> [String] { reasons[findingId] ?? [] }

  /// - Parameters:
  ///   - condition: on rows `e` with an as-of and a run; `$1` and `$2` are the two instants.
  ///   - withClaims: true to include claims. They are derived, so a night made again would find its own.
  package init(
    findingIds: [String], condition: String, parameters: [PostgresValue], withClaims: Bool,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let parameters = parameters + [.textArray(findingIds)]
    try addEvidence(condition, parameters, withClaims: withClaims, connection)
    try addAnswers(condition, parameters, connection)
  }

  private static let ofEvidence = [
    "evidence_id", "run_id", "channel", "signed_at", "transaction_id", "environment", "product_id", "purchased_at",
    "revoked_at", "tells_revocation",
  ]
  private static let ofAnswers = [
    "answer_id", "run_id", "subject_kind", "subject_id", "channel", "outcome", "reason", "facts",
  ]

  private mutating func add(_ reason: String, to findingId: String) { reasons[findingId, default: []].append(reason) }

  private mutating func addEvidence(
    _ condition: String, _ parameters: [PostgresValue], withClaims: Bool, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let rows = try connection.execute(
      """
      SELECT w.finding_id, e.as_of, e.channel, e.transaction_id, e.environment, e.product_id, e.purchased_at, e.revoked_at,
        e.tells_revocation
      FROM (
        SELECT finding_id, transaction_id FROM night_audit.findings
        WHERE finding_id = ANY ($4) AND transaction_id IS NOT NULL
        UNION
        SELECT f.finding_id, t.transaction_id FROM night_audit.findings f
        JOIN night_audit.claims t USING (order_id) WHERE f.finding_id = ANY ($4) AND \(withClaims)) w
      JOIN \(ForgottenRun.tableWithCorrectedAsOf("evidence", Self.ofEvidence)) e USING (transaction_id)
      WHERE \(condition) ORDER BY w.finding_id, e.signed_at, e.evidence_id
      """, parameters)
    for row in rows {
      var text = "\(try row.text(2)) reported transaction \(try row.text(3)) (\(try row.text(4)), \(try row.text(5)))"
      if let bought = try row.optionalTimestamp(6) { text += ", bought \(Instant(microseconds: bought).text)" }
      if let revoked = try row.optionalTimestamp(7) {
        text += ", refunded \(Instant(microseconds: revoked).text)"
      } else if try row.bool(8) {
        text += ", not refunded"
      }
      add("\(Instant(microseconds: try row.timestamp(1)).text) \(text)", to: try row.text(0))
    }
  }

  private mutating func addAnswers(
    _ condition: String, _ parameters: [PostgresValue], _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let rows = try connection.execute(
      """
      SELECT w.finding_id, e.as_of, e.channel, e.subject_kind, e.subject_id, e.outcome, e.reason
      FROM (
        SELECT finding_id, 'receipt' AS subject_kind, receipt_id AS subject_id FROM night_audit.findings
        WHERE finding_id = ANY ($4) AND receipt_id IS NOT NULL
        UNION
        SELECT f.finding_id, c.subject_kind, c.subject_id FROM night_audit.findings f
        JOIN night_audit.receipt_checks c USING (order_id) WHERE f.finding_id = ANY ($4)) w
      JOIN \(ForgottenRun.tableWithCorrectedAsOf("answers", Self.ofAnswers)) e USING (subject_kind, subject_id)
      WHERE e.facts = 0 AND \(condition) ORDER BY w.finding_id, e.answer_id
      """, parameters)
    for row in rows {
      let subject = "\(try row.text(3)) \(try row.text(4))"
      let reason = try row.optionalText(6).map { " (\($0))" } ?? ""
      add(
        "\(Instant(microseconds: try row.timestamp(1)).text) \(try row.text(2)) about \(subject): "
          + "\(try row.text(5))\(reason)", to: try row.text(0))
    }
  }

  /// Adds changes to the findings' orders and deliveries after `start` and up to `end`.
  package mutating func add(
    _ findingIds: [String], after start: Instant, upTo end: Instant, sales: SalesRows,
    shop: borrowing BlockingConnection, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    var (ofOrder, ofDelivery): ([Identifier: [String]], [Identifier: [String]]) = ([:], [:])
    let findings = try connection.execute(
      "SELECT finding_id, order_id, delivery_id FROM night_audit.findings WHERE finding_id = ANY ($1) ORDER BY finding_id",
      [.textArray(findingIds)])
    for row in findings {
      let findingId = try row.text(0)
      if let id = try row.optionalText(1) { ofOrder[Identifier(id), default: []].append(findingId) }
      if let id = try row.optionalText(2) { ofDelivery[Identifier(id), default: []].append(findingId) }
    }
    let interval: [PostgresValue] = [.timestamp(start.microseconds), .timestamp(end.microseconds)]
    let orderIds = PostgresValue.textArray(ofOrder.keys.sorted().map(\.text))
    let deliveries = try shop.execute(
      """
      SELECT d.order_id::text, coalesce(d.delivery_id::text, ''), coalesce(d.user_id::text, ''), d.quantity::bigint::text,
        CASE WHEN d.delivered_at > $1 AND d.delivered_at <= $2 THEN d.delivered_at END,
        CASE WHEN d.revoked_at > $1 AND d.revoked_at <= $2 THEN d.revoked_at END
      FROM \(sales.schema).deliveries d
      WHERE (d.order_id::text COLLATE "C" = ANY ($3) OR d.delivery_id::text COLLATE "C" = ANY ($4))
        AND (d.delivered_at > $1 AND d.delivered_at <= $2 OR d.revoked_at > $1 AND d.revoked_at <= $2)
      ORDER BY d.delivered_at, d.delivery_id::text COLLATE "C"
      """, interval + [orderIds, .textArray(ofDelivery.keys.sorted().map(\.text))])
    for row in deliveries {
      let deliveryId = try row.shownText(1) ?? ""
      let ids = Set(try row.shownText(0).flatMap { ofOrder[Identifier($0)] } ?? [])
        .union(ofDelivery[Identifier(deliveryId)] ?? [])
      let (units, userId) = (try row.optionalText(3) ?? "no units", try row.shownText(2) ?? "")
      let what = "delivery \(deliveryId) of \(units) to user \(userId)"
      for (date, verb) in [(try row.optionalTimestamp(4), "delivered"), (try row.optionalTimestamp(5), "taken back")] {
        guard let date else { continue }
        for id in ids { add("\(Instant(microseconds: date).text) \(verb): \(what)", to: id) }
      }
    }
    let orders = try shop.execute(
      """
      SELECT o.order_id::text, o.updated_at, coalesce(o.status::text, ''), (o.created_at > $1) IS TRUE
      FROM \(sales.schema).orders o
      WHERE o.order_id::text COLLATE "C" = ANY ($3) AND o.updated_at > $1 AND o.updated_at <= $2 ORDER BY o.updated_at
      """, interval + [orderIds])
    for row in orders {
      let (verb, status) = (try row.bool(3) ? "recorded" : "changed", try row.shownText(2) ?? "")
      let what = "\(Instant(microseconds: try row.timestamp(1)).text) the shop \(verb) the order: \(status)"
      for id in ofOrder[Identifier(try row.text(0))] ?? [] { add(what, to: id) }
    }
  }
}
