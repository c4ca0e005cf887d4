import Foundation
import Postgres
import TestSupport

/// The roles in a shop's database, created as on the page about the audit trail.
enum DatabaseRole: String {
  /// Runs every command except `init`.
  case writer = "night_audit"
  /// Reads the views.
  case reader = "finance"
  /// Owns the schema, and makes changes for tests.
  case superuser = "postgres"

  func conninfo(_ conninfo: String) -> String {
    conninfo.split(separator: " ").map { $0.hasPrefix("user=") ? "user=\(rawValue)" : String($0) }.joined(
      separator: " ")
  }

  func environment(_ conninfo: String) -> [String: String] { ["NIGHT_AUDIT_DATABASE_URL": self.conninfo(conninfo)] }

  func session(_ conninfo: String) async throws -> PostgresSession {
    try await PostgresSession.connect(self.conninfo(conninfo), applicationName: "night-audit tests")
  }

  func value(_ sql: String, in conninfo: String) async throws -> String {
    let session = try await session(conninfo)
    let row = try await session.execute("SELECT (\(sql))::text").single().optionalText(0)
    await session.close()
    return row ?? ""
  }

  func execute(_ sql: String, in conninfo: String) async throws {
    let session = try await session(conninfo)
    try await session.executeScript(sql)
    await session.close()
  }

  static func pageStatements(_ name: String = "AuditTrail.md") throws -> [String] {
    let page = Repository.root.appending(path: "Sources/night-audit/Documentation.docc/\(name)")
    return try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```sql\n").dropFirst()
      .map { $0.components(separatedBy: "```")[0] }
  }

  private static let roles = MadeOnce<String, Void>()

  private static func makeRoles(of cluster: PrivatePostgres) async throws {
    try await roles.value(of: cluster.directory) {
      let roles = try pageStatements()[0].components(separatedBy: "\n").filter {
        $0.hasPrefix("CREATE ROLE ") || $0.hasPrefix("GRANT ") && !$0.contains(" ON ")
      }
      try await superuser.execute(roles.joined(separator: "\n"), in: cluster.conninfo(database: "postgres"))
    }
  }

  /// Creates a database with both schemas of a shop, the page's rights, and the rows that `load` adds. The result is for
  /// the writer.
  static func makeDatabase(
    of cluster: PrivatePostgres, like name: String = "empty shop",
    load: @escaping @Sendable (_ conninfo: String) async throws -> Void = { _ in }
  ) async throws -> String {
    let grants = try pageStatements()[0].components(separatedBy: "\n")
      .filter { $0.hasPrefix("GRANT ") && $0.contains(" ON ") }
    let conninfo = try await cluster.createDatabase(like: name) { conninfo in
      let file = try TemporaryDirectory()
      let initialised = try await Program.nightAudit.run([
        "init", "--with-sales-schema", "--config",
        try file.write("database: {url: \"\(conninfo)\"}\napp: {game: {bundleId: com.example.game}}", "config.yaml"),
      ])
      guard initialised.status == 0 else { throw Program.Failure(initialised.errors) }
      try await makeRoles(of: cluster)
      // Grants later relations of the shop, too.
      let further = "ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO \(writer.rawValue)"
      try await superuser.execute(
        (grants.filter { !$0.contains(" ON DATABASE ") } + [further]).joined(separator: "\n"), in: conninfo)
      try await load(conninfo)
    }
    // A copy has the template's rights on relations, but not those on the database.
    let database = conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? ""
    let ofDatabase = grants.filter { $0.contains(" ON DATABASE ") }
      .map { $0.replacing("DATABASE shop", with: "DATABASE \(database)") }
    try await superuser.execute(ofDatabase.joined(separator: "\n"), in: conninfo)
    return writer.conninfo(conninfo)
  }
}
