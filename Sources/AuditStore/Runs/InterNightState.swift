import Postgres
import Reconciliation

/// State between nights that no run left: cursors later than what was read, windows, pages and gaps that were changed,
/// deliveries that no run ended.
/// `answers` and `run_events`, which are only appended to, record what was read, left to read, and delivered.
package struct InterNightState {
  /// SQL: the first instant after the released months of a table; null if none was released.
  package static func released(_ table: String) -> String {
    """
    (SELECT max((t.content::jsonb ->> 'before')::timestamp) AT TIME ZONE 'UTC' FROM night_audit.trail t
      WHERE t.content LIKE '%"kind": "released"%' AND t.content::jsonb ->> 'kind' = 'released'
        AND t.content::jsonb ->> 'table' = '\(table)')
    """
  }

  /// SQL: the as-of of a run, at most a day after its begin by the server's clock. No run makes a report of the future.
  private static func credibleAsOf(_ run: String) -> String {
    "least(\(run).as_of, \(run).started_at + interval '1 day')"
  }

  /// SQL: the run `run` has an as-of that no run can have.
  static func isOfTheFuture(_ run: String) -> String {
    "\(run).as_of > \(credibleAsOf(run)) AND \(run).publication IS DISTINCT FROM 'forgotten'"
  }

  /// SQL: the newest time that a run can have written: the newest as-of, or now.
  package static let newestTime = """
    greatest((SELECT max(\(credibleAsOf("r"))) FROM night_audit.runs r WHERE r.publication IS DISTINCT FROM 'forgotten'),
      clock_timestamp())
    """

  /// SQL: no run read the subject up to `instant`. A re-check has no row in `runs`, and reads up to its as-of. A run
  /// may finish the window of an earlier one that had a later as-of. Answers of released months are not kept.
  private static func isUnread(_ instant: String, _ kind: String, _ subject: String) -> String {
    """
    (\(instant) > coalesce(\(released("answers")), '-infinity') AND NOT EXISTS (
      SELECT FROM night_audit.answers a
      WHERE a.subject_kind = '\(kind)' AND a.subject_id = \(subject) AND a.read_until >= \(instant)
        AND a.read_until <= coalesce(
          (SELECT max(\(credibleAsOf("r"))) FROM night_audit.runs k
            JOIN night_audit.runs r ON r.started_at <= k.started_at
            WHERE k.run_id = a.run_id),
          least(a.as_of, a.recorded_at + interval '1 day'))))
    """
  }
  private static let sweep = "bundle_id || '/' || notification_type"
  private static let history = "bundle_id || '/' || transaction_id"
  private static let isUnread = isUnread("swept_until", "sweep", sweep)
  private static let isUnreadCustomer = """
    (\(isUnread("read_at", "history", history)) OR reason IS NULL AND (read_at IS NULL OR read_at < last_attempt))
    """
  /// The next nights would not read such a history, because it looks as if a later one had.
  private static let isPutOff = "last_attempt > \(newestTime)"
  /// SQL: the text is a whole number, and so many microseconds since 1970 are a `timestamptz`.
  package static func isNumber(_ text: String) -> String { "\(text) ~ '^-?[0-9]{1,17}$'" }

  /// Rows of the shop before such an instant would not be read, and open accusations not noted.
  private static let isAhead = """
    (key IN ('receipts', 'orders', 'all', 'accusations') AND CASE WHEN \(isNumber("value"))
      THEN value::bigint > extract(epoch FROM \(newestTime)) * 1000000 ELSE true END)
    """

  /// SQL: by subject, the progress that the last transaction left.
  private static let noted = """
    SELECT DISTINCT ON (a.subject_kind, a.subject_id) a.subject_kind, a.subject_id, a.progress, a.run_id, a.as_of
    FROM night_audit.answers a
    WHERE a.subject_kind IN ('sweep', 'history', 'faults') AND a.progress IS NOT NULL
    ORDER BY a.subject_kind, a.subject_id, a.answer_id DESC
    """

  /// SQL: subjects whose progress no transaction of a run left.
  private static let altered = """
    WITH noted AS MATERIALIZED (\(noted))
    SELECT n.subject_kind, n.subject_id FROM noted n
    WHERE n.progress <> night_audit.progress_digest(n.subject_kind, n.subject_id)
    UNION ALL
    SELECT 'sweep', \(sweep) FROM night_audit.sweeps
    WHERE last_attempt >= coalesce(\(released("answers")), '-infinity')
      AND NOT EXISTS (SELECT FROM noted n WHERE n.subject_kind = 'sweep' AND n.subject_id = \(sweep))
    UNION ALL
    SELECT 'history', \(history) FROM night_audit.histories
    WHERE num_nonnulls(revision, read_at, passed_over_at) > 0
      AND coalesce(read_at, last_attempt) >= coalesce(\(released("answers")), '-infinity')
      AND NOT EXISTS (SELECT FROM noted n WHERE n.subject_kind = 'history' AND n.subject_id = \(history))
    """

  /// Records the progress that a transaction leaves. It must be the last statement about the subject.
  package static func note(
    _ kind: String, _ subject: String, runId: String, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts, progress)
      VALUES ($1::uuid, $2, $3, $4, 'night-audit', 'noted', 0, night_audit.progress_digest($3, $4))
      """, [.text(runId), .timestamp(asOf.microseconds), .text(kind), .text(subject)])
  }

  /// Records the progress of all subjects whose progress is another than the recorded one.
  static func noteChanged(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      """
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts, progress)
      SELECT n.run_id, n.as_of, n.subject_kind, n.subject_id, 'night-audit', 'noted', 0, p.digest
      FROM (\(noted)) n CROSS JOIN LATERAL (
        SELECT night_audit.progress_digest(n.subject_kind, n.subject_id) AS digest) p
      WHERE n.progress <> p.digest
      """)
  }

  private static let isUnrecorded = """
    (state <> 'owed' AND NOT EXISTS (SELECT FROM night_audit.run_events e
      WHERE e.run_id = d.run_id AND e.event = d.state AND e.detail = d.target))
    """

  /// SQL: ends deliveries, and records that.
  package static func endingDelivery(_ changes: String, where condition: String) -> String {
    """
    WITH ended AS (
      UPDATE night_audit.dispatches SET \(changes), ended_at = clock_timestamp() WHERE \(condition)
      RETURNING run_id, state, target)
    INSERT INTO night_audit.run_events (run_id, event, actor, detail)
    SELECT run_id, state, 'night-audit', target FROM ended
    """
  }

  package static func problems(on connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    try connection.execute(
      """
      SELECT format('the cursor of %s of %s is later than what runs read; notifications before it may be unread',
        notification_type, bundle_id)
      FROM night_audit.sweeps WHERE \(isUnread)
      UNION ALL
      SELECT format('the history of transaction %s of %s was last read earlier than its row says',
        transaction_id, bundle_id)
      FROM night_audit.histories WHERE \(isUnreadCustomer)
      UNION ALL
      SELECT format('the history of transaction %s of %s is put off to a time later than all runs', transaction_id, bundle_id)
      FROM night_audit.histories WHERE \(isPutOff)
      UNION ALL
      SELECT CASE subject_kind
        WHEN 'sweep' THEN format('the sweep of %s of %s is not as a run left it: its window, pages, gaps or skipped \
      notifications were changed', substr(subject_id, length(split_part(subject_id, '/', 1)) + 2), split_part(subject_id, '/', 1))
        WHEN 'history' THEN format('the history of transaction %s of %s is not as a run left it; pages of it may be unread',
          split_part(subject_id, '/', 2), split_part(subject_id, '/', 1))
        ELSE format('the faults of the night of as-of %s are not as a run left them',
          CASE WHEN \(isNumber("subject_id")) THEN to_char(
            (timestamptz 'epoch' + subject_id::bigint * interval '1 microsecond') AT TIME ZONE 'UTC',
            'YYYY-MM-DD"T"HH24:MI:SS"Z"') ELSE subject_id END) END
      FROM (\(altered)) altered
      UNION ALL
      SELECT CASE key WHEN 'accusations' THEN 'the instant up to which open accusations were noted is later than all runs'
        ELSE format('the instant up to which the shop''s rows were read (%s) is later than all runs', key) END
      FROM night_audit.asking_state WHERE \(isAhead)
      UNION ALL
      SELECT format('the report of run %s for %s is %s, and no run recorded that; it may not have been sent', run_id, target, state)
      FROM night_audit.dispatches d WHERE \(isUnrecorded)
      ORDER BY 1
      """
    ).texts()
  }

  /// One sentence for each changed sweep. `mend` cannot restore its gaps, because only their digest was recorded.
  package static func lost(on connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    try connection.execute(
      """
      SELECT format('gaps and skipped notifications of the sweep of %s of %s cannot be restored: run night-audit recheck, \
      which reads the notifications of recheck.refundWindow again; earlier ones may be unread',
        substr(n.subject_id, length(split_part(n.subject_id, '/', 1)) + 2), split_part(n.subject_id, '/', 1))
      FROM (\(noted)) n
      WHERE n.subject_kind = 'sweep' AND n.progress <> night_audit.progress_digest(n.subject_kind, n.subject_id)
      ORDER BY 1
      """
    ).texts()
  }

  /// Resets these cursors and deliveries, so that unread history is read and unsent reports are sent.
  package static func mend(on connection: borrowing BlockingConnection) throws(PostgresError) {
    let rows = try connection.execute(altered)
    let altered = try rows.map { row throws(PostgresError) in (kind: try row.text(0), subject: try row.text(1)) }
    func subjects(_ kind: String) -> [PostgresValue] {
      [.textArray(altered.filter { $0.kind == kind }.map { $0.subject })]
    }
    try connection.execute("DELETE FROM night_audit.sweeps WHERE \(isUnread) OR \(sweep) = ANY ($1)", subjects("sweep"))
    try connection.execute(
      "DELETE FROM night_audit.histories WHERE \(isUnreadCustomer) OR \(isPutOff) OR \(history) = ANY ($1)",
      subjects("history"))
    try connection.executeScript(
      """
      DELETE FROM night_audit.asking_state WHERE \(isAhead);
      UPDATE night_audit.dispatches d SET state = 'owed', problem = NULL, content = NULL, ended_at = NULL WHERE \(isUnrecorded)
      """)
    try noteChanged(on: connection)
  }
}
