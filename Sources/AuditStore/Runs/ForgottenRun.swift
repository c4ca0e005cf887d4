import Postgres
import Reconciliation

/// Undoes a run with a wrong as-of: its effects on findings, comparisons and answer times. Evidence stays, with a
/// corrected as-of when read. The clocks must be right by then.
package enum ForgottenRun {
  package struct Summary: Hashable, Sendable, Encodable {
    package var reopened: Int
    package var removed: Int
    package var closedAgain: Int
    package var directory: String?
    /// Its business day, if the run had replaced an earlier report: no report covers that day now.
    package var uncovered: [String]
  }

  /// Tables with a run's rows for later nights.
  private static let tables = [
    "order_nights", "finding_nights", "findings_met", "run_findings", "run_kinds", "run_totals", "reported_days",
    "journal_entries", "refund_nights",
  ]

  /// Removes rows that forgotten runs have left, because a run can be marked as forgotten without being taken back.
  static func removeRows(on connection: borrowing BlockingConnection) throws(PostgresError) {
    for table in tables {
      try connection.execute(
        """
        DELETE FROM night_audit.\(table) WHERE run_id IN (
          SELECT run_id FROM night_audit.runs WHERE publication = 'forgotten')
        """)
    }
  }

  /// The newest run that determined open findings after this one; nil if none depends on it. The as-of may be the same.
  package static func newest(
    after runId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> String? {
    let rows = try connection.execute(
      """
      WITH met AS (
        SELECT r.run_id, r.as_of, r.started_at FROM night_audit.findings_met JOIN night_audit.runs r USING (run_id))
      SELECT b.run_id::text FROM met m JOIN met b ON (b.as_of, b.started_at) > (m.as_of, m.started_at)
      WHERE m.run_id = $1::uuid ORDER BY b.as_of DESC, b.started_at DESC LIMIT 1
      """, [.text(runId)])
    return try rows.first.map { row throws(PostgresError) in try row.text(0) }
  }

  /// Runs in the caller's transaction, under the run's lock.
  package static func forget(
    runId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Summary {
    let run: [PostgresValue] = [.text(runId)]
    try Trail.lockDecisions(on: connection)
    let reopened = try connection.execute(
      """
      UPDATE night_audit.findings f SET closed_at = NULL FROM night_audit.finding_events e, night_audit.runs r
      WHERE r.run_id = $1::uuid AND e.run_id = r.run_id AND e.event = 'closed' AND e.finding_id = f.finding_id
        AND f.closed_at = r.as_of RETURNING 1
      """, run)
    // A finding that another run also opened first gets that run's dates.
    try connection.execute(
      """
      UPDATE night_audit.findings f SET first_seen = own.as_of,
        opened_at = CASE WHEN f.opened_at = r.as_of THEN own.as_of ELSE f.opened_at END
      FROM night_audit.finding_events e JOIN night_audit.runs r ON r.run_id = e.run_id
      CROSS JOIN LATERAL (
        SELECT min(o.as_of) AS as_of FROM night_audit.finding_events o JOIN night_audit.runs b ON b.run_id = o.run_id
        WHERE o.finding_id = e.finding_id AND o.event = 'opened' AND o.as_of > r.as_of
          AND b.publication IS DISTINCT FROM 'forgotten') own
      WHERE r.run_id = $1::uuid AND e.event = 'opened' AND e.finding_id = f.finding_id AND f.first_seen = r.as_of
        AND own.as_of IS NOT NULL
      """, run)
    let removed = try connection.execute(
      """
      DELETE FROM night_audit.findings f USING night_audit.finding_events e, night_audit.runs r
      WHERE r.run_id = $1::uuid AND e.run_id = r.run_id AND e.event = 'opened' AND e.finding_id = f.finding_id
        AND f.first_seen = r.as_of RETURNING 1
      """, run)
    let closedAgain = try connection.execute(
      """
      UPDATE night_audit.findings f SET closed_at = before.as_of, opened_at = least(f.opened_at, before.as_of)
      FROM night_audit.finding_events e JOIN night_audit.runs r ON r.run_id = e.run_id
      CROSS JOIN LATERAL (
        SELECT as_of FROM night_audit.finding_events b
        WHERE b.finding_id = e.finding_id AND b.event = 'closed' AND b.event_id < e.event_id
        ORDER BY b.event_id DESC LIMIT 1) before
      WHERE r.run_id = $1::uuid AND e.finding_id = f.finding_id AND f.closed_at IS NULL
        AND (e.event = 'reopened' AND f.opened_at = r.as_of OR e.event = 'kept_open')
      RETURNING 1
      """, run)
    try connection.execute(
      """
      UPDATE night_audit.findings f SET last_seen = greatest(f.opened_at, before.as_of)
      FROM night_audit.runs r LEFT JOIN LATERAL (
        SELECT max(as_of) AS as_of FROM night_audit.findings_met b
        WHERE b.run_id <> r.run_id AND b.as_of < r.as_of) before ON true
      WHERE r.run_id = $1::uuid AND f.last_seen = r.as_of
      """, run)
    try recordEvents(ofRuns: "r.run_id = $1::uuid", run, on: connection)
    for table in tables {
      try connection.execute("DELETE FROM night_audit.\(table) WHERE run_id = $1::uuid", run)
    }
    try connection.execute(
      "INSERT INTO night_audit.run_events (run_id, event, actor) VALUES ($1::uuid, 'forgotten', 'night-audit')", run)
    // Runs note accusations again from the next as-of on, which may be earlier than that of this run.
    try connection.execute(
      """
      DELETE FROM night_audit.asking_state s USING night_audit.runs r
      WHERE r.run_id = $1::uuid AND s.key = 'accusations' AND \(InterNightState.isNumber("s.value"))
        AND s.value::numeric >= extract(epoch FROM r.as_of) * 1000000
      """, run)
    try correctDates(runId, connection)
    let directory = try connection.execute(
      """
      SELECT directory, night_audit.write_run(run_id,
        jsonb_build_object('publication', 'forgotten', 'complete', NULL)) FROM night_audit.runs WHERE run_id = $1::uuid
      """, run
    ).single().optionalText(0)
    try connection.execute(
      InterNightState.endingDelivery(
        "state = 'withdrawn', problem = 'its run was forgotten'", where: "run_id = $1::uuid AND state = 'owed'"), run)
    let uncovered = try connection.execute(
      """
      SELECT DISTINCT r.period_until::text FROM night_audit.runs b JOIN night_audit.runs r USING (directory)
      WHERE b.run_id = $1::uuid AND r.is_nightly AND r.complete IS NOT NULL
        AND \(PublishedReport.isGone("r", from: "directory"))
      """, run
    ).texts()
    return Summary(
      reopened: reopened.count, removed: removed.count, closedAgain: closedAgain.count, directory: directory,
      uncovered: uncovered)
  }

  /// Records in the history of findings that these runs `r` are forgotten. This explains a removed finding, and its
  /// decisions do not count for the finding of a later night.
  static func recordEvents(
    ofRuns condition: String, _ parameters: [PostgresValue] = [], on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
      SELECT DISTINCT e.finding_id, e.as_of, e.run_id, 'forgotten'
      FROM night_audit.finding_events e JOIN night_audit.runs r ON r.run_id = e.run_id AND r.as_of = e.as_of
      WHERE \(condition) AND e.event IN ('opened', 'closed', 'reopened', 'kept_open') AND NOT EXISTS (
        SELECT FROM night_audit.finding_events f
        WHERE f.run_id = e.run_id AND f.finding_id = e.finding_id AND f.event = 'forgotten')
      """, parameters)
  }

  /// Columns that runs fill with their own times. Dates of Apple or the shop stay.
  private static let timesOfRuns = [
    "receipt_checks": [
      "last_attempt", "due_from", "answered_at", "known_since", "outcome_since", "unanswered_since", "critical_since",
      "moved_since",
    ],
    "sweeps": ["swept_until", "last_attempt"],
    "histories": ["read_at", "last_attempt", "passed_over_at", "unanswered_since"], "transactions": ["checked_at"],
    "disbelieved_notifications": ["as_of", "passed_over_at"], "sweep_gaps": ["as_of"],
  ]

  /// SQL for when a run ran: by the server's clock, at the latest when it was forgotten. If both clocks were wrong, a
  /// run in the future starts after its as-of like any other.
  package static func ran(_ run: String) -> String {
    """
    least(\(run).started_at, (SELECT max(o.recorded_at) FROM night_audit.run_events o
      WHERE o.run_id = \(run).run_id AND o.event = 'forgotten'))
    """
  }

  /// Corrects times in the future, because answers would seem fresh until then and nothing would be due.
  private static func correctDates(_ runId: String, _ connection: borrowing BlockingConnection) throws(PostgresError) {
    let time = try connection.execute(
      "SELECT r.as_of, \(ran("r")) FROM night_audit.runs r WHERE r.run_id = $1::uuid", [.text(runId)]
    ).single()
    let (asOf, began) = (try time.timestamp(0), try time.timestamp(1))
    if asOf <= began { return }
    for (table, columns) in timesOfRuns.sorted(by: { $0.key < $1.key }) {
      let shifted = columns.map { "\($0) = CASE WHEN t.\($0) >= $1 THEN t.\($0) - ($1 - $2) ELSE t.\($0) END" }
      let touched = columns.map { "t.\($0) >= $1" }
      try connection.execute(
        """
        UPDATE night_audit.\(table) t SET \(shifted.joined(separator: ", ")) WHERE \(touched.joined(separator: " OR "))
        """, [.timestamp(asOf), .timestamp(began)])
    }
    try InterNightState.noteChanged(on: connection)
    // Everything is read again, because rows that arrived in the skipped time were missed.
    try connection.execute(
      """
      DELETE FROM night_audit.asking_state
      WHERE CASE WHEN key IN ('receipts', 'orders', 'all') AND \(InterNightState.isNumber("value"))
        THEN value::bigint >= $1 ELSE false END
      """, [.int(asOf)])
  }

  /// SQL for a table of Apple's answers with corrected as-ofs. Forgotten runs in the future count with the time they
  /// ran. Stored rows do not change. `columns` must not include `as_of`; `condition` is on alias `t`.
  package static func tableWithCorrectedAsOf(_ table: String, _ columns: [String], where condition: String = "true")
    -> String
  {
    let names = columns.map { "t.\($0)" }.joined(separator: ", ")
    return """
      (SELECT \(names), coalesce((SELECT least(r.as_of, \(ran("r"))) FROM night_audit.runs r
        WHERE r.run_id = t.run_id AND r.publication = 'forgotten' AND r.as_of = t.as_of),
        t.as_of) AS as_of FROM night_audit.\(table) t WHERE \(condition))
      """
  }
}
