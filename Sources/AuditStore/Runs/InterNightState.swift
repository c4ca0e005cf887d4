import Postgres

/// State between nights that no run left: cursors later than what was read, reports that no run settled.
///
/// `answers` and `run_events`, which are only appended to, record what was read and settled.
package struct InterNightState {
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// SQL: the instant up to which a run read the subject. Answers of released months are not kept.
  private static func readUntil(_ kind: String, _ subject: String) -> String {
    """
    greatest(
      (SELECT max(a.read_until) FROM night_audit.answers a WHERE a.subject_kind = '\(kind)' AND a.subject_id = \(subject)),
      (SELECT max((t.content::jsonb ->> 'before')::timestamp AT TIME ZONE 'UTC') FROM night_audit.trail t
        WHERE t.content LIKE '%"released"%'), '-infinity')
    """
  }
  private static let isUnread = "swept_until > \(readUntil("sweep", "bundle_id || '/' || notification_type"))"
  private static let isUnreadCustomer = "read_at > \(readUntil("history", "bundle_id || '/' || transaction_id"))"
  /// The next nights would not read such a history, because it looks as if a later one had.
  private static let isPutOff = "last_attempt > (SELECT coalesce(max(r.as_of), '-infinity') FROM night_audit.runs r)"
  private static let isUnsettled = """
    (state <> 'owed' AND NOT EXISTS (SELECT FROM night_audit.run_events e
      WHERE e.run_id = d.run_id AND e.event = d.state AND e.detail = d.target))
    """

  /// SQL: settles owed reports, and records that.
  package static func settling(_ changes: String, where condition: String) -> String {
    """
    WITH settled AS (
      UPDATE night_audit.dispatches SET \(changes), settled_at = clock_timestamp() WHERE \(condition)
      RETURNING run_id, state, target)
    INSERT INTO night_audit.run_events (run_id, event, actor, detail)
    SELECT run_id, state, 'night-audit', target FROM settled
    """
  }

  package static func problems(on connection: borrowing BlockingConnection) throws(PostgresError) -> [Problem] {
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
      SELECT format('the report of run %s for %s is %s, and no run recorded that; it may not have been sent', run_id, target, state)
      FROM night_audit.dispatches d WHERE \(isUnsettled)
      ORDER BY 1
      """
    ).map { row throws(PostgresError) in Problem(description: try row.text(0)) }
  }

  /// Resets these cursors and deliveries, so that unread history is read and unsent reports are sent.
  package static func mend(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.executeScript(
      """
      DELETE FROM night_audit.sweeps WHERE \(isUnread);
      DELETE FROM night_audit.histories WHERE \(isUnreadCustomer) OR \(isPutOff);
      UPDATE night_audit.dispatches d SET state = 'owed', problem = NULL, content = NULL, settled_at = NULL WHERE \(isUnsettled)
      """)
  }
}
