import Postgres

/// State between nights that no run can have left: future cursors, reports settled without a reason.
package struct SteeringState {
  package struct Problem: Hashable, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// The latest instant that history can have been read to. A re-check has no row in `runs` and reads up to now.
  private static let newest = """
    greatest(clock_timestamp(), (
      SELECT max(CASE WHEN publication = 'forgotten' THEN least(as_of, started_at) ELSE as_of END) FROM night_audit.runs))
    """
  private static let isUnread = "swept_until > \(newest)"
  private static let isUnreadCustomer = "read_at > \(newest)"
  private static let isUnsettled = """
    (state = 'delivered' AND (content IS NULL OR settled_at IS NULL)
      OR state = 'withdrawn' AND (problem IS NULL OR settled_at IS NULL)
      OR state = 'withdrawn' AND problem = 'its run was forgotten' AND EXISTS (
        SELECT FROM night_audit.runs r WHERE r.run_id = d.run_id AND r.publication IS DISTINCT FROM 'forgotten'))
    """

  package static func problems(on connection: borrowing BlockingConnection) throws(PostgresError) -> [Problem] {
    try connection.execute(
      """
      SELECT format('the cursor of %s of %s is in the future; notifications before it may be unread',
        notification_type, bundle_id)
      FROM night_audit.sweeps WHERE \(isUnread)
      UNION ALL
      SELECT format('the history of transaction %s of %s is said to be read in the future',
        transaction_id, bundle_id)
      FROM night_audit.histories WHERE \(isUnreadCustomer)
      UNION ALL
      SELECT format('the report of run %s for %s is %s without what settles it; it may not have been sent', run_id, target, state)
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
      DELETE FROM night_audit.histories WHERE \(isUnreadCustomer);
      UPDATE night_audit.dispatches d SET state = 'owed', problem = NULL, content = NULL, settled_at = NULL WHERE \(isUnsettled)
      """)
  }
}
