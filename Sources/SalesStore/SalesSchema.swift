import Foundation
import Postgres

/// The sales schema in its plain form, for a new shop and for rehearsals.
package enum SalesSchema {
  /// Creates plain sales tables where there are none. Existing tables and views stay as they are.
  package static func create(_ name: String, _ connection: borrowing BlockingConnection) throws {
    let sql = String(decoding: PackageResources.sales_sql, as: UTF8.self)
      .replacing("{schema}", with: try PostgresIdentifier(name).sql)
    try connection.migration(under: (1_852_401_512, 1_935_764_595)) { try $0.executeScript(sql) }
  }
}
