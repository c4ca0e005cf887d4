import Postgres
import Reconciliation

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

  private static let statuses = FindingStatus.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")

  /// SQL: the events and whether they count. A decision counts, and an event of a run from before its entry in the trail.
  /// A run can also close, for a later run, a finding that only the earlier one opened. The undo of a run counts if the
  /// run is undone. `$1` are runs, `$2` the last events that the first entry after their results covers.
  private static let events = """
    SELECT e.event_id, e.finding_id, e.event, e.detail, e.as_of, e.digest,
      r.publication IS NOT DISTINCT FROM 'forgotten' AS is_of_forgotten_run,
      coalesce(e.actor IS NOT NULL AND (e.event <> 'status' OR e.detail IN (\(statuses))) OR e.as_of = r.as_of AND CASE
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

  /// SQL: the tables of a query that compares findings with their events; `marks(of:)` are its parameters.
  private static let derivation = """
    marks AS MATERIALIZED (SELECT * FROM unnest($1::text[]::uuid[], $2::bigint[]) m (run_id, last_event)),
    events AS MATERIALIZED (\(events)), derived AS MATERIALIZED (\(derived)),
    dated AS MATERIALIZED (
      SELECT finding_id, event, as_of, event_id FROM events
      WHERE counts AND event IN ('opened', 'reopened', 'kept_open', 'closed') AND NOT is_of_forgotten_run),
    stored AS MATERIALIZED (
      SELECT DISTINCT ON (finding_id) finding_id, digest FROM events
      WHERE counts AND digest IS NOT NULL ORDER BY finding_id, event_id DESC)
    """

  private static func marks(of entries: [TrailEntry.Content]) -> [PostgresValue] {
    var marks: [String: Int64] = [:]
    for entry in entries where entry.kind == .completed || entry.kind == .found {
      if let run = entry.run, marks[run] == nil { marks[run] = entry.marks["finding_events"] ?? 0 }
    }
    return [.textArray(marks.keys.map { $0 }), .intArray(marks.values.map { $0 })]
  }

  struct Result {
    /// The first finding that differs; nil if there is none.
    var problem: String?
    /// How a finding that `mend` cannot restore comes back.
    var remedy: String?
    /// The first event that does not count.
    var uncounted: String?
    var findings: Int64
  }

  static func compare(
    by entries: [TrailEntry.Content], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Result {
    let row = try connection.execute(
      """
      WITH \(derivation),
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
      SELECT first.finding_id, (SELECT min(event_id) FROM events WHERE NOT counts),
        (SELECT count(*) FROM night_audit.findings),
        CASE (SELECT e.event FROM dated e WHERE e.finding_id = first.finding_id ORDER BY e.event_id DESC LIMIT 1)
          WHEN 'closed' THEN (
            SELECT e.as_of FROM dated e WHERE e.finding_id = first.finding_id AND e.event <> 'closed'
            ORDER BY e.event_id DESC LIMIT 1)
          ELSE (SELECT max(as_of) FROM night_audit.findings_met) END
      FROM (SELECT min(finding_id) AS finding_id FROM odd) first
      """, marks(of: entries)
    ).single()
    // The last night that met it. The newest one has met all findings that are open.
    let night = try row.optionalTimestamp(3).map { Instant(microseconds: $0).text }
    return Result(
      problem: try row.optionalText(0).map {
        """
        finding \($0) differs from its events: its status, owner, remark, due day, dates, severity, money or texts were \
        changed by hand, or its row was removed; to mend it: night-audit rebuild --write
        """
      },
      remedy: try row.optionalText(0).map {
        """
        finding \($0) cannot be restored from its events alone: make \
        \(night.map { "that night again: night-audit run --as-of \($0)" } ?? "the next night"), then night-audit \
        rebuild --write
        """
      },
      uncounted: try row.optionalInt64(1).map {
        "event \($0) of finding_events does not count, because no run recorded it"
      }, findings: try row.int64(2))
  }

  /// Gives findings the decisions and dates that follow from their events.
  ///
  /// Removes a finding that no run has opened, and a closed one with other texts than a run recorded: the night that
  /// reported it adds it again.
  static func mend(
    by entries: [TrailEntry.Content], on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try Trail.lockDecisions(on: connection)
    try ForgottenRun.recordEvents(ofRuns: "r.publication = 'forgotten'", on: connection)
    try connection.executeScript(
      """
      CREATE TEMPORARY TABLE finding_states (finding_id text COLLATE "C" PRIMARY KEY, owner text, remark text, due date,
        acceptance text, status text, first_seen timestamptz, opened_at timestamptz, closed_at timestamptz,
        opened timestamptz[], closed timestamptz[], digest text) ON COMMIT DROP
      """)
    // An undone run that had opened a finding removed it with its decisions, so only later events count.
    try connection.execute(
      """
      INSERT INTO pg_temp.finding_states
      WITH \(derivation), dates AS (
        SELECT finding_id, min(event_id) FILTER (WHERE event = 'opened') AS first_event,
          min(as_of) FILTER (WHERE event = 'opened') AS first_seen,
          max(as_of) FILTER (WHERE event IN ('opened', 'reopened')) AS opened_at,
          (array_agg(CASE event WHEN 'closed' THEN as_of END ORDER BY event_id DESC))[1] AS closed_at,
          array_agg(as_of) FILTER (WHERE event = 'opened') AS opened,
          array_agg(as_of) FILTER (WHERE event = 'closed') AS closed
        FROM dated GROUP BY finding_id)
      SELECT DISTINCT ON (finding_id) finding_id, d.owner, d.remark, d.due::date, d.acceptance, d.status, t.first_seen,
        t.opened_at, t.closed_at, t.opened, coalesce(t.closed, '{}'), s.digest
      FROM dates t JOIN derived d USING (finding_id) LEFT JOIN stored s USING (finding_id)
      WHERE d.event_id < t.first_event ORDER BY finding_id, d.event_id DESC
      """, marks(of: entries))
    // The events of a run without an entry are not known to be forged.
    try connection.execute(
      """
      DELETE FROM night_audit.findings f
      WHERE NOT EXISTS (SELECT FROM pg_temp.finding_states s WHERE s.finding_id = f.finding_id)
        AND NOT EXISTS (
          SELECT FROM night_audit.finding_events e JOIN night_audit.runs r USING (run_id)
          WHERE e.finding_id = f.finding_id AND e.event = 'opened' AND r.publication IS DISTINCT FROM 'forgotten'
            AND r.run_id <> ALL ($1::text[]::uuid[]))
      """, [marks(of: entries)[0]])
    try connection.executeScript(
      """
      DELETE FROM night_audit.findings f USING pg_temp.finding_states s
      WHERE s.finding_id = f.finding_id AND f.closed_at IS NOT NULL AND s.digest <> \(digest("f"));
      UPDATE night_audit.findings f SET owner = n.owner, remark = n.remark, due = n.due, acceptance = n.acceptance,
        status = n.status, first_seen = n.first_seen, opened_at = n.opened_at, closed_at = n.closed_at
      FROM (
        SELECT s.finding_id, s.owner, s.remark, s.due, s.acceptance, s.status,
          CASE WHEN f.first_seen = ANY (s.opened) THEN f.first_seen ELSE s.first_seen END AS first_seen,
          CASE WHEN f.first_seen = ANY (s.opened) THEN f.opened_at ELSE s.opened_at END AS opened_at,
          CASE WHEN f.closed_at IS NULL OR f.closed_at = ANY (s.closed) THEN f.closed_at ELSE s.closed_at END
            AS closed_at
        FROM pg_temp.finding_states s JOIN night_audit.findings f USING (finding_id)) n
      WHERE n.finding_id = f.finding_id
        AND (f.owner, f.remark, f.due, f.acceptance, f.status, f.first_seen, f.opened_at, f.closed_at)
          IS DISTINCT FROM (n.owner, n.remark, n.due, n.acceptance, n.status, n.first_seen, n.opened_at, n.closed_at)
      """)
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
