import Foundation
import Postgres

package enum SalesSchema {
  /// Creates the tables that do not exist. Existing tables and views are not changed.
  package static func create(_ name: String, _ connection: borrowing BlockingConnection) throws {
    let schema = try PostgresIdentifier(name).sql
    let sql = String(decoding: PackageResources.sales_sql, as: UTF8.self).replacing("{schema}", with: schema)
    try connection.migration(under: (1_852_401_512, 1_935_764_595)) { connection in
      // CREATE SCHEMA IF NOT EXISTS requires the right to create schemas even if the schema exists.
      let isMissing = try connection.execute(
        "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", [.text(name)]
      ).single().bool(0)
      if isMissing { try connection.executeScript("CREATE SCHEMA \(schema)") }
      try connection.executeScript(sql)
    }
  }
}
