import AuditStore
import Auditing
import Logging
import Postgres
import Reconciliation
import SalesStore
import Settings
import TestSupport
import Testing

@testable import NightAudit
@testable import Run

/// Orders in another database, or in several, which no snapshot spans.
@Suite struct SeveralDatabasesTests {
  /// The foreign table is never read, because its condition is constant.
  private static let elsewhere = """
    CREATE EXTENSION postgres_fdw;
    CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (options '-c row_security=off');
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
    let run = run(settings)

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

  private func run(_ settings: Settings) -> NightRun {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    return NightRun(
      settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))
  }

  /// An ID with a character that the encoding of the shop's database lacks is in no row, and is no error.
  @Test func anIDThatTheShopsEncodingLacksIsNotThere() async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    let shop = try await PrivatePostgres.shared().createDatabase(encoding: "LATIN1")
    settings.salesURL = shop
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    let own = try await PostgresSession.connect(settings.databaseURL, applicationName: "tests")
    _ = try await own.withConnection { try Migrator.migrate($0) }
    await own.close()
    let sales = try await PostgresSession.connect(shop, applicationName: "tests")
    try await sales.withConnection { try SalesSchema.create("sales", $0) }
    await sales.close()
    let run = run(settings)
    let explain = Explain(settings: settings)
    for (id, isLacking) in [("\u{E9}", false), ("\u{65E5}", true)] as [(Identifier, Bool)] {
      for isOrder in [true, false] {
        var draft = NightRequest(asOf: nil)
        if isOrder { draft.selection.orderId = id } else { draft.selection.userId = id }
        let request = draft
        #expect(try await run.requireSales(request).selection.matchesNoRow == isLacking)
        _ = try await run.reconcile(request)
        _ = try await run.dueOnly(request)
      }
      await #expect(throws: Explain.Missing.self) { try await explain.order(id, asOf: .now) }
    }
  }
}
