import Postgres

/// What a report's workbook is known by when it comes back.
package struct ReportMark: Hashable, Sendable {
  /// The newest of what had happened to findings when the report was made; 0: nothing.
  package var newestEvent: Int64
  /// SHA-256 of its `summary.json`; nil where none was written.
  package var summary: String?

  /// Of the report that is made from a snapshot.
  ///
  /// - Parameter connection: in that snapshot.
  package init(on connection: borrowing BlockingConnection) throws(PostgresError) {
    newestEvent = try connection.execute("SELECT coalesce(max(event_id), 0) FROM night_audit.finding_events").single()
      .int64(0)
  }
}
