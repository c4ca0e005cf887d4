import Postgres

/// `night_audit.dispatches`: which report is owed to which place.
package struct DispatchTable {
  /// A report that is owed to a place.
  package struct Owed: Sendable {
    var id: Int64
    var target: String
    var directory: String
  }

  /// Notes that the report of a run is owed; part of the transaction that completes the run. What was still owed of the
  /// same folder gives way: the folder is being replaced.
  package static func owe(
    _ targets: [String], directory: String, runId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      """
      UPDATE night_audit.dispatches
      SET state = 'withdrawn', problem = 'made again by a later run', settled_at = clock_timestamp()
      WHERE directory = $1 AND state = 'owed'
      """, [.text(directory)])
    try connection.execute(
      """
      INSERT INTO night_audit.dispatches (run_id, target, directory)
      SELECT $1::uuid, target, $3 FROM unnest($2::text[]) WITH ORDINALITY AS t (target, place) ORDER BY place
      """, [.text(runId), .textArray(targets), .text(directory)])
  }

  /// All that is owed, this run's first.
  static func owed(runId: String, _ session: PostgresSession) async throws(PostgresError) -> [Owed] {
    let rows = try await session.execute(
      """
      SELECT dispatch_id, target, directory FROM night_audit.dispatches WHERE state = 'owed'
      -- What a place has refused that often may be what it never takes, and stands in nobody's way.
      ORDER BY run_id <> $1::uuid, attempts >= 9, dispatch_id
      """, [.text(runId)])
    var owed: [Owed] = []
    for row in rows {
      owed.append(Owed(id: try row.int64(0), target: try row.text(1), directory: try row.text(2)))
    }
    return owed
  }

  /// The folders that something is owed of.
  package static func owedDirectories(_ session: PostgresSession) async throws(PostgresError) -> Set<String> {
    let rows = try await session.execute("SELECT DISTINCT directory FROM night_audit.dispatches WHERE state = 'owed'")
    var directories: Set<String> = []
    for row in rows { directories.insert(try row.text(0)) }
    return directories
  }

  /// What a place has got last of a folder, by its digest; nil when it has got nothing.
  static func lastContent(_ owed: Owed, _ session: PostgresSession) async throws(PostgresError) -> String? {
    let rows = try await session.execute(
      """
      SELECT content FROM night_audit.dispatches
      WHERE directory = $1 AND target = $2 AND state = 'delivered' ORDER BY dispatch_id DESC LIMIT 1
      """, [.text(owed.directory), .text(owed.target)])
    for row in rows { return try row.optionalText(0) }
    return nil
  }

  /// It has arrived.
  package static func settle(
    _ owed: Owed, content: String, attempts: Int, _ session: PostgresSession
  ) async throws(PostgresError) {
    try await session.execute(
      """
      UPDATE night_audit.dispatches
      SET state = 'delivered', content = $2, attempts = attempts + $3::int, problem = NULL,
          settled_at = clock_timestamp()
      WHERE dispatch_id = $1
      """, [.int(owed.id), .text(content), .int(Int64(attempts))])
  }

  /// It has not arrived, and is still owed.
  package static func note(
    _ owed: Owed, problem: String, attempts: Int, _ session: PostgresSession
  ) async throws(PostgresError) {
    try await session.execute(
      "UPDATE night_audit.dispatches SET attempts = attempts + $3::int, problem = $2 WHERE dispatch_id = $1",
      [.int(owed.id), .text(problem), .int(Int64(attempts))])
  }

  /// There is nothing to send any more.
  static func withdraw(_ owed: Owed, problem: String, _ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      """
      UPDATE night_audit.dispatches SET state = 'withdrawn', problem = $2, settled_at = clock_timestamp()
      WHERE dispatch_id = $1
      """, [.int(owed.id), .text(problem)])
  }
}
