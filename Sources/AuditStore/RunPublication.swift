import Postgres
import Reconciliation

/// What the database says about the folder of a run: never more than is so.
///
/// A run is committed as `publishing`, with the digest of its report, just before the folder appears, and becomes
/// `published`, and complete or not, when it is there. What a kill leaves in between the next run settles.
package struct RunPublication: Sendable {
  package var runId: String
  package var asOf: Instant
  package var directory: String
  /// The night's business day; nil for a folder that is no night's.
  package var night: String?
  /// SHA-256 of the report's `SHA256SUMS`.
  package var content: String
  package var host: String

  /// Those that nobody knows of whether their folder has appeared.
  package static func unsettled(_ session: PostgresSession) async throws(PostgresError) -> [RunPublication] {
    let rows = try await session.execute(
      """
      SELECT run_id::text, as_of, directory, CASE WHEN is_nightly THEN period_until::text END, content, host
      FROM night_audit.runs WHERE publication = 'publishing' ORDER BY as_of, started_at
      """)
    var found: [RunPublication] = []
    for row in rows {
      found.append(
        RunPublication(
          runId: try row.text(0), asOf: Instant(microseconds: try row.timestamp(1)), directory: try row.text(2),
          night: try row.optionalText(3), content: try row.text(4), host: try row.text(5)))
    }
    return found
  }

  /// The folder is there.
  package static let publishedStatement = """
    SELECT night_audit.write_run(run_id, jsonb_build_object('publication', 'published',
      'complete', incomplete_reasons = '{}', 'directory', $2::text,
      'finished_at', coalesce(finished_at, clock_timestamp())))
    FROM night_audit.runs WHERE run_id = $1::uuid AND publication = 'publishing'
    """

  /// The folder is there.
  ///
  /// - Parameter directory: its path, wherever one looks from.
  package func settle(publishedAs directory: String, _ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(RunPublication.publishedStatement, [.text(runId), .text(directory)])
    // What is owed of it lies where it lies.
    try await session.execute(
      "UPDATE night_audit.dispatches SET directory = $2 WHERE run_id = $1::uuid AND state = 'owed'",
      [.text(runId), .text(directory)])
  }

  /// The folder has never appeared, and never will.
  package func settleAsNotPublished(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      """
      SELECT night_audit.write_run(run_id, jsonb_build_object('publication', 'not_published',
        'finished_at', coalesce(finished_at, clock_timestamp())))
      FROM night_audit.runs WHERE run_id = $1::uuid AND publication = 'publishing'
      """, [.text(runId)])
  }
}
