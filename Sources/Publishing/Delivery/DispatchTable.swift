import AuditStore
import Postgres

/// `night_audit.dispatches`: the reports that are owed to targets.
package struct DispatchTable {
  package struct Owed: Sendable {
    var id: Int64
    var target: String
    var directory: String
  }

  /// Records a report as owed, and withdraws older ones of its folder, in the run's own transaction.
  package static func owe(
    _ targets: [String], directory: String, runId: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute(
      InterNightState.endingDelivery(
        "state = 'withdrawn', problem = 'made again by a later run'", where: "directory = $1 AND state = 'owed'"),
      [.text(directory)])
    try connection.execute(
      """
      INSERT INTO night_audit.dispatches (run_id, target, directory)
      SELECT $1::uuid, target, $3 FROM unnest($2::text[]) WITH ORDINALITY AS t (target, place) ORDER BY place
      """, [.text(runId), .textArray(targets), .text(directory)])
  }

  static func owed(runId: String, _ session: PostgresSession) async throws(PostgresError) -> [Owed] {
    let rows = try await session.execute(
      """
      SELECT dispatch_id, target, directory FROM night_audit.dispatches WHERE state = 'owed'
      -- A delivery that was refused so often may never be accepted, so it comes after the others.
      ORDER BY run_id <> $1::uuid, attempts >= 9, dispatch_id
      """, [.text(runId)])
    return try rows.map { row throws(PostgresError) in
      Owed(id: try row.int64(0), target: try row.text(1), directory: try row.text(2))
    }
  }

  package static func owedDirectories(_ session: PostgresSession) async throws(PostgresError) -> Set<String> {
    let rows = try await session.execute("SELECT DISTINCT directory FROM night_audit.dispatches WHERE state = 'owed'")
    return Set(try rows.texts())
  }

  static func lastContent(_ owed: Owed, _ session: PostgresSession) async throws(PostgresError) -> String? {
    let rows = try await session.execute(
      """
      SELECT content FROM night_audit.dispatches
      WHERE directory = $1 AND target = $2 AND state = 'delivered' ORDER BY dispatch_id DESC LIMIT 1
      """, [.text(owed.directory), .text(owed.target)])
    for row in rows { return try row.optionalText(0) }
    return nil
  }

  package static func recordDelivery(
    _ owed: Owed, content: String, attempts: Int, _ session: PostgresSession
  ) async throws(PostgresError) {
    try await session.execute(
      InterNightState.endingDelivery(
        "state = 'delivered', content = $2, attempts = attempts + $3::int, problem = NULL", where: "dispatch_id = $1"),
      [.int(owed.id), .text(content), .int(Int64(attempts))])
  }

  package static func note(
    _ owed: Owed, problem: String, attempts: Int, _ session: PostgresSession
  ) async throws(PostgresError) {
    try await session.execute(
      "UPDATE night_audit.dispatches SET attempts = attempts + $3::int, problem = $2 WHERE dispatch_id = $1",
      [.int(owed.id), .text(problem), .int(Int64(attempts))])
  }

  static func withdraw(_ owed: Owed, problem: String, _ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      InterNightState.endingDelivery(
        "state = 'withdrawn', problem = $2", where: "dispatch_id = $1"), [.int(owed.id), .text(problem)])
  }
}
