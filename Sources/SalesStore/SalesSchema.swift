import Foundation
import Postgres

package enum SalesSchema {
  /// Creates the tables that do not exist. Existing tables and views are not changed.
  package static func create(_ name: String, _ connection: borrowing BlockingConnection) throws {
    let sql = String(decoding: PackageResources.sales_sql, as: UTF8.self)
      .replacing("{schema}", with: try PostgresIdentifier(name).sql)
    try connection.migration(under: (1_852_401_512, 1_935_764_595)) { try $0.executeScript(sql) }
  }
}
