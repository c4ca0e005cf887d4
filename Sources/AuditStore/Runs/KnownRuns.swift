import Foundation
import Postgres

/// The runs whose report folders this installation may replace or remove.
package struct KnownRuns: Hashable, Sendable {
  private var runIds: Set<String>

  package init(_ runIds: Set<String> = []) { self.runIds = runIds }
  package func contains(_ runId: String) -> Bool { runIds.contains(runId.lowercased()) }

  /// Reads the runs of this database, and runs of other databases that `--adopt` has taken over.
  package static func read(on connection: borrowing BlockingConnection) throws(PostgresError) -> KnownRuns {
    // The text comparison avoids parsing every entry of the trail.
    let rows = try connection.execute(
      """
      SELECT run_id::text FROM night_audit.runs
      UNION ALL
      SELECT jsonb_array_elements_text(content::jsonb -> 'runs') FROM night_audit.trail
      WHERE content LIKE '%"kind": "adopted"%' AND content::jsonb ->> 'kind' = 'adopted'
      """)
    return KnownRuns(Set(try rows.texts()))
  }

  /// Takes over the folders of runs of another database, and records that in the trail.
  package mutating func adopt(
    _ strangers: Set<String>, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    // Names on a report volume need not be UUIDs.
    let runs = strangers.filter { UUID(uuidString: $0) != nil }
    try connection.execute(
      "SELECT night_audit.record_adopted($1::text[]::uuid[])", [.textArray(runs.sorted().map { $0 })])
    runIds.formUnion(runs)
  }
}
