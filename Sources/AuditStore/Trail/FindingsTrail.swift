import Postgres

/// Verifies that decisions, dates, money and texts in `findings` follow from the events. The table changes every night;
/// its events are append-only and covered by the trail.
package enum FindingsTrail {
  /// The columns that a run writes, except for the owner, which people change.
  package static let columns = [
    "kind", "severity", "subject_kind", "subject", "order_id", "user_id", "product_id", "bundle_id", "transaction_id",
    "receipt_id", "delivery_id", "environment", "currency", "amount", "at_stake", "reason", "paid_at", "delivered_at",
    "occurred_at", "at_stake_unknown", "app", "country", "business_day", "action", "subscription_expires_at",
  ]

  /// SQL: the digest of a row of `findings`, or of a table with the same columns.
  package static func digest(_ finding: String) -> String {
    "encode(sha256(record_send(ROW(\(columns.map { "\(finding).\($0)" }.joined(separator: ", "))))), 'hex')"
  }

  /// The state that follows from the events of each finding. Those after a `forgotten` event count alone too, because
  /// that may have removed the finding with its decisions.
  private static let derived = """
    SELECT e.finding_id, since.event_id,
      (array_agg(e.detail ORDER BY e.event_id DESC) FILTER (WHERE e.event = 'owner'))[1] AS owner,
      (array_agg(e.detail ORDER BY e.event_id DESC) FILTER (WHERE e.event = 'remark'))[1] AS remark,
      (array_agg(e.detail ORDER BY e.event_id DESC) FILTER (WHERE e.event = 'due'))[1] AS due,
      (array_agg(e.detail ORDER BY e.event_id DESC) FILTER (WHERE e.event = 'acceptance'))[1] AS acceptance,
      coalesce((array_agg(CASE e.event WHEN 'status' THEN e.detail END ORDER BY e.event_id DESC)
        FILTER (WHERE e.event IN ('status', 'reopened', 'returned')))[1], 'open') AS status
    FROM night_audit.finding_events e JOIN (
      SELECT finding_id, event_id FROM night_audit.finding_events WHERE event = 'forgotten'
      UNION ALL SELECT DISTINCT finding_id, 0 FROM night_audit.finding_events) since
      ON since.finding_id = e.finding_id AND e.event_id > since.event_id
    GROUP BY e.finding_id, since.event_id
    """

  /// The first finding that differs; nil if there is none.
  static func problem(on connection: borrowing BlockingConnection) throws(PostgresError) -> String? {
    let odd = try connection.execute(
      """
      WITH derived AS MATERIALIZED (\(derived)), events AS MATERIALIZED (
        SELECT e.finding_id, e.event, e.as_of FROM night_audit.finding_events e LEFT JOIN night_audit.runs r USING (run_id)
        WHERE e.event IN ('opened', 'closed') AND r.publication IS DISTINCT FROM 'forgotten'),
      stored AS MATERIALIZED (
        SELECT DISTINCT ON (finding_id) finding_id, digest FROM night_audit.finding_events
        WHERE digest IS NOT NULL ORDER BY finding_id, event_id DESC)
      SELECT f.finding_id FROM night_audit.findings f
      LEFT JOIN stored s ON s.finding_id = f.finding_id AND s.digest = \(digest("f"))
      LEFT JOIN derived d ON d.finding_id = f.finding_id
        AND (d.owner, d.remark, d.due, d.acceptance, d.status)
          IS NOT DISTINCT FROM (f.owner, f.remark, f.due::text, f.acceptance, f.status)
      LEFT JOIN events opened ON opened.finding_id = f.finding_id AND opened.event = 'opened' AND opened.as_of = f.first_seen
      LEFT JOIN events closed ON closed.finding_id = f.finding_id AND closed.event = 'closed' AND closed.as_of = f.closed_at
      WHERE d.finding_id IS NULL OR s.finding_id IS NULL OR opened.finding_id IS NULL OR f.closed_at IS NOT NULL AND closed.finding_id IS NULL
      UNION ALL
      SELECT e.finding_id FROM events e LEFT JOIN night_audit.findings f USING (finding_id)
      WHERE e.event = 'opened' AND f.finding_id IS NULL
      ORDER BY 1 LIMIT 1
      """)
    return try odd.first.map { row throws(PostgresError) in
      """
      finding \(try row.text(0)) differs from its events: its status, owner, remark, due day, dates, severity, money or \
      texts were changed by hand, or its row was removed
      """
    }
  }

  static func prove(on connection: borrowing BlockingConnection) throws(PostgresError) -> TrailVerification.Check {
    if let problem = try problem(on: connection) {
      return TrailVerification.Check(subject: "findings", problem: problem)
    }
    let count = try connection.execute("SELECT count(*) FROM night_audit.findings").single().int64(0)
    return TrailVerification.Check(subject: "findings (\(count) rows, which agree with their events)")
  }
}
