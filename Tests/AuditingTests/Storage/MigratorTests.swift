import Postgres
import Reconciliation
import Run
import TestSupport
import Testing

@testable import AuditStore

@Suite struct MigratorTests {
  private static let next = Migrator.Migration(
    version: 2, name: "note",
    sql: """
      ALTER TABLE night_audit.evidence ADD COLUMN note text;
      CREATE OR REPLACE VIEW night_audit.bi_evidence AS SELECT * FROM night_audit.evidence
      """)

  @Test func aDatabaseWhoseEncodingLacksCharactersIsRefused() async throws {
    for (encoding, isTaken) in [("LATIN1", false), ("SQL_ASCII", true)] {
      let database = try await PrivatePostgres.shared().createDatabase(encoding: encoding)
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

  @Test func aSessionWithoutTriggersIsRefused() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      for step in [{ _ = try Migrator.migrate($0) }, { try Migrator.requireCurrent($0) }]
        as [(borrowing BlockingConnection) throws -> Void]
      {
        try connection.executeScript("SET session_replication_role = replica")
        let error = #expect(throws: SchemaError.self) { try step(connection) }
        #expect(error?.description.contains("ALTER ROLE postgres RESET session_replication_role") == true)
        try connection.executeScript("SET session_replication_role = local")
        try step(connection)
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

  @Test func changedDefinitionsAreNamedAndRestored() async throws {
    // Each object occurs once in a group. The changes of a group are made, found and restored together.
    let groups: [[(change: String, object: String)]] = [
      [
        (
          "CREATE OR REPLACE VIEW bi_findings_by_night AS SELECT * FROM (\(Self.query(of: "bi_findings_by_night"))) v WHERE severity <> 'critical'",
          "view night_audit.bi_findings_by_night"
        ),
        ("DROP TRIGGER append_only ON trail", "trigger append_only of night_audit.trail"),
        ("DROP TRIGGER recorded ON runs", "trigger recorded of night_audit.runs"),
        ("ALTER TABLE runs DISABLE TRIGGER told_once", "trigger told_once of night_audit.runs"),
        (
          "DROP TRIGGER append_only ON answers; CREATE TRIGGER append_only BEFORE DELETE ON answers FOR EACH ROW EXECUTE FUNCTION refuse_change()",
          "trigger append_only of night_audit.answers"
        ),
        ("DROP TRIGGER no_truncate ON evidence_first", "trigger no_truncate of night_audit.evidence_first"),
        (
          "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
          "function night_audit.refuse_change()"
        ),
        ("ALTER FUNCTION write_run(uuid, jsonb) SECURITY INVOKER", "function night_audit.write_run(uuid,jsonb)"),
        (
          "ALTER FUNCTION cover_answers(uuid) SET client_encoding = 'LATIN1'",
          "function night_audit.cover_answers(uuid)"
        ),
        ("DROP FUNCTION record_adopted(uuid[])", "function night_audit.record_adopted(uuid[])"),
        ("GRANT UPDATE (status) ON findings TO PUBLIC", "night_audit.findings"),
        ("GRANT CREATE ON SCHEMA night_audit TO PUBLIC", "schema night_audit"),
        ("GRANT UPDATE, TRUNCATE ON evidence TO night_audit_reader", "night_audit.evidence"),
        ("GRANT INSERT ON trail TO night_audit_reader", "night_audit.trail"),
        ("GRANT UPDATE ON evidence_first TO night_audit_writer", "night_audit.evidence_first"),
        ("GRANT INSERT (started_at) ON runs TO night_audit_writer", "night_audit.runs"),
      ],
      [
        ("DROP VIEW bi_runs; CREATE VIEW bi_runs AS SELECT 1 AS run_id", "view night_audit.bi_runs"),
        ("ALTER FUNCTION write_run(uuid, jsonb) RESET search_path", "function night_audit.write_run(uuid,jsonb)"),
        ("GRANT INSERT ON evidence TO night_audit_writer", "night_audit.evidence"),
        ("GRANT INSERT (run_id) ON runs TO night_audit_reader", "night_audit.runs"),
        ("GRANT UPDATE (at_stake) ON findings TO night_audit_reader", "night_audit.findings"),
        ("GRANT CREATE ON SCHEMA night_audit TO night_audit_writer", "schema night_audit"),
      ],
      [
        ("DROP VIEW newest_night CASCADE", "view night_audit.newest_night"),
        ("GRANT UPDATE (revoked_at) ON evidence TO night_audit_writer", "night_audit.evidence"),
        (
          "GRANT EXECUTE ON FUNCTION write_run(uuid, jsonb) TO night_audit_reader",
          "function night_audit.write_run(uuid,jsonb)"
        ),
        ("ALTER TABLE findings ENABLE ROW LEVEL SECURITY", "night_audit.findings"),
      ],
      [("GRANT ALL ON ALL TABLES IN SCHEMA night_audit TO PUBLIC", "night_audit.findings")],
    ]
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      #expect(try Migrator.migrate(connection) == ["1 schema"])
      #expect(try SchemaDefinitions().differences(connection) == [])
      for group in groups {
        for (change, _) in group {
          try connection.executeScript("SET search_path = night_audit; \(change); RESET search_path")
        }
        let found = try SchemaDefinitions().differences(connection)
        let restored = try Migrator.migrate(connection)
        for (change, object) in group {
          #expect(found.contains { $0.object == object }, "\(change): \(found)")
          // The rights of the writer are granted anew in any case.
          #expect(restored.contains("\(object) (restored)") || change.hasSuffix("night_audit_writer"), "\(change)")
        }
        #expect(try SchemaDefinitions().differences(connection) == [], "\(group)")
      }
      let isReadable = "SELECT has_table_privilege('night_audit_reader', 'night_audit.bi_runs', 'SELECT')"
      #expect(try connection.execute(isReadable).single().bool(0))
      // What rows may contradict is reported with the statement that restores it.
      let contradictions = [
        (
          "ALTER TABLE night_audit.evidence DROP CONSTRAINT evidence_check", "night_audit.evidence",
          "run: ALTER TABLE night_audit.evidence ADD CONSTRAINT evidence_check CHECK"
        ),
        (
          "ALTER TABLE night_audit.answers ALTER COLUMN recorded_at SET DEFAULT '2000-01-01'", "night_audit.answers",
          "run: ALTER TABLE night_audit.answers ALTER COLUMN recorded_at SET DEFAULT clock_timestamp()"
        ),
        (
          "ALTER TABLE night_audit.run_events DROP CONSTRAINT run_events_run_id_fkey", "night_audit.run_events",
          "REFERENCES night_audit.runs(run_id) ON DELETE CASCADE"
        ),
        (
          "ALTER TABLE night_audit.findings ADD COLUMN twist int", "night_audit.findings",
          "run: ALTER TABLE night_audit.findings DROP COLUMN twist"
        ),
        (
          "CREATE TABLE public.twisted () INHERITS (night_audit.claims)", "public.twisted", "DROP TABLE public.twisted"
        ),
        ("CREATE VIEW night_audit.bi_twist AS SELECT 1 AS n", "night_audit.bi_twist", "DROP VIEW night_audit.bi_twist"),
        (
          "CREATE FUNCTION night_audit.write_run(text) RETURNS void LANGUAGE sql SECURITY DEFINER AS 'SELECT'",
          "function night_audit.write_run(text)", "DROP ROUTINE night_audit.write_run(text)"
        ),
        (
          "ALTER TABLE night_audit.runs OWNER TO night_audit_writer", "night_audit.runs",
          "run: ALTER TABLE night_audit.runs OWNER TO night_audit_owner"
        ),
      ]
      try connection.executeScript("BEGIN; " + contradictions.map(\.0).joined(separator: "; "))
      let contradicted = try SchemaDefinitions().differencesInTransaction(connection)
      try connection.executeScript("ROLLBACK")
      for (change, object, remedy) in contradictions {
        #expect(
          contradicted.contains { $0.object == object && $0.problem.contains(remedy) }, "\(change): \(contradicted)")
      }
      // Foreign objects are reported, and left for a person to remove.
      try connection.executeScript(
        """
        CREATE FUNCTION public.twist() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER twist BEFORE INSERT ON night_audit.evidence FOR EACH ROW EXECUTE FUNCTION public.twist();
        CREATE RULE twist AS ON INSERT TO night_audit.findings DO INSTEAD NOTHING
        """)
      #expect(try Migrator.migrate(connection) == [])
      let found = try SchemaDefinitions().differences(connection)
      #expect(found.map(\.object) == ["trigger twist of night_audit.evidence", "night_audit.findings"], "\(found)")
      #expect(found.allSatisfy { $0.remedies.isEmpty && $0.problem.contains("DROP") }, "\(found)")
    }
  }

  private static func query(of view: String) -> String {
    let beginning = "CREATE VIEW night_audit.\(view) AS"
    let statement = SQLScript.statements(Migrator.migrations[0].sql).first { $0.hasPrefix(beginning) }
    return statement.map { String($0.dropFirst(beginning.count)) } ?? ""
  }

  @Test func aStatementEndsAtItsSemicolon() {
    let script = "-- a; b\nSELECT ';' -- c\n  , 1;\nDO $$ -- kept;\nBEGIN; END $$;\n\n SELECT 'it''s; one'"
    #expect(
      SQLScript.statements(script) == [
        "SELECT ';' \n  , 1", "DO $$ -- kept;\nBEGIN; END $$", "SELECT 'it''s; one'",
      ])
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

  @Test func theFunctionsPassAllChecksOfTheirLanguage() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      try connection.executeScript("SET plpgsql.extra_errors TO 'all'")
      #expect(try Migrator.migrate(connection) == ["1 schema"])
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

  /// A new column must stay empty in earlier rows, because the trail covers them without it.
  @Test func theTrailVerifiesRowsThatAreOlderThanAColumn() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      _ = try Migrator.migrate(connection)
      try connection.executeScript(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version)
        VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'recheck', now(), '2026-11-19', '2026-11-19', 'UTC', '', false, '', '')
        """)
      func append(_ id: String) throws {
        let fact = TransactionFact(
          environment: .production, transactionId: id, productId: "gems", channel: .notification,
          signedDate: Instant(seconds: 1_795_143_600))
        try EvidenceTable.append(
          [(subject: nil, fact: fact)], runId: "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11",
          asOf: Instant(seconds: 1_795_143_600), on: connection)
        try connection.execute("SELECT night_audit.append_trail('asked', NULL)")
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
