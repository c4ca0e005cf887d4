import Foundation
import Postgres
import Publishing
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

/// A report on one order or user reads few rows and equals the report made from all rows.
@Suite struct NarrowedReadingTests {
  private struct Report {
    var files: [String: String] = [:]
    var counted = ""
  }

  private func report(
    _ settings: Settings, _ selection: Selection, isWhole: Bool, _ folder: String
  ) async throws -> Report {
    var plan = try CrowdedShop.plan(settings)
    plan.selection = selection
    var audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    if isWhole { audit.partition = AuditPartition() }
    let complete = audit
    let outcome = try await withBlockingThread { scope in
      try complete.report(scope, destination: .exact(folder), saving: nil) { _, _ in }
    }
    var report = Report(counted: outcome.totals.salesControls.map { "\($0.name): \($0.left)" }.joined(separator: "; "))
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name != "SHA256SUMS" {
      var content = try CrowdedShop.bytes(folder, name)
      if name == "summary.json" {
        var summary = try JSONSerialization.jsonObject(with: content) as? [String: Any] ?? [:]
        // Control totals contain the numbers of rows read.
        summary["control"] = nil
        content = try JSONSerialization.data(withJSONObject: summary, options: [.sortedKeys, .prettyPrinted])
      }
      report.files[name] = String(decoding: content, as: UTF8.self)
    }
    return report
  }

  /// Compares the reports of each of these orders and users, and of IDs that no row has.
  private func expectTheSame(
    _ settings: Settings, orders orderStride: Int, users userStride: Int, unknown: [Selection] = []
  ) async throws {
    let folder = try TemporaryDirectory()
    let (orders, users) = try await withBlockingThread { scope in
      let shop = try scope.connect(settings.databaseURL, applicationName: "night-audit tests")
      func ids(_ query: String) throws -> [String] {
        try shop.execute(query).compactMap { row throws(PostgresError) in try row.optionalText(0) }
      }
      return (
        try ids("SELECT DISTINCT order_id FROM sales.orders WHERE order_id <> '' ORDER BY 1"),
        try ids("SELECT user_id FROM sales.orders UNION SELECT user_id FROM sales.receipts ORDER BY 1")
      )
    }
    func sample(_ ids: [String], every stride: Int) -> [Identifier] {
      Swift.stride(from: 0, to: ids.count, by: Effort.factor > 1 ? 1 : stride).map { Identifier(ids[$0]) }
    }
    let selections =
      sample(orders, every: orderStride).map { id in Selection.narrowed { $0.orderId = id } }
      + sample(users, every: userStride).map { id in Selection.narrowed { $0.userId = id } } + unknown
    var (listed, rows) = (0, Set<String>())
    for (number, selection) in selections.enumerated() {
      let whole = try await report(settings, selection, isWhole: true, folder.file("whole \(number)"))
      let few = try await report(settings, selection, isWhole: false, folder.file("few \(number)"))
      #expect(few.files.keys.sorted() == whole.files.keys.sorted())
      for (name, content) in whole.files {
        let lines = content.split(whereSeparator: \.isNewline)
        let others = (few.files[name] ?? "").split(whereSeparator: \.isNewline)
        #expect(others.difference(from: lines).isEmpty, "\(name) of \(selection)")
      }
      #expect(few.counted.hasPrefix("orders looked at in the database"), "\(few.counted)")
      listed += (whole.files["findings.csv"] ?? "").split(separator: "\r\n").count - 1
      rows.insert(few.counted)
    }
    // The comparison must have findings, and different rows in different reports.
    #expect(listed > 20 && rows.count > 2, "\(listed) findings, \(rows)")
  }

  @Test(
    "a report on one order or user from few rows equals that from all rows",
    arguments: 1...UInt64(Effort.factor))
  func crowdedShop(_ seed: UInt64) async throws {
    let settings = try await CrowdedShop(seed: seed).load(reports: "/nonexistent")
    try await execute(
      settings.databaseURL,
      """
      CREATE VIEW sales.user_aliases AS SELECT 'user-1'::text AS user_id, 'user-2'::text AS same_as;
      \(CrowdedShop.brokenRows)
      UPDATE sales.receipts SET order_id = 'gone-' || receipt_id WHERE md5(receipt_id) < '2';
      UPDATE sales.receipts SET order_id = NULL WHERE md5(receipt_id) > 'd';
      """)
    try await expectTheSame(
      settings, orders: 15, users: 4,
      unknown: [Selection.narrowed { $0.orderId = "gone-r1" }, .narrowed { $0.userId = "nobody" }])
  }

  @Test("a report on one order or user is complete in a database of several shops")
  func severalShops() async throws {
    let settings = try await CrowdedShop.load(
      wide: 1..<3, reports: "/nonexistent", arrival: CrowdedShop.Arrival(seed: 4, nights: 2))
    try await expectTheSame(settings, orders: 9, users: 4)
  }

  @Test("a report on one order or user from few rows has the same changes as that from all rows")
  func afterANight() async throws {
    let folder = try TemporaryDirectory()
    var settings = try await CrowdedShop(seed: 3).load(reports: folder.file("reports"))
    settings.formats = [.csv]
    try await saveNight(settings, before: CrowdedShop.plan(settings).period, folder.file("night"))
    try await execute(
      settings.databaseURL,
      """
      DELETE FROM sales.deliveries WHERE md5(delivery_id) < '4';
      UPDATE sales.orders SET status = 'refunded' WHERE md5(order_id) < '3';
      UPDATE sales.orders SET user_id = 'user-1' WHERE order_id = 'order-12'
      """)
    try await expectTheSame(settings, orders: 9, users: 3)
  }

  private func saveNight(_ settings: Settings, before period: Period, _ path: String) async throws {
    var plan = try CrowdedShop.plan(settings)
    let asOf = CrowdedShop.asOf - .days(1)
    plan.rules = settings.rules(asOf: asOf)
    plan.period = Period.dayBefore(period.start, in: settings.timeZone)
    let record = RunRecord(
      runId: UUID().uuidString.lowercased(), command: "run", asOf: asOf, period: plan.period,
      timeZone: settings.timeZoneName, configuration: settings.digest, isNightly: true, host: "here")
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await record.begin(session)
    await session.close()
    let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    _ = try await withBlockingThread { scope in
      try audit.report(scope, destination: .exact(path), saving: record) { _, _ in }
    }
  }

  /// The counts decide whether a sheet has all rows.
  @Test func countsAgreeWithTheListedRows() async throws {
    let folder = try TemporaryDirectory()
    let settings = try await CrowdedShop(seed: 1).load(reports: "/nonexistent")
    let selections = [
      Selection(), Selection.narrowed { $0.orderId = "order-7" }, Selection.narrowed { $0.userId = "user-1" },
      Selection.narrowed { $0.productId = "gems" }, Selection.narrowed { $0.bundleId = CrowdedShop.bundle },
      Selection.narrowed { $0.bundleId = "com.example.another" },
    ]
    var orders: [Int] = []
    for (number, selection) in selections.enumerated() {
      var plan = try CrowdedShop.plan(settings)
      plan.selection = selection
      let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
      let path = folder.file("\(number)")
      let counted = try await withBlockingThread { scope in
        _ = try audit.report(scope, destination: .exact(path), saving: nil) { _, _ in }
        let shop = try SalesStore.connect(settings, scope, applicationName: "night-audit tests")
        return try audit.listed(shop, SalesRows(settings))
      }
      let tables = try CrowdedShop.tables(path)
      #expect(tables["orders.csv"]?.count == counted.orders + 1, "\(selection)")
      #expect(tables["receipts.csv"]?.count == counted.receipts + 1, "\(selection)")
      orders.append(counted.orders)
    }
    #expect(orders[0] == 60 && orders[1] == 1 && orders[4] == 60 && orders[5] == 0, "\(orders)")
    #expect((1..<60).contains(orders[3]))
  }
}
