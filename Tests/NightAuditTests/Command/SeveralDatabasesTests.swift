import Logging
import Postgres
import Reconciliation
import SalesStore
import Settings
import TestSupport
import Testing

@testable import NightAudit
@testable import Run

/// Orders in several databases, which no snapshot spans.
@Suite struct SeveralDatabasesTests {
  /// The foreign table is never read, because its condition is constant.
  private static let elsewhere = """
    CREATE EXTENSION postgres_fdw; CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
    CREATE SCHEMA shop; ALTER TABLE sales.orders SET SCHEMA shop;
    CREATE FOREIGN TABLE shop.elsewhere (order_id text) SERVER elsewhere;
    CREATE VIEW sales.orders AS
      SELECT o.* FROM shop.orders o WHERE o.order_id NOT IN (SELECT e.order_id FROM shop.elsewhere e WHERE false)
    """

  @Test func commandsDescribeAnInstantTenMinutesBeforeTheirStart() async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    // A skew beyond ten minutes must not make later rows known.
    settings.clockSkew = .hours(1)
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "tests")
    try await session.withConnection { try SalesSchema.create("sales", $0) }
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let run = NightRun(
      settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))

    let whole = try await run.requireSales(NightRequest(asOf: nil))
    #expect(whole.hasOneSnapshot && !run.isPastAudit(whole))

    try await session.executeScript(Self.elsewhere)
    await session.close()
    let several = try await run.requireSales(NightRequest(asOf: nil))
    #expect(!several.hasOneSnapshot && several.asOf == run.startedAt - .minutes(10))
    #expect(try run.plan(several).isPastAudit && !run.plan(several).hasOneSnapshot)
    let early = run.startedAt - .days(1)
    #expect(try await run.requireSales(NightRequest(asOf: early)).asOf == early)
    await #expect(throws: LateAsOfError.self) { try await run.requireSales(NightRequest(asOf: run.startedAt)) }
  }
}
