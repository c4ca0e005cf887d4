import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import TestSupport
import Testing

@testable import AuditStore
@testable import NightAudit
@testable import Run
@testable import SalesStore

/// Tables are sorted by the server, unless it limits the temporary files that this takes.
@Suite struct PlannerSettingsTests {
  @Test(arguments: [("-1", "16MB"), ("1GB", "7GB")])
  func aServerThatLimitsTemporaryFilesIsLeftToItsIndexes(limit: String, expected: String) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("planner-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.channel = .verifyReceipt
    settings.formats = [.csv]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("tables", connection)
      _ = try Migrator.migrate(connection)
      // The product of the one order is what the planner of the session that reads it is told.
      try connection.executeScript(
        """
        CREATE SCHEMA sales;
        CREATE VIEW sales.receipts AS SELECT * FROM tables.receipts;
        CREATE VIEW sales.deliveries AS SELECT * FROM tables.deliveries;
        CREATE VIEW sales.orders AS
        SELECT 'order' AS order_id, 'user' AS user_id, NULL::text AS bundle_id,
          current_setting('effective_cache_size') AS product_id, 1 AS quantity, 9.99 AS amount, 'USD' AS currency,
          'failed' AS status, NULL::text AS transaction_id, NULL::text AS app_account_token,
          timestamptz '2026-11-19 12:00+00' AS created_at, NULL::timestamptz AS verified_at;
        DO $$ BEGIN
          EXECUTE format($f$ALTER DATABASE %I SET temp_file_limit = '\(limit)'$f$, current_database());
          EXECUTE format($f$ALTER DATABASE %I SET effective_cache_size = '7GB'$f$, current_database());
        END $$
        """)
    }
    await session.close()
    var request = NightRequest(asOf: CrowdedShop.asOf)
    request.period = try Period(since: "2026-11-19", until: "2026-11-19", in: settings.timeZone)
    request.out = directory.path
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let night = NightRun(
      settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))
    _ = try await night.reconcile(request)
    let orders = try String(contentsOf: directory.appendingPathComponent("orders.csv"), encoding: .utf8)
    #expect(orders.contains("\r\norder,user,\(expected),1,USD,9.99,"), "\(orders)")
  }
}
