import Postgres
import Reconciliation
import Streams

/// The recorded state of a run's folder. A run is committed as `publishing` with its report's digest, and becomes
/// `published` once the folder is in place. After a kill in between, the next run finds out which.
package struct RunPublication: Sendable {
  package var runId: String
  package var asOf: Instant
  package var directory: String
  /// The night's business day; nil if the run is not nightly.
  package var night: String?
  package var content: String
  package var host: String

  /// Runs left in the state `publishing`.
  package static func unfinished(_ session: PostgresSession) async throws(PostgresError) -> [RunPublication] {
    let rows = try await session.execute(
      """
      SELECT run_id::text, as_of, directory, CASE WHEN is_nightly THEN period_until::text END, content, host
      FROM night_audit.runs WHERE publication = 'publishing' ORDER BY as_of, started_at
      """)
    return try rows.map { row throws(PostgresError) in
      RunPublication(
        runId: try row.text(0), asOf: try row.instant(1), directory: try row.text(2),
        night: try row.optionalText(3), content: try row.text(4), host: try row.text(5))
    }
  }

  package static let publishedStatement = """
    SELECT night_audit.write_run(run_id, jsonb_build_object('publication', 'published',
      'complete', incomplete_reasons = '{}', 'directory', $2::text,
      'finished_at', coalesce(finished_at, clock_timestamp())))
    FROM night_audit.runs WHERE run_id = $1::uuid AND publication = 'publishing'
    """

  /// Records that the folder is in place, at `directory`.
  package func record(publishedAs directory: String, _ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(RunPublication.publishedStatement, [.text(runId), .text(directory)])
    // Owed deliveries follow the folder.
    try await session.execute(
      "UPDATE night_audit.dispatches SET directory = $2 WHERE run_id = $1::uuid AND state = 'owed'",
      [.text(runId), .text(directory)])
  }

  /// Records that the folder never appeared and never will.
  package func recordAsNotPublished(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      """
      SELECT night_audit.write_run(run_id, jsonb_build_object('publication', 'not_published',
        'finished_at', coalesce(finished_at, clock_timestamp())))
      FROM night_audit.runs WHERE run_id = $1::uuid AND publication = 'publishing'
      """, [.text(runId)])
  }
}
