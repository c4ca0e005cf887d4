import Foundation
import Postgres
import TestSupport
import Testing

/// Conflicts in the shop's store during a night. A single conflict is retried; a lasting one ends the night without a
/// report, and the next night is whole. `ServerFaultTests` cover our own store.
@Suite(.serialized) struct StoreConflictTests {
  private enum Relation: String {
    case orders, receipts, deliveries

    var key: String {
      switch self {
      case .orders: "order_id"
      case .receipts: "receipt_id"
      case .deliveries: "delivery_id"
      }
    }
  }

  /// A relation that fails at its middle row until the lock `over` is taken.
  private struct Trouble {
    static let met = 77
    static let over = 78

    let database: String

    /// - Parameter isAudited: fails only after Apple has answered.
    init(_ relation: Relation, _ code: String, isAudited: Bool, isOnce: Bool, in shop: Rehearsal) async throws {
      database = try await PrivatePostgres.shared().copyDatabase(shop.conninfo)
      let key = relation.key
      // The first reader waits for the test and fails; later readers do not.
      let first = """
        IF NOT pg_catalog.pg_try_advisory_lock(\(Self.met)) THEN RETURN true; END IF;
        WHILE NOT EXISTS (\(Self.granted(Self.over))) LOOP PERFORM pg_catalog.pg_sleep(0.001); END LOOP;
        """
      try await shop.execute(
        """
        CREATE SCHEMA kept;
        ALTER TABLE sales.\(relation) SET SCHEMA kept;
        CREATE FUNCTION kept.trouble() RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
          IF EXISTS (\(Self.granted(Self.over))) THEN RETURN true; END IF;
          \(isAudited ? "IF NOT EXISTS (SELECT FROM night_audit.answers) THEN RETURN true; END IF;" : "")
          \(isOnce ? first : "")
          RAISE EXCEPTION 'others are in the way' USING ERRCODE = '\(code)';
        END $$;
        CREATE VIEW sales.\(relation) AS
          SELECT * FROM kept.\(relation) WHERE CASE WHEN \(key) = (
            SELECT \(key) FROM kept.\(relation) ORDER BY 1 OFFSET (SELECT count(*) / 2 FROM kept.\(relation)) LIMIT 1
          ) THEN kept.trouble() ELSE true END;
        """, conninfo: database)
    }

    private static func granted(_ lock: Int) -> String {
      """
      SELECT FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND objid = \(lock) AND granted
          AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
      """
    }

    func end(for night: Program.Running?) async throws -> PostgresSession {
      let session = try await DatabaseRole.superuser.session(database)
      while let night, night.process.isRunning,
        try await !session.execute("SELECT EXISTS (\(Self.granted(Self.met)))").single().bool(0)
      { await pause() }
      try await session.execute("SELECT pg_advisory_lock(\(Self.over))::text")
      return session
    }
  }

  private func start(_ shop: Rehearsal, _ database: String, _ reports: TemporaryDirectory) throws -> Program.Running {
    try shop.start(
      "run", "--as-of", Rehearsal.asOf,
      environment: ["NIGHT_AUDIT_DATABASE_URL": database, "NIGHT_AUDIT_REPORT_DIRECTORY": reports.file("reports")])
  }

  private func files(_ shop: Rehearsal, _ reports: TemporaryDirectory) throws -> [String: Data] {
    try shop.report(reports.file("reports/2026-11-19"))
  }

  /// A waiting exclusive lock would block all later sessions, so `init` does not wait.
  @Test func initDoesNotWaitForTableLocks() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    // An upgrade changes this table; looking for an index locks its table too.
    try await shop.execute("ALTER TABLE night_audit.runs OWNER TO postgres")
    let others = try await shop.session()
    try await others.executeScript("BEGIN; LOCK TABLE night_audit.runs, sales.deliveries IN ROW EXCLUSIVE MODE")
    let waiting = try [[], ["--with-sales-schema"]].map { options in
      try shop.start("init", more: options, environment: DatabaseRole.superuser.environment(shop.conninfo))
    }
    for one in waiting {
      let result = await one.finish()
      #expect(result.status == 69, "\(result)")
      #expect(result.errors.contains("Postgres error 55P03: "), "\(result)")
      #expect(result.errors.contains("another session has taken a lock on the table"), "\(result)")
      #expect(result.errors.contains("run it again"), "\(result)")
    }
    try await others.executeScript("COMMIT")
    try await shop.nightAudit(
      "init", "--with-sales-schema", environment: DatabaseRole.superuser.environment(shop.conninfo), exits: [0])
    let owner = "SELECT relowner::regrole FROM pg_class WHERE oid = 'night_audit.runs'::regclass"
    #expect(try await shop.value(owner) == "night_audit_owner")
    await others.close()
  }

  /// A new month needs the default partition; a lock on it delays only that.
  @Test func aNightDoesNotWaitForTableLocks() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let months = "SELECT count(*) FROM pg_class WHERE relname ~ '^(evidence|answers)_20[0-9_]+$'"
    let others = try await shop.session()
    try await others.executeScript("BEGIN; LOCK TABLE night_audit.answers_default IN ACCESS SHARE MODE")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3], says: "monthly partitions of evidence")
    #expect(try await shop.value(months) == "0")
    try await others.executeScript("COMMIT")
    let calm = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(calm.status == 3 && !calm.errors.contains("monthly partitions of evidence"), "\(calm)")
    #expect(try await shop.value(months) == "2")
    await others.close()
  }

  @Test func aNightSurvivesConflictsInTheShopsStore() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let calm = try TemporaryDirectory()
    let undisturbed = await (try start(shop, try await PrivatePostgres.shared().copyDatabase(shop.conninfo), calm))
      .finish()
    #expect(undisturbed.status == 3, "\(undisturbed)")
    let wanted = try files(shop, calm)
    for (relation, code, isAudited, isOnce) in [
      (.orders, "40001", true, true), (.receipts, "40P01", false, true), (.receipts, "40P01", false, false),
      (.deliveries, "55P03", true, false), (.orders, "40001", true, false),
    ] as [(Relation, String, Bool, Bool)] {
      let what = "\(code) from \(relation)\(isAudited ? " in the audit" : "")\(isOnce ? ", once" : "")"
      let trouble = try await Trouble(relation, code, isAudited: isAudited, isOnce: isOnce, in: shop)
      let reports = try TemporaryDirectory()
      let night = try start(shop, trouble.database, reports)
      let over = isOnce ? try await trouble.end(for: night) : nil
      let first = await night.finish()
      await over?.close()
      if isOnce {
        #expect(first.status == 3, "\(what): \(first)")
        #expect(try files(shop, reports) == wanted, "\(what)")
        continue
      }
      #expect(first.status == 69, "\(what): \(first)")
      #expect(first.errors.contains("Postgres error \(code): "), "\(what): \(first)")
      #expect(first.errors.contains("run it again"), "\(what): \(first)")
      #expect(!FileManager.default.fileExists(atPath: reports.file("reports/latest")), "\(what)")
      let session = try await trouble.end(for: nil)
      let second = await (try start(shop, trouble.database, reports)).finish()
      #expect(second.status == 3, "after \(what): \(second)")
      #expect(try files(shop, reports) == wanted, "after \(what)")
      let entries = try FileManager.default.contentsOfDirectory(atPath: reports.file("reports")).sorted()
      #expect(entries == ["2026-11-19", "latest"], "after \(what)")
      await session.close()
    }
  }
}
