import Foundation
import Postgres

/// The sales schema in its plain form, for a new shop and for rehearsals.
package enum SalesSchema {
  /// Creates plain sales tables where there are none. Existing tables and views stay as they are.
  package static func create(_ name: String, _ connection: borrowing BlockingConnection) throws {
    let sql = String(decoding: PackageResources.sales_sql, as: UTF8.self)
      .replacing("{schema}", with: try PostgresIdentifier(name).sql)
    try connection.transaction { connection in
      try connection.execute("SELECT pg_advisory_xact_lock(1852401512, 1935764595)")
      try connection.executeScript(sql)
    }
  }
}
