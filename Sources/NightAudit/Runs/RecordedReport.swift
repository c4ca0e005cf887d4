import AuditStore
import Postgres

/// Where a run has put its report, as the database knows it.
struct RecordedReport: Hashable, Sendable {
  var runId: String
  var directory: String
  /// Whether it is published, or held.
  var isShown: Bool

  /// Those of all runs, the newest first.
  static func all(on connection: borrowing BlockingConnection) throws(PostgresError) -> [RecordedReport] {
    try connection.execute(
      """
      SELECT run_id::text, directory, coalesce(publication IN ('published', 'held'), false) FROM night_audit.runs
      WHERE directory IS NOT NULL ORDER BY started_at DESC, run_id
      """
    ).map { row throws(PostgresError) in
      RecordedReport(runId: try row.text(0), directory: try row.text(1), isShown: try row.bool(2))
    }
  }

  /// The entries with which a report appears. A run that was killed then has no later one than `completed`.
  private static let appearances: Set<Trail.Kind> = [.found, .completed, .published, .held]

  /// The runs whose reports have taken the place of a run's report.
  ///
  /// - Parameter trail: its entries, the first one first.
  static func successors(
    of runId: String, among reports: [RecordedReport], by trail: [TrailEntry.Content]
  ) -> Set<String> {
    var appeared: [String: Int64] = [:]
    for entry in trail where appearances.contains(entry.kind) {
      if let run = entry.run { appeared[run] = entry.entry }
    }
    guard let own = reports.first(where: { $0.runId == runId }), let since = appeared[runId] else { return [] }
    let later = reports.filter { other in
      other.directory == own.directory && appeared[other.runId, default: 0] > since
    }
    return Set(later.map(\.runId))
  }
}
