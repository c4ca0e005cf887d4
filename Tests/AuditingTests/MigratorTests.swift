import Postgres
import Reconciliation
import Run
import TestSupport
import Testing

@testable import AuditStore

/// The schema is created by one file, and later migrations are applied after it.
@Suite struct MigratorTests {
  /// A migration of a later release.
  private static let next = Migrator.Migration(
    version: 2, name: "note", sql: "ALTER TABLE night_audit.evidence ADD COLUMN note text")

  @Test func aDatabaseWhoseEncodingLacksCharactersIsRefused() async throws {
    for (encoding, isTaken) in [("LATIN1", false), ("SQL_ASCII", true)] {
      let cluster = try await PrivatePostgres.start(encoding: encoding)
      let database = try await cluster.createDatabase()
      try await withBlockingThread { scope in
        let connection = try scope.connect(database, applicationName: "night-audit tests")
        for step in [{ _ = try Migrator.migrate($0) }, { try Migrator.requireCurrent($0) }]
          as [(borrowing BlockingConnection) throws -> Void]
        {
          do {
            try step(connection)
            #expect(isTaken, "\(encoding)")
          } catch let error as SchemaError {
            #expect(!isTaken && error.exitStatus == .configuration)
            #expect("\(error)".contains("LATIN1") && "\(error)".contains("database.salesUrl"), "\(error)")
          }
        }
      }
    }
  }

  @Test func aLaterMigrationIsAppliedOnceAfterTheSchema() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      let later = Migrator.migrations + [Self.next]
      #expect(throws: SchemaError.missing) { try Migrator.requireCurrent(connection) }
      #expect(try Migrator.migrate(connection) == ["1 schema"])
      #expect(try Migrator.migrate(connection) == [])
      try Migrator.requireCurrent(connection)
      #expect(throws: SchemaError.outdated) { try Migrator.requireCurrent(connection, later) }

      #expect(try Migrator.migrate(connection, to: later) == ["2 note"])
      #expect(try Migrator.migrate(connection, to: later) == [])
      try Migrator.requireCurrent(connection, later)
      #expect(throws: SchemaError.newerThanProgram(found: 2)) { try Migrator.requireCurrent(connection) }
      #expect(throws: SchemaError.newerThanProgram(found: 2)) { _ = try Migrator.migrate(connection) }

      var changed = later
      changed[1].sql += ";"
      #expect(throws: SchemaError.changed(version: 2)) { _ = try Migrator.migrate(connection, to: changed) }
    }
  }

  @Test func aMigrationThatFailsLeavesTheSchemaUnchanged() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      var broken = Self.next
      broken.sql += "; SELECT 1 / 0"
      #expect(throws: PostgresError.self) {
        _ = try Migrator.migrate(connection, to: Migrator.migrations + [broken])
      }
      #expect(throws: SchemaError.missing) { try Migrator.requireCurrent(connection) }
    }
  }

  @Test func twoMigrationsAtOnceApplyEachMigrationOnce() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    let applied = try await withThrowingTaskGroup(of: [String].self) { group in
      for _ in 1...2 {
        group.addTask {
          try await withBlockingThread { scope in
            try Migrator.migrate(try scope.connect(database, applicationName: "night-audit tests"))
          }
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(applied == ["1 schema"])
  }

  /// A later column is empty in all earlier rows and has to stay so, because the trail covers them as they were.
  @Test func theTrailVerifiesRowsThatAreOlderThanAColumn() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      _ = try Migrator.migrate(connection)
      func append(_ id: String) throws {
        let fact = TransactionFact(
          environment: .production, transactionId: id, productId: "gems", channel: .notification,
          signedDate: Instant(seconds: 1_795_143_600))
        try EvidenceTable.append(
          [(subject: nil, fact: fact)], runId: "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11",
          asOf: Instant(seconds: 1_795_143_600), on: connection)
        try Trail.append(.asked, run: nil, on: connection)
      }
      func isProven() throws -> Bool {
        try connection.transaction { connection in try TrailVerification.whole(on: connection) }.isProven
      }
      func note(_ value: String, of id: String) throws {
        try connection.executeScript(
          """
          BEGIN; SET LOCAL session_replication_role = replica;
          UPDATE night_audit.evidence SET note = \(value) WHERE transaction_id = '\(id)'; COMMIT
          """)
      }
      try append("t1")
      _ = try Migrator.migrate(connection, to: Migrator.migrations + [Self.next])
      try append("t2")
      #expect(try isProven())
      for id in ["t1", "t2"] {
        try note("'x'", of: id)
        #expect(try !isProven(), "\(id)")
        try note("NULL", of: id)
        #expect(try isProven(), "\(id)")
      }
    }
  }
}
