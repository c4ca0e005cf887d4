import Postgres
import Reconciliation
import Run

/// The shop's store: a connection that only reads, to wherever its relations are.
///
/// It may be a hot standby, another server or another cluster than our own schema's; nothing joins the two.
package enum SalesStore {
  /// Opens a connection, without looking at the relations. Throws `PostgresError`, naming the key that says where.
  package static func open(
    _ settings: Settings, _ scope: BlockingScope, applicationName: String,
    notices: PostgresNoticeHandler? = nil
  ) throws(PostgresError) -> BlockingConnection {
    do throws(PostgresError) {
      return try scope.connect(
        settings.salesURL ?? settings.databaseURL, applicationName: applicationName, profile: .salesReader,
        notices: notices)
    } catch {
      throw error.at(settings.salesURL == nil ? "database.url" : "database.salesUrl")
    }
  }

  /// Opens a connection whose relations are what the contract says. Throws `SalesContractError`, or `PostgresError`.
  package static func connect(
    _ settings: Settings, _ scope: BlockingScope, applicationName: String,
    notices: PostgresNoticeHandler? = nil
  ) throws -> BlockingConnection {
    let connection = try open(settings, scope, applicationName: applicationName, notices: notices)
    try SalesExamination(settings).require(connection)
    return connection
  }

  /// Runs `body`, which reads a snapshot, and once more when others were in the way: a standby has cancelled the snapshot,
  /// because its primary removed rows that it needed, or somebody held a lock. `body` must begin with new connections and
  /// forget what it had read.
  ///
  /// Nor does a lost connection lose anything while `body` only reads: a standby ends those that wait in its way, and libpq
  /// cannot always tell why.
  /// - Parameter body: gets a flag, to be taken down before it writes.
  package static func startingOverOnce<R>(
    _ settings: Settings, _ scope: BlockingScope, _ body: (_ onlyReads: inout Bool) throws -> R
  ) throws -> R {
    var onlyReads = true
    do { return try body(&onlyReads) } catch let error as PostgresError
      where Failure(error).remedy == .again || onlyReads && error.isConnectionLost
    {
      try awaitReplay(settings, scope)
      return try body(&onlyReads)
    }
  }

  /// Waits until a standby has replayed what it has received, a minute at most.
  ///
  /// A standby that is behind cancels every snapshot that is in its way at once, and what cancelled the first is seldom
  /// alone: a vacuum is many records. A snapshot taken after them is in nobody's way (PostgreSQL documentation, "Handling
  /// Query Conflicts").
  private static func awaitReplay(_ settings: Settings, _ scope: BlockingScope) throws(PostgresError) {
    let connection = try open(settings, scope, applicationName: "night-audit: waiting for replay")
    // NULL for a primary, and for a standby that reads an archive.
    let received = try connection.execute("SELECT pg_last_wal_receive_lsn()::text").single().optionalText(0)
    guard let received else { return }
    for _ in 0..<600 {
      let replayed = try connection.execute("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", [.text(received)])
      if try replayed.single().bool(0) { return }
      _ = try connection.execute("SELECT pg_sleep(0.1)")
    }
  }
}
