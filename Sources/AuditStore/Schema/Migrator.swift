import Crypto
import Foundation
import Postgres
import Run

/// Creates and upgrades the schema `night_audit`. Each migration is applied once, under a lock, and never undone.
package struct Migrator {
  package struct Migration: Sendable {
    package var version: Int
    package var name: String
    package var sql: String
  }

  /// All migrations, oldest first. A released migration never changes.
  package static let migrations = [
    Migration(version: 1, name: "schema", sql: String(decoding: PackageResources._001_schema_sql, as: UTF8.self))
  ]

  /// Creates the table of applied migrations.
  static let ledger = """
    CREATE TABLE IF NOT EXISTS night_audit.schema_migrations (
      version integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())
    """

  package static let lockKey: (Int64, Int64) = (0x6E69_6768, 0x6D69_6772)

  /// Applies missing migrations and restores changed definitions. Safe to repeat and to run concurrently. Throws 55P03
  /// (`lock_not_available`) if a table that has to change stays locked.
  package static func migrate(
    _ connection: borrowing BlockingConnection, to migrations: [Migration] = migrations
  ) throws -> [String] {
    try connection.migration(under: lockKey) { connection in
      try requireUsable(connection)
      if try !mayChange(connection, to: migrations) { return [] }
      // CREATE SCHEMA IF NOT EXISTS requires the right to create schemas even if the schema exists.
      if try connection.execute("SELECT to_regnamespace('night_audit') IS NULL").single().bool(0) {
        try connection.executeScript("CREATE SCHEMA night_audit")
      }
      try connection.executeScript(ledger)
      var applied: [String] = []
      let present = try versions(connection, migrations)
      for migration in migrations where !present.contains(migration.version) {
        try connection.executeScript(migration.sql)
        try connection.execute(
          "INSERT INTO night_audit.schema_migrations (version, name, sha256) VALUES ($1::int, $2, $3)",
          [.int(Int64(migration.version)), .text(migration.name), .text(sha256(migration.sql))])
        applied.append("\(migration.version) \(migration.name)")
      }
      let rights = String(decoding: PackageResources.rights_sql, as: UTF8.self)
      try connection.executeScript(rights)
      let restored = try SchemaDefinitions(migrations).restore(connection)
      if restored.isEmpty { return applied }
      // Recreated objects have no rights yet.
      try connection.executeScript(rights)
      return applied + restored.map { "\($0) (restored)" }
    }
  }

  /// Throws `SchemaError` if the role lacks the right and a change is needed.
  private static func mayChange(_ connection: borrowing BlockingConnection, to migrations: [Migration]) throws -> Bool {
    let row = try connection.execute(
      """
      SELECT CASE WHEN n.oid IS NULL THEN has_database_privilege(d.oid, 'CREATE') ELSE has_schema_privilege(n.oid, 'CREATE')
        END, quote_ident(current_user), quote_ident(pg_get_userbyid(coalesce(n.nspowner, d.datdba)))
      FROM pg_database d LEFT JOIN pg_namespace n ON n.nspname = 'night_audit' WHERE d.datname = current_database()
      """
    ).single()
    if try row.bool(0) { return true }
    do { try requireCurrent(connection, migrations) } catch let error as SchemaError {
      switch error {
      case .missing, .outdated:
        throw SchemaError.kept(from: try row.text(1), by: try row.text(2), isOutdated: error == .outdated)
      case .newerThanProgram, .changed, .encoding, .triggersOff, .kept: throw error
      }
    }
    return false
  }

  /// Throws `SchemaError` unless the schema is the one that this program was built for.
  package static func requireCurrent(
    _ connection: borrowing BlockingConnection, _ migrations: [Migration] = migrations
  ) throws {
    try requireUsable(connection)
    let exists = try connection.execute("SELECT to_regclass('night_audit.schema_migrations') IS NOT NULL").single()
      .bool(0)
    guard exists else { throw SchemaError.missing }
    let present = try versions(connection, migrations)
    if migrations.contains(where: { !present.contains($0.version) }) { throw SchemaError.outdated }
  }

  /// The database must be able to store any character in texts of Apple or the shop, and run the schema's triggers.
  private static func requireUsable(_ connection: borrowing BlockingConnection) throws {
    let row = try connection.execute(
      """
      SELECT getdatabaseencoding(), current_setting('session_replication_role') = 'replica', quote_ident(session_user),
        quote_ident(current_database())
      """
    ).single()
    let encoding = try row.text(0)
    if !["UTF8", "SQL_ASCII"].contains(encoding) { throw SchemaError.encoding(encoding) }
    if try row.bool(1) { throw SchemaError.triggersOff(role: try row.text(2), database: try row.text(3)) }
  }

  /// The versions of the applied migrations. Throws `SchemaError` if one is not of this program.
  private static func versions(_ connection: borrowing BlockingConnection, _ migrations: [Migration]) throws -> Set<Int>
  {
    let rows = try connection.execute("SELECT version, sha256 FROM night_audit.schema_migrations ORDER BY version DESC")
    var versions: Set<Int> = []
    for row in rows {
      let version = Int(try row.int32(0))
      let known = migrations.first { $0.version == version }
      guard let known else { throw SchemaError.newerThanProgram(found: version) }
      if try row.text(1) != sha256(known.sql) { throw SchemaError.changed(version: version) }
      versions.insert(version)
    }
    return versions
  }

  private static func sha256(_ text: String) -> String { Digest.hexadecimal(SHA256.hash(data: Data(text.utf8))) }
}

/// A schema that this program cannot work with. Exit status 78.
package enum SchemaError: RunEndingError, Equatable, CustomStringConvertible {
  case missing
  case outdated
  case kept(from: String, by: String, isOutdated: Bool)
  case newerThanProgram(found: Int)
  case changed(version: Int)
  case encoding(String)
  case triggersOff(role: String, database: String)

  package var exitStatus: ExitStatus { .configuration }

  package var description: String {
    switch self {
    case .missing: "The schema night_audit is missing. Run: night-audit init"
    case .outdated: "The schema night_audit is older than this program. Run: night-audit init"
    case .kept(let role, let owner, let isOutdated):
      """
      The schema night_audit is \(isOutdated ? "older than this program" : "missing"), and the role \(role) may not \
      \(isOutdated ? "change" : "create") it. Run night-audit init as \(owner) or a superuser, whom \
      database.url names for this once.
      """
    case .newerThanProgram(let found):
      "The schema night_audit is at version \(found), which is newer than this program. Install the newer night-audit."
    case .changed(let version):
      "Migration \(version) of night_audit is not the one that this program ships. Restore the release that applied it."
    case .encoding(let encoding):
      """
      The database of database.url is in \(encoding), which lacks characters that Apple and the shop use. Run: \
      CREATE DATABASE night_audit ENCODING 'UTF8' TEMPLATE template0; name it in database.url, and the shop's own, which may \
      stay as it is, in database.salesUrl.
      """
    case .triggersOff(let role, let database):
      """
      The setting session_replication_role is replica. No trigger of night_audit runs, and the trail would miss changes. \
      Run as a superuser the one of these that names the place of the setting: \
      ALTER ROLE \(role) RESET session_replication_role, \
      ALTER ROLE \(role) IN DATABASE \(database) RESET session_replication_role, or \
      ALTER DATABASE \(database) RESET session_replication_role.
      """
    }
  }
}
