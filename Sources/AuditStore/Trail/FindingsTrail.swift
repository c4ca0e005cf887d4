import Postgres

/// Verifies that decisions and dates in `findings` follow from the events. The table changes every night; its events
/// are append-only and covered by the trail.
enum FindingsTrail {
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

  static func prove(on connection: borrowing BlockingConnection) throws(PostgresError) -> TrailVerification.Check {
    let odd = try connection.execute(
      """
      WITH derived AS MATERIALIZED (\(derived)), told AS MATERIALIZED (
        SELECT e.finding_id, e.event, e.as_of FROM night_audit.finding_events e LEFT JOIN night_audit.runs r USING (run_id)
        WHERE e.event IN ('opened', 'closed') AND r.publication IS DISTINCT FROM 'forgotten')
      SELECT f.finding_id FROM night_audit.findings f
      LEFT JOIN derived d ON d.finding_id = f.finding_id
        AND (d.owner, d.remark, d.due, d.acceptance, d.status)
          IS NOT DISTINCT FROM (f.owner, f.remark, f.due::text, f.acceptance, f.status)
      LEFT JOIN told opened ON opened.finding_id = f.finding_id AND opened.event = 'opened' AND opened.as_of = f.first_seen
      LEFT JOIN told closed ON closed.finding_id = f.finding_id AND closed.event = 'closed' AND closed.as_of = f.closed_at
      WHERE d.finding_id IS NULL OR opened.finding_id IS NULL OR f.closed_at IS NOT NULL AND closed.finding_id IS NULL
      UNION ALL
      SELECT e.finding_id FROM told e LEFT JOIN night_audit.findings f USING (finding_id)
      WHERE e.event = 'opened' AND f.finding_id IS NULL
      ORDER BY 1 LIMIT 1
      """)
    if let row = odd.first {
      return TrailVerification.Check(
        subject: "findings",
        problem: """
          finding \(try row.text(0)) differs from its events: its status, owner, remark, due day, first_seen or \
          closed_at was changed by hand, or its row was removed
          """)
    }
    let count = try connection.execute("SELECT count(*) FROM night_audit.findings").single().int64(0)
    return TrailVerification.Check(subject: "findings (\(count) rows, which agree with their events)")
  }
}
