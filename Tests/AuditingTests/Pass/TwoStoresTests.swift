import Foundation
import Postgres
import Reconciliation
import Reporting
import Settings
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

/// The shop's store and our own may be two servers, one of them a hot standby, so no query joins them.
@Suite(.serialized) struct TwoStoresTests {
  @Test func aStandbyIsAuditedAndExplainedLikeThePrimary() async throws {
    let folder = try TemporaryDirectory()
    let primary = try await PrivatePostgres.start()
    let shop = CrowdedShop(seed: 8)
    var settings = try await shop.load(reports: folder.file(""), database: try await primary.createDatabase())
    try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("one"))

    let standby = try await primary.startStandby()
    try await standby.catchUp(with: primary)
    let name = try #require(settings.databaseURL.split(separator: " ").last { $0.hasPrefix("dbname=") }).dropFirst(7)
    settings.salesURL = standby.conninfo(database: String(name))
    // From here on, the shop's relations exist only on the standby, changes to our schema only on the primary.
    try await execute(standby.conninfo(database: "postgres"), "SELECT pg_wal_replay_pause()")
    try await execute(settings.databaseURL, "DROP SCHEMA sales CASCADE")
    try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("two"))
    for file in CrowdedShop.files {
      #expect(try CrowdedShop.bytes(folder.file("one"), file) == CrowdedShop.bytes(folder.file("two"), file), "\(file)")
    }
    for id in shop.orderIds.prefix(10) {
      _ = try await Explain(settings: settings).order(Identifier(id), asOf: CrowdedShop.asOf)
    }
    await #expect(throws: Explain.Missing.self) {
      try await Explain(settings: settings).order("no such order", asOf: CrowdedShop.asOf)
    }
  }

  /// The columns' collation ignores case.
  @Test func changedOrdersAreComparedByBytesAcrossStores() async throws {
    let (ownURL, shopURL) = (
      try await PrivatePostgres.shared().createDatabase(), try await PrivatePostgres.shared().createDatabase()
    )
    let (start, end) = (Instant(seconds: 1_795_000_000), Instant(seconds: 1_795_100_000))
    let changed: Int64 = 1_795_050_000
    let told = try await withBlockingThread { scope -> [[String]] in
      let own = try scope.connect(ownURL, applicationName: "night-audit tests")
      let shop = try scope.connect(shopURL, applicationName: "night-audit tests")
      _ = try Migrator.migrate(own)
      try own.executeScript(
        """
        INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, order_id, delivery_id, reason,
          first_seen, opened_at, last_seen)
        VALUES ('f-order', 'paid_not_delivered', 'critical', 'order', 'a', 'a', NULL, 'x', now(), now(), now()),
          ('f-delivery', 'bad_row', 'minor', 'delivery', 'd1', NULL, 'd1', 'x', now(), now(), now())
        """)
      try SalesSchema.create("sales", shop)
      try shop.executeScript(
        """
        CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
        ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey, ALTER order_id TYPE text COLLATE public.loose;
        ALTER TABLE sales.deliveries DROP CONSTRAINT deliveries_pkey, ALTER order_id TYPE text COLLATE public.loose,
          ALTER delivery_id TYPE text COLLATE public.loose;
        INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
          SELECT id, 'u', 'gems', 1, 9.90, 'USD', status, to_timestamp(1794000000), to_timestamp(\(changed))
          FROM (VALUES ('a', 'refunded'), ('A', 'failed')) AS o (id, status);
        INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
          VALUES ('d1', 'a', 'u', 'gems', 1, to_timestamp(\(changed))), ('D1', 'A', 'u', 'gems', 2, to_timestamp(\(changed)))
        """)
      let ids = ["f-delivery", "f-order"]
      let between: [PostgresValue] = [
        .timestamp(start.microseconds), .timestamp(end.microseconds), PostgresValue.text(nil),
      ]
      var reasons = try ChangeReasons(
        findingIds: ids, condition: "e.as_of > $1 AND e.as_of <= $2 AND $3::uuid IS NULL", parameters: between,
        withClaims: true, on: own)
      try reasons.add(
        ids, after: start, upTo: end, sales: SalesRows(schema: "sales"), shop: shop, on: own)
      return ids.map { reasons[$0] }
    }
    let day = "2026-11-19T01:00:00Z"
    let delivered = day + " delivered: delivery d1 of 1 to user u"
    #expect(told == [[delivered], [delivered, day + " the shop changed the order: refunded"]])
  }

  @Test func rowsHiddenFromTheStreamAreDetected() async throws {
    let folder = try TemporaryDirectory()
    let shop = CrowdedShop(seed: 9)
    let settings = try await shop.load(reports: folder.file(""))
    try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("whole"))
    try await execute(
      settings.databaseURL,
      """
      ALTER SCHEMA sales RENAME TO shop;
      CREATE SCHEMA sales;
      CREATE VIEW sales.receipts AS SELECT * FROM shop.receipts;
      CREATE VIEW sales.deliveries AS SELECT * FROM shop.deliveries;
      CREATE VIEW sales.orders AS SELECT * FROM shop.orders
      WHERE current_query() NOT LIKE '%ORDER BY%' OR order_id <> 'order-7'
      """)
    do {
      try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("hidden"))
      Issue.record("the audit did not detect the hidden order")
    } catch let error as ReportError {
      #expect(ExitStatus(for: error) == .internalError)
      #expect("\(error)".contains("60") && "\(error)".contains("59"), "\(error)")
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("hidden")))
  }

  @Test func aReportSaysThatNoSnapshotSpansTheShopsStore() async throws {
    let folder = try TemporaryDirectory()
    var settings = try await CrowdedShop(seed: 9).load(reports: folder.file(""))
    settings.formats = [.csv, .xlsx]
    let whole = try await CrowdedShop.outcome(settings, CrowdedShop.asOf, folder.file("whole"))
    let late = try await CrowdedShop.outcome(
      settings, CrowdedShop.asOf, folder.file("late"), hasOneSnapshot: false)
    #expect(whole.summary.asOfText == nil)
    #expect(late.summary.asOfText?.contains("ten minutes") == true)
    let page = String(decoding: try CrowdedShop.bytes(folder.file("late"), "report.html"), as: UTF8.self)
    #expect(page.contains("No snapshot spans the shop"))
  }

  /// Each connection reads the foreign tables of a server in its own snapshot, so one reader reads all of them.
  @Test func theSnapshotScopeFollowsTheBaseTables() async throws {
    let url = try await PrivatePostgres.shared().createDatabase()
    func reach() async throws -> SnapshotScope {
      let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
      let reach = try await session.withConnection { try SnapshotScope(of: "sales", on: $0) }
      await session.close()
      return reach
    }
    try await execute(
      url,
      """
      CREATE EXTENSION postgres_fdw; CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw;
      CREATE SCHEMA shop; CREATE SCHEMA sales;
      CREATE TABLE shop.orders (id text, at date) PARTITION BY RANGE (at);
      CREATE TABLE shop.orders_here PARTITION OF shop.orders DEFAULT;
      CREATE VIEW shop.orders_beneath AS SELECT * FROM shop.orders;
      CREATE FOREIGN TABLE shop.others (id text) SERVER elsewhere;
      CREATE VIEW sales.orders AS SELECT * FROM shop.orders_beneath;
      CREATE VIEW sales.others AS SELECT * FROM shop.others
      """)
    #expect(try await reach() == .everyConnection)
    try await execute(
      url,
      """
      CREATE FOREIGN TABLE shop.orders_there PARTITION OF shop.orders FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')
      SERVER elsewhere
      """)
    #expect(try await reach() == .noConnection, "local and foreign rows")
    try await execute(url, "DROP TABLE shop.orders_here")
    #expect(try await reach() == .oneConnection)
    try await execute(
      url,
      """
      CREATE SERVER nowhere FOREIGN DATA WRAPPER postgres_fdw;
      CREATE FOREIGN TABLE sales.deliveries (id text) SERVER nowhere
      """)
    #expect(try await reach() == .noConnection, "two servers")
    try await execute(
      url,
      """
      DROP VIEW sales.orders; DROP FOREIGN TABLE sales.deliveries;
      CREATE MATERIALIZED VIEW sales.orders AS SELECT * FROM shop.orders_beneath WITH NO DATA
      """)
    #expect(try await reach() == .everyConnection, "a copy of foreign rows")
  }

  @Test func oneDeliveryIdOnTwoOrdersCountsForTheFirst() async throws {
    let folder = try TemporaryDirectory()
    let shop = CrowdedShop(seed: 12)
    let settings = try await shop.load(reports: folder.file(""))
    let before = try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("before"))
    try await execute(
      settings.databaseURL,
      """
      ALTER SCHEMA sales RENAME TO shop; CREATE SCHEMA sales;
      CREATE VIEW sales.orders AS SELECT * FROM shop.orders;
      CREATE VIEW sales.receipts AS SELECT * FROM shop.receipts;
      CREATE VIEW sales.deliveries AS SELECT * FROM shop.deliveries UNION ALL
        SELECT delivery_id, 'order-9', user_id, product_id, quantity, delivered_at, revoked_at FROM shop.deliveries
        WHERE delivery_id = (SELECT min(delivery_id) FROM shop.deliveries WHERE quantity > 0 AND order_id < 'order-9')
      """)
    let after = try await CrowdedShop.audit(settings, CrowdedShop.asOf, folder.file("after"))
    let bad = after["findings.csv"]?.filter { $0.contains { $0.contains("delivery_id is not unique") } } ?? []
    #expect(bad.count == 1, "\(bad)")
    func rows(_ audit: [String: [[String]]]) -> [[String]] {
      (audit["orders.csv"] ?? []).map { row in row.filter { !$0.contains("bad_row") && !$0.contains("_twice") } }
    }
    #expect(rows(after).map { $0.prefix(12) } == rows(before).map { $0.prefix(12) })
    let explanation = try await Explain(settings: settings).order("order-9", asOf: CrowdedShop.asOf)
    #expect(explanation.deliveries.contains { $0.defect?.contains("delivery_id is not unique") ?? false })
  }
}
