import Foundation
import Postgres
import Settings

package enum SalesSchema {
  /// Creates the tables that do not exist. Existing tables and views are not changed.
  ///
  /// Throws `ConfigurationError` with the grant if the role lacks a right.
  package static func create(_ name: String, _ connection: borrowing BlockingConnection) throws {
    let schema = try PostgresIdentifier(name).sql
    let sql = String(decoding: PackageResources.sales_sql, as: UTF8.self).replacing("{schema}", with: schema)
    do {
      try connection.migration(under: (1_852_401_512, 1_935_764_595)) { connection in
        // CREATE SCHEMA IF NOT EXISTS requires the right to create schemas even if the schema exists.
        let isMissing = try connection.execute(
          "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", [.text(name)]
        ).single().bool(0)
        if isMissing { try connection.executeScript("CREATE SCHEMA \(schema)") }
        try connection.executeScript(sql)
      }
    } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
      throw try refusal(to: name, error, connection)
    }
  }

  private static func refusal(
    to name: String, _ error: PostgresError, _ connection: borrowing BlockingConnection
  ) throws -> ConfigurationError {
    let row = try connection.execute(
      """
      SELECT quote_ident(current_user), quote_ident(pg_get_userbyid(coalesce(n.nspowner, d.datdba))),
        CASE WHEN n.oid IS NULL THEN 'CREATE ON DATABASE ' || quote_ident(d.datname)
          ELSE 'USAGE, CREATE ON SCHEMA ' || quote_ident(n.nspname) END
      FROM pg_database d LEFT JOIN pg_namespace n ON n.nspname = $1 WHERE d.datname = current_database()
      """, [.text(name)]
    ).single()
    let (role, owner) = (try row.text(0), try row.text(1))
    return ConfigurationError(
      key: "database.salesSchema",
      problem: """
        the role \(role) may not create the tables of \(name): \(error.message). Run \
        night-audit init --with-sales-schema as \(owner) or a superuser, whom database.url names for this once, or let \
        \(owner) run: GRANT \(try row.text(2)) TO \(role)
        """)
  }
}
