import AuditStore
import Postgres

struct RecordedReport: Hashable, Sendable {
  var runId: String
  var directory: String
  var isNightly: Bool
  var isShown: Bool

  static func all(on connection: borrowing BlockingConnection) throws(PostgresError) -> [RecordedReport] {
    try connection.execute(
      """
      SELECT run_id::text, directory, is_nightly, coalesce(publication IN ('published', 'held'), false)
      FROM night_audit.runs WHERE directory IS NOT NULL ORDER BY started_at DESC, run_id
      """
    ).map { row throws(PostgresError) in
      RecordedReport(
        runId: try row.text(0), directory: try row.text(1), isNightly: try row.bool(2), isShown: try row.bool(3))
    }
  }

  /// A folder elsewhere may meanwhile contain a report of `reconcile`, which the database does not record.
  var isInReports: Bool { isNightly || isStoredSeparately }

  private var isStoredSeparately: Bool {
    let parts = directory.split(separator: "/").suffix(2)
    return parts.count == 2 && (parts.first == "held" || parts.first == "ad-hoc")
  }

  /// The recorded path, and its place in a report directory that was moved; one path outside of it.
  func places(in reports: String) -> [String] {
    guard isInReports else { return [directory] }
    let parts = directory.split(separator: "/").suffix(2)
    let moved = "\(reports)/\(parts.suffix(isStoredSeparately ? 2 : 1).joined(separator: "/"))"
    return moved == directory ? [directory] : [directory, moved]
  }

  /// Entries that mark the appearance of a report. A killed run has no later one than `completed`.
  private static let appearances: Set<Trail.Kind> = [.found, .completed, .published, .held]

  /// The runs whose reports replaced that of a run, by the trail's entries, oldest first.
  static func successors(
    of runId: String, among reports: [RecordedReport], in directory: String, by trail: [TrailEntry.Content]
  ) -> Set<String> {
    var appeared: [String: Int64] = [:]
    for entry in trail where appearances.contains(entry.kind) {
      if let run = entry.run { appeared[run] = entry.entry }
    }
    guard let own = reports.first(where: { $0.runId == runId }), let since = appeared[runId] else { return [] }
    let places = own.places(in: directory)
    let later = reports.filter { other in
      appeared[other.runId, default: 0] > since && other.places(in: directory).contains { places.contains($0) }
    }
    return Set(later.map(\.runId))
  }
}
