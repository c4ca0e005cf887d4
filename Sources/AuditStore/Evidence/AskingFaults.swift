import Postgres
import Reconciliation

/// The table `asking_faults`: faults of the configuration or of all of Apple's answers, by as-of and app.
package enum AskingFaults {
  /// Stores the faults of a run. If `isWhole`, all due checks were asked, so earlier faults of the as-of are resolved.
  package static func save(
    _ faults: [String: String], isWhole: Bool, asOf: Instant, runId: String, on connection: borrowing BlockingConnection
  ) throws {
    let instant = PostgresValue.timestamp(asOf.microseconds)
    let apps = faults.sorted { $0.key < $1.key }
    try connection.transaction { connection in
      var changes = Int64(apps.count)
      if isWhole {
        let removed = try connection.execute("DELETE FROM night_audit.asking_faults WHERE as_of = $1", [instant])
        changes += Int64(removed.affectedRows)
      }
      if changes == 0 { return }
      try connection.execute(
        """
        INSERT INTO night_audit.asking_faults (as_of, app, remedy) SELECT $1, * FROM unnest($2::text[], $3::text[])
        ON CONFLICT (as_of, app) DO UPDATE SET remedy = excluded.remedy
        """, [instant, .textArray(apps.map(\.key)), .textArray(apps.map(\.value))])
      try InterNightState.note("faults", "\(asOf.microseconds)", runId: runId, asOf: asOf, on: connection)
    }
  }

  package static func read(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: String] {
    let rows = try connection.execute(
      "SELECT app, remedy FROM night_audit.asking_faults WHERE as_of = $1", [.timestamp(asOf.microseconds)])
    var faults: [String: String] = [:]
    for row in rows { faults[try row.text(0)] = try row.text(1) }
    return faults
  }
}
