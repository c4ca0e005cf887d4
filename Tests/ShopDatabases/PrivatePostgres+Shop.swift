import AuditStore
import Postgres
import SalesStore
import TestSupport

extension PrivatePostgres {
  /// Creates a database with our schema and the empty tables of the sales contract.
  package static func shopDatabase() async throws -> String {
    try await shared().createDatabase(like: "shop") { conninfo in
      try await withBlockingThread { scope in
        let connection = try scope.connect(conninfo, applicationName: "night-audit tests")
        try SalesSchema.create("sales", connection)
        _ = try Migrator.migrate(connection)
      }
    }
  }

  /// Creates a database with our schema only.
  package static func storeDatabase() async throws -> String {
    try await shared().createDatabase(like: "store") { conninfo in
      try await withBlockingThread { scope in
        _ = try Migrator.migrate(try scope.connect(conninfo, applicationName: "night-audit tests"))
      }
    }
  }
}
