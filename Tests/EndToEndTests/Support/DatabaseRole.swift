import Foundation
import Postgres
import Synchronization
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

  static func pageStatements(_ name: String = "AuditTrail.md") throws -> [String] {
    let page = Repository.root.appending(path: "Sources/night-audit/Documentation.docc/\(name)")
    return try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```sql\n").dropFirst()
      .map { $0.components(separatedBy: "```")[0] }
  }

  private static let made = Mutex<[String: Task<Void, any Error>]>([:])

  private static func makeRoles(of cluster: PrivatePostgres) async throws {
    let making = made.withLock { made in
      let making =
        made[cluster.directory]
        ?? Task {
          let roles = try pageStatements()[0].components(separatedBy: "\n").filter {
            $0.hasPrefix("CREATE ROLE ") || $0.hasPrefix("GRANT ") && !$0.contains(" ON ")
          }
          try await execute(roles.joined(separator: "\n"), in: cluster.conninfo(database: "postgres"))
        }
      made[cluster.directory] = making
      return making
    }
    try await making.value
  }

  /// Creates both schemas of a shop as superuser and grants the page's rights.
  static func makeSchemas(
    in conninfo: String, of cluster: PrivatePostgres? = nil, configuration: String
  ) async throws {
    let initialised = try await Program.nightAudit.run(
      ["init", "--with-sales-schema", "--config", configuration], environment: superuser.environment(conninfo))
    guard initialised.status == 0 else { throw Rehearsal.Failure(initialised.errors) }
    let shared = try await PrivatePostgres.shared()
    try await makeRoles(of: cluster ?? shared)
    let database = conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? ""
    let grants = try pageStatements()[0].components(separatedBy: "\n")
      .filter { $0.hasPrefix("GRANT ") && $0.contains(" ON ") }
      .map { $0.replacing("DATABASE shop", with: "DATABASE \(database)") }
    // Grants later relations of the shop, too.
    let further = "ALTER DEFAULT PRIVILEGES IN SCHEMA sales GRANT SELECT ON TABLES TO \(writer.rawValue)"
    try await execute((grants + [further]).joined(separator: "\n"), in: conninfo)
  }

  func environment(_ conninfo: String) -> [String: String] { ["NIGHT_AUDIT_DATABASE_URL": self.conninfo(conninfo)] }

  private static func execute(_ sql: String, in conninfo: String) async throws {
    let session = try await PostgresSession.connect(
      superuser.conninfo(conninfo), applicationName: "night-audit tests")
    try await session.executeScript(sql)
    await session.close()
  }
}
