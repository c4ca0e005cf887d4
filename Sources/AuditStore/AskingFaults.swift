import Postgres
import Reconciliation

/// `night_audit.asking_faults`: what of our own configuration, or of Apple's answers as a whole, was wrong in the runs of an
/// as-of, by app. An audit of that as-of that asks nobody says so, too.
package enum AskingFaults {
  /// Stores what asking has come to.
  ///
  /// - Parameter isWhole: whether every app was asked about all that was due: then what is not among the faults was mended.
  package static func save(
    _ faults: [String: String], isWhole: Bool, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws {
    let instant = PostgresValue.timestamp(asOf.microseconds)
    let apps = faults.sorted { $0.key < $1.key }
    try connection.transaction { connection in
      if isWhole { try connection.execute("DELETE FROM night_audit.asking_faults WHERE as_of = $1", [instant]) }
      try connection.execute(
        """
        INSERT INTO night_audit.asking_faults (as_of, app, remedy) SELECT $1, * FROM unnest($2::text[], $3::text[])
        ON CONFLICT (as_of, app) DO UPDATE SET remedy = excluded.remedy
        """, [instant, .textArray(apps.map(\.key)), .textArray(apps.map(\.value))])
    }
  }

  /// What is stored of an as-of, with the remedies, by app.
  package static func read(
    asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: String] {
    var faults: [String: String] = [:]
    for row in try connection.execute(
      "SELECT app, remedy FROM night_audit.asking_faults WHERE as_of = $1", [.timestamp(asOf.microseconds)])
    {
      faults[try row.text(0)] = try row.text(1)
    }
    return faults
  }
}
