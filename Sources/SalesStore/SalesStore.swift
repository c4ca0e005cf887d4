import Postgres
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
    try SalesExamination(schema: settings.salesSchema).require(connection)
    return connection
  }

  /// Runs `body`, which reads a snapshot, and once more when a standby has cancelled the snapshot. `body` must begin with
  /// new connections and forget what it had read.
  package static func startingOverOnce<R>(_ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as PostgresError where error.isSnapshotCancelled { return try body() }
  }
}
