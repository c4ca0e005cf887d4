import Foundation
import Postgres
import Reconciliation
import Run
import Settings

/// Connects to the shop's database, which is only read. It may be a hot standby, another server or another cluster.
package enum SalesStore {
  /// Opens a connection without checking the relations. The error names the configuration key of the database.
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

  /// Opens a connection and checks the contract. Throws `SalesContractError` or `PostgresError`.
  package static func connect(
    _ settings: Settings, _ scope: BlockingScope, applicationName: String,
    notices: PostgresNoticeHandler? = nil
  ) throws -> BlockingConnection {
    let connection = try open(settings, scope, applicationName: applicationName, notices: notices)
    try SalesExamination(settings).require(connection)
    return connection
  }

  /// False if the encoding of the shop's database lacks a character of an ID, so that no row has it. Not for use within
  /// a transaction, which the server's refusal would abort.
  package static func canHave(
    _ ids: Identifier?..., on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Bool {
    let texts = ids.compactMap { $0?.text }.filter { text in !text.utf8.allSatisfy { $0 < 0x80 } }
    if texts.isEmpty { return true }
    do throws(PostgresError) {
      try connection.execute("SELECT $1::text[]", [.textArray(texts)])
      return true
    } catch {
      if error.sqlState == SQLState.untranslatableCharacter { return false }
      throw error
    }
  }

  /// Runs `body`, and repeats it once after a conflict with a standby's recovery or a lock. `body` must open new
  /// connections. A lost connection is repeated too while `body` only reads, because a standby also ends sessions that
  /// block its recovery.
  /// - Parameter body: receives a flag that it must set to false before it writes.
  package static func restartingOnce<R>(
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

  /// Waits until a standby has replayed the received WAL, a minute at most. A vacuum conflicts in many records, but not
  /// with a snapshot taken after them (PostgreSQL documentation, "Handling Query Conflicts").
  private static func awaitReplay(_ settings: Settings, _ scope: BlockingScope) throws(PostgresError) {
    let connection = try open(settings, scope, applicationName: "night-audit: waiting for replay")
    var position: String?
    for _ in 0..<600 {
      do throws(PostgresError) {
        if position == nil {
          position = try connection.execute("SELECT pg_last_wal_receive_lsn()::text").single().optionalText(0)
          // NULL on a primary, and on a standby that reads an archive.
          if position == nil { return }
        }
        let replayed = try connection.execute("SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", [.text(position)])
        if try replayed.single().bool(0) { return }
      } catch  where error.sqlState == SQLState.serializationFailure && error.kind == .server {
        // Recovery cancels any statement that has a snapshot, even this one.
      }
      // Here and not in the server, where a waiting statement would have a snapshot.
      Thread.sleep(forTimeInterval: 0.1)
    }
  }
}
