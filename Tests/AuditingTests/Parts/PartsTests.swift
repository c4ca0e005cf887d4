import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import SalesStore
import Settings
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SampleWorlds

/// No byte of a report depends on the number of parts or on their cuts.
@Suite struct PartsTests {
  static func report(
    _ settings: Settings, _ folder: String, readers: Int? = nil, partition: AuditPartition? = nil,
    pieces: String? = nil
  ) async throws -> [String: Data] {
    var plan = try CrowdedShop.plan(settings)
    (plan.readers, plan.parts) = (readers, pieces)
    var audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    audit.partition = partition
    let complete = audit
    _ = try await withBlockingThread { scope in
      try complete.report(scope, destination: .exact(folder), saving: nil) { _, _ in }
    }
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      files[name] = try CrowdedShop.bytes(folder, name)
    }
    return files
  }

  @Test func aReaderUsesThreeConnections() async throws {
    let settings = try await CrowdedShop(seed: 6).load(
      reports: "/nonexistent", arrival: CrowdedShop.Arrival(seed: 5, nights: 1))
    try await withBlockingThread { scope in
      let stores = try AuditStores(settings, scope)
      let further = try stores.further(2)
      let sessions = try stores.rows.own.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'night-audit'"
      ).single().int64(0)
      #expect(further.count == 2 && sessions == Int64(3 * AuditStores.connectionsOfReader))
      #expect(try stores.affordableReaders() > 1)
    }
  }

  static func expectEqual(_ files: [String: Data], _ expected: [String: Data], _ comment: Comment) {
    #expect(files.keys.sorted() == expected.keys.sorted(), comment)
    for (name, content) in expected { #expect(files[name] == content, "\(name): \(comment)") }
  }

  /// Random cuts at, between, before and after existing IDs, for each kind of ID.
  private static func partition(_ seed: UInt64) -> AuditPartition {
    var chance = SeededGenerator(seed: seed)
    func cuts(_ prefix: String, _ range: Range<Int>) -> Cuts {
      Cuts(
        (0..<Int.random(in: 0...6, using: &chance)).map { _ in
          Identifier("\(prefix)\(Int.random(in: range, using: &chance))\(Bool.random(using: &chance) ? "" : "x")")
        })
    }
    return AuditPartition(
      receipts: cuts("r", 0..<90), orders: cuts("order-", 0..<60), transactions: cuts("t", 0..<1_100))
  }

  @Test(arguments: 1...UInt64(Effort.factor))
  func cutsDoNotChangeTheReport(_ seed: UInt64) async throws {
    let folder = try TemporaryDirectory()
    let shop = CrowdedShop(seed: seed)
    var settings = try await shop.load(reports: "/nonexistent")
    settings.formats = [.csv, .xlsx]
    try await execute(settings.databaseURL, CrowdedShop.brokenRows + "ANALYZE")
    let whole = try await Self.report(settings, folder.file("whole"), partition: AuditPartition())
    func lines(_ name: String) -> [Substring] {
      String(decoding: whole[name] ?? Data(), as: UTF8.self).split(whereSeparator: \.isNewline)
    }
    let findings = lines("findings.csv")
    for text in ["bought_twice", "duplicate_claim,major,order-7r2", "delivery_id is not unique"] {
      #expect(findings.contains { $0.contains(text) }, "\(text)")
    }
    #expect(findings.count { $0.contains("d-none") && $0.contains("orphan_delivery") } == 1)
    #expect(lines("orders.csv").map { $0.hasPrefix(",") }.prefix(5) == [false, true, true, true, false])
    #expect(lines("receipts.csv").map { $0.hasPrefix(",") }.prefix(6) == [false, true, true, true, true, false])
    // Nor do the batches in which claim conflicts are matched.
    for (number, batchSize) in [1_000, 1, 7].enumerated() {
      settings.contestBatchSize = batchSize
      let partition = Self.partition(seed * 100 + UInt64(number))
      let parts = try await Self.report(settings, folder.file("\(number)"), partition: partition)
      Self.expectEqual(parts, whole, "\(partition), batches of \(batchSize)")
    }
    // With CSV as the only format, parts format their rows as text, and the files are equal.
    var plain = settings
    plain.formats = [.csv]
    let partition = Self.partition(seed * 100 + 1)
    let parts = try await Self.report(plain, folder.file("text"), partition: partition)
    for (name, content) in parts where name.hasSuffix(".csv") {
      #expect(content == whole[name], "\(name): \(partition)")
    }
    #expect(parts["receipts.csv"]?.isEmpty == false && parts["report.html"] == nil)
    for readers in [2, 5] {
      let read = try await Self.report(settings, folder.file("readers \(readers)"), readers: readers)
      Self.expectEqual(read, whole, "\(readers) readers")
    }
  }

  /// A view that joins receipts with order lines repeats receipts, and orders may have one ID. Neither the order of the
  /// rows nor cuts and readers decide which row counts.
  @Test func repeatedIDsAreBadRowsInAnyOrderAndPart() async throws {
    let folder = try TemporaryDirectory()
    var settings = try await CrowdedShop(seed: 2).load(reports: "/nonexistent")
    settings.formats = [.csv]
    try await execute(
      settings.databaseURL,
      """
      CREATE TABLE public.once AS SELECT * FROM sales.receipts;
      CREATE TABLE public.ordered AS SELECT * FROM sales.orders;
      ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey;
      ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey
      """)
    var expected: [String: Data]?
    for (direction, numbers) in [("ASC", [1, 8]), ("DESC", [1, 3])] {
      try await execute(
        settings.databaseURL,
        """
        TRUNCATE sales.receipts, sales.orders;
        INSERT INTO sales.orders (SELECT * FROM (SELECT * FROM public.ordered UNION ALL SELECT order_id, 'another', bundle_id,
          product_id, quantity, amount + 1, currency, status, transaction_id, app_account_token, created_at, verified_at, updated_at
          FROM public.ordered WHERE order_id IN ('order-3', 'order-4')) o ORDER BY user_id \(direction));
        INSERT INTO sales.receipts (SELECT r.receipt_id, line.order_id, r.user_id, r.payload, r.environment, r.status,
            r.checked_at, r.received_at
          FROM public.once r
          CROSS JOIN LATERAL (VALUES (r.order_id), ('order-9x'), ('order-' || ascii(encode(sha256(convert_to(r.receipt_id, 'UTF8')), 'hex')) % 60), (NULL))
            AS line (order_id)
          ORDER BY encode(sha256(convert_to(r.receipt_id || coalesce(line.order_id, ''), 'UTF8')), 'hex') \(direction));
        ANALYZE;
        """)
      for readers in numbers {
        let files = try await Self.report(settings, folder.file("\(direction) \(readers)"), readers: readers)
        Self.expectEqual(files, expected ?? files, "\(direction), \(readers) readers")
        expected = expected ?? files
      }
    }
    let findings = String(decoding: try #require(expected?["findings.csv"]), as: UTF8.self)
    #expect(findings.contains("receipt_id is not unique") && findings.contains("order_id is not unique"))
  }

  /// A delivery without an ID is a bad row, but no repetition.
  @Test func aDeliveryWithoutAnIDIsNoRepetition() async throws {
    let settings = try await CrowdedShop(seed: 1).load(reports: "/nonexistent")
    try await execute(
      settings.databaseURL,
      """
      ALTER TABLE sales.deliveries DROP CONSTRAINT deliveries_pkey, ALTER delivery_id DROP NOT NULL;
      UPDATE sales.deliveries SET delivery_id = '' WHERE delivery_id IN ('d1', 'd2');
      UPDATE sales.deliveries SET delivery_id = NULL WHERE delivery_id = 'd3'
      """)
    let isNone = try await withBlockingThread { scope in
      let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit tests")
      return try RepeatedDeliveries(SalesRows(settings), shop: connection, directory: NSTemporaryDirectory()).isEmpty
    }
    #expect(isNone)
    let nameless: [RepeatedDeliveries.Row] = [("", "o1", true), ("", "o2", true), ("", nil, true)]
    #expect(RepeatedDeliveries.firstOrders(among: nameless).isEmpty)
  }

  /// Neither an earlier date nor a smaller order ID makes an invalid row count.
  @Test func ofRowsWithOneDeliveryIDAValidOneCounts() {
    func row(_ orderId: Identifier?, _ hours: Int64, defect: String? = nil) -> Delivery {
      Delivery(
        deliveryId: "d", orderId: orderId, userId: "u", productId: "p",
        deliveredAt: CrowdedShop.asOf - .days(1) + .hours(hours), defect: defect)
    }
    /// The hours of the rows without a defect, of rows that come by order.
    func counted(_ orders: [[Delivery]]) -> [Instant] {
      let rows = orders.joined().map { RepeatedDeliveries.row($0) }
      var repeated = RepeatedDeliveries(RepeatedDeliveries.firstOrders(among: rows))
      return orders.flatMap { repeated.mark($0) }.filter { $0.defect == nil }.map(\.deliveredAt)
    }
    let (valid, bad) = (row("o2", 1), row("o2", 0, defect: "quantity 0"))
    let expected = [valid.deliveredAt]
    #expect(counted([[bad, valid]]) == expected && counted([[valid, bad]]) == expected)
    #expect(counted([[row("o1", 0, defect: "quantity 0")], [bad, valid, row("o2", 2)], [row("o3", 0)]]) == expected)
    let ofNone = row(nil, 1)
    #expect(counted([[bad], [ofNone]]) == expected && counted([[bad], [bad]]).isEmpty)
  }

  @Test func statisticsDetermineTheCuts() async throws {
    let shop = CrowdedShop(seed: 1)
    let settings = try await shop.load(reports: "/nonexistent")
    try await execute(
      settings.databaseURL,
      """
      ANALYZE; CREATE SCHEMA views; CREATE VIEW views.orders AS SELECT o.order_id::varchar, d.delivery_id
      FROM sales.orders o LEFT JOIN sales.deliveries d USING (order_id)
      """)
    let orderIds = shop.orderIds
    try await withBlockingThread { scope in
      let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit tests")
      for schema in ["sales", "views"] {
        let rows = try SalesRows(schema: schema)
        let partition = try AuditPartition(rows, readers: 3, shop: connection, own: connection)
        #expect(partition.orders.count == 3, "\(schema)")
        // Parts are nearly equal in size.
        let sizes = (0..<3).map { part in orderIds.count { partition.orders.part(of: Identifier($0)) == part } }
        if schema == "sales" { #expect(sizes.allSatisfy { (18...22).contains($0) }, "\(sizes)") }
        #expect(try AuditPartition(rows, readers: 1, shop: connection, own: connection) == AuditPartition())
        #expect(try AuditPartition(rows, readers: nil, shop: connection, own: connection) == AuditPartition())
      }
    }
  }

  @Test func eachIDIsInExactlyOnePart() {
    let cuts = Cuts(["b", "d", "b"])
    #expect(cuts.count == 3)
    #expect(["", "a", "azzz", "b", "c", "d", "e"].map { cuts.part(of: $0) } == [0, 0, 0, 1, 1, 2, 2])
    #expect(cuts.part(of: nil) == 2)
    #expect(Cuts(quantilesOf: ["c", "a", "d", "b"], count: 2) == Cuts(["c"]))
    #expect(Cuts(quantilesOf: [], count: 5) == .none && Cuts(quantilesOf: ["a"], count: 9).count == 2)
  }
}
