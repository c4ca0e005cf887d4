import Postgres

/// Identifies the report of a returned workbook.
package struct ReportMark: Hashable, Sendable {
  /// The newest finding event in the report; 0 if there is none.
  package var newestEvent: Int64
  /// SHA-256 of its `summary.json`; nil if none was written.
  package var summary: String?

  package init(on connection: borrowing BlockingConnection) throws(PostgresError) {
    newestEvent = try connection.execute("SELECT coalesce(max(event_id), 0) FROM night_audit.finding_events").single()
      .int64(0)
  }
}
