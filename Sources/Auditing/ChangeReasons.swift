import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import SalesStore

/// Why findings came and went between two runs: what arrived about their orders, transactions and receipts meanwhile.
package struct ChangeReasons {
  private var reasons: [String: [String]] = [:]

  package subscript(findingId: String) -> [String] { reasons[findingId] ?? [] }

  /// - Parameters:
  ///   - condition: on rows `e` with an as-of and a run, with its parameters from `$1` to `$3`; the first two of them are
  ///     the two instants.
  ///   - sales: where the shop's orders and deliveries are, in the same database; nil: they are not looked at,
  ///     and neither is what runs came to.
  package init(
    findingIds: [String], condition: String, parameters: [PostgresValue], sales: SalesRows?,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let parameters = parameters + [.textArray(findingIds)]
    // What a run came to about claims is no fact: a night that is made again would find its own there.
    try addEvidence(condition, parameters, withClaims: sales != nil, connection)
    try addAnswers(condition, parameters, connection)
    guard let sales else { return }
    try addDeliveries(sales, findingIds, parameters, connection)
    try addOrders(sales, findingIds, parameters, connection)
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
      JOIN \(ForgottenRun.told("evidence", Self.ofEvidence)) e USING (transaction_id)
      WHERE \(condition) ORDER BY w.finding_id, e.signed_at, e.evidence_id
      """, parameters)
    for row in rows {
      var text = "\(try row.text(2)) said: transaction \(try row.text(3)) (\(try row.text(4)), \(try row.text(5)))"
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
      JOIN \(ForgottenRun.told("answers", Self.ofAnswers)) e USING (subject_kind, subject_id)
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

  private mutating func addDeliveries(
    _ sales: SalesRows, _ findingIds: [String], _ parameters: [PostgresValue],
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let rows = try connection.execute(
      """
      SELECT f.finding_id, d.delivery_id::text, d.user_id::text, d.quantity::bigint,
        CASE WHEN d.delivered_at > $1 AND d.delivered_at <= $2 THEN d.delivered_at END,
        CASE WHEN d.revoked_at > $1 AND d.revoked_at <= $2 THEN d.revoked_at END
      FROM night_audit.findings f
      JOIN \(sales.schema).deliveries d ON d.order_id::text = f.order_id OR d.delivery_id::text = f.delivery_id
      WHERE f.finding_id = ANY ($3) AND (d.delivered_at > $1 AND d.delivered_at <= $2
        OR d.revoked_at > $1 AND d.revoked_at <= $2)
      ORDER BY f.finding_id, d.delivered_at, d.delivery_id
      """, [parameters[0], parameters[1], .textArray(findingIds)])
    for row in rows {
      let what = "delivery \(try row.text(1)) of \(try row.int64(3)) to user \(try row.text(2))"
      for (date, verb) in [(try row.optionalTimestamp(4), "delivered"), (try row.optionalTimestamp(5), "taken back")] {
        if let date { add("\(Instant(microseconds: date).text) \(verb): \(what)", to: try row.text(0)) }
      }
    }
  }

  private mutating func addOrders(
    _ sales: SalesRows, _ findingIds: [String], _ parameters: [PostgresValue],
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let rows = try connection.execute(
      """
      SELECT f.finding_id, o.updated_at, o.status::text, o.created_at > $1
      FROM night_audit.findings f JOIN \(sales.schema).orders o ON o.order_id::text = f.order_id
      WHERE f.finding_id = ANY ($3) AND o.updated_at > $1 AND o.updated_at <= $2 ORDER BY f.finding_id
      """, [parameters[0], parameters[1], .textArray(findingIds)])
    for row in rows {
      let verb = try row.bool(3) ? "recorded" : "changed"
      add(
        "\(Instant(microseconds: try row.timestamp(1)).text) the shop \(verb) the order: \(try row.text(2))",
        to: try row.text(0))
    }
  }
}
