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

  /// SQL: the events and whether they count. A decision counts, and an event of a run from before its entry in the trail.
  /// A run can also close, for a later run, a finding that only the earlier one opened. The undo of a run counts if the
  /// run is undone. `$1` are runs, `$2` the last events that the first entry after their results covers.
  private static let events = """
    SELECT e.event_id, e.finding_id, e.event, e.detail, e.as_of, e.digest,
      r.publication IS NOT DISTINCT FROM 'forgotten' AS is_of_forgotten_run,
      coalesce(e.actor IS NOT NULL OR e.as_of = r.as_of AND CASE
        WHEN e.event = 'forgotten' THEN r.publication = 'forgotten'
        WHEN e.event_id <= m.last_event THEN true
        WHEN e.event = 'closed' THEN EXISTS (
          SELECT FROM night_audit.finding_events o JOIN night_audit.runs p ON p.run_id = o.run_id AND p.as_of = o.as_of
          JOIN marks n ON n.run_id = o.run_id
          WHERE o.finding_id = e.finding_id AND o.event IN ('opened', 'reopened') AND o.event_id < e.event_id
            AND e.event_id <= n.last_event AND o.as_of < e.as_of) END, false) AS counts
    FROM night_audit.finding_events e LEFT JOIN night_audit.runs r USING (run_id) LEFT JOIN marks m USING (run_id)
    """

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
    FROM events e JOIN (
      SELECT finding_id, event_id FROM events WHERE event = 'forgotten' AND counts
      UNION ALL SELECT DISTINCT finding_id, 0 FROM events) since
      ON since.finding_id = e.finding_id AND e.event_id > since.event_id
    WHERE e.counts GROUP BY e.finding_id, since.event_id
    """

  struct Result {
    /// The first finding that differs; nil if there is none.
    var problem: String?
    /// The first event that does not count.
    var uncounted: String?
    var findings: Int64
  }

  static func compare(
    by entries: [TrailEntry.Content], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Result {
    var marks: [String: Int64] = [:]
    for entry in entries where entry.kind == .completed || entry.kind == .found {
      if let run = entry.run, marks[run] == nil { marks[run] = entry.marks["finding_events"] ?? 0 }
    }
    let row = try connection.execute(
      """
      WITH marks AS MATERIALIZED (SELECT * FROM unnest($1::text[]::uuid[], $2::bigint[]) m (run_id, last_event)),
      events AS MATERIALIZED (\(events)), derived AS MATERIALIZED (\(derived)),
      dated AS MATERIALIZED (
        SELECT finding_id, event, as_of FROM events
        WHERE counts AND event IN ('opened', 'closed') AND NOT is_of_forgotten_run),
      stored AS MATERIALIZED (
        SELECT DISTINCT ON (finding_id) finding_id, digest FROM events
        WHERE counts AND digest IS NOT NULL ORDER BY finding_id, event_id DESC),
      odd AS (
        SELECT f.finding_id FROM night_audit.findings f
        LEFT JOIN stored s ON s.finding_id = f.finding_id AND s.digest = \(digest("f"))
        LEFT JOIN derived d ON d.finding_id = f.finding_id
          AND (d.owner, d.remark, d.due, d.acceptance, d.status)
            IS NOT DISTINCT FROM (f.owner, f.remark, f.due::text, f.acceptance, f.status)
        LEFT JOIN dated opened ON opened.finding_id = f.finding_id AND opened.event = 'opened' AND opened.as_of = f.first_seen
        LEFT JOIN dated closed ON closed.finding_id = f.finding_id AND closed.event = 'closed' AND closed.as_of = f.closed_at
        WHERE d.finding_id IS NULL OR s.finding_id IS NULL OR opened.finding_id IS NULL
          OR f.closed_at IS NOT NULL AND closed.finding_id IS NULL
        UNION ALL
        SELECT e.finding_id FROM dated e LEFT JOIN night_audit.findings f USING (finding_id)
        WHERE e.event = 'opened' AND f.finding_id IS NULL)
      SELECT (SELECT min(finding_id) FROM odd), (SELECT min(event_id) FROM events WHERE NOT counts),
        (SELECT count(*) FROM night_audit.findings)
      """, [.textArray(marks.keys.map { $0 }), .intArray(marks.values.map { $0 })]
    ).single()
    return Result(
      problem: try row.optionalText(0).map {
        """
        finding \($0) differs from its events: its status, owner, remark, due day, dates, severity, money or texts were \
        changed by hand, or its row was removed
        """
      },
      uncounted: try row.optionalInt64(1).map {
        "event \($0) of finding_events does not count, because no run recorded it"
      }, findings: try row.int64(2))
  }

  static func prove(
    by entries: [TrailEntry.Content], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> TrailVerification.Check {
    let found = try compare(by: entries, on: connection)
    if let problem = found.problem { return TrailVerification.Check("findings", problem: problem) }
    // Reported without failing, because an append-only event cannot be removed.
    let note = found.uncounted.map { "; \($0)" } ?? ""
    return TrailVerification.Check("findings (\(found.findings) rows, which agree with their events\(note))")
  }
}
