import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Settings
import TestSupport
import Testing

@testable import Auditing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

@Suite struct NarrowedReportTests {
  /// The counts decide whether a sheet has all rows.
  @Test func countsAgreeWithTheListedRows() async throws {
    let folder = try TemporaryFolder()
    let settings = try await CrowdedShop(seed: 1).load(reports: "/nonexistent")
    func narrowed(_ change: (inout Selection) -> Void) -> Selection {
      var selection = Selection()
      change(&selection)
      return selection
    }
    let selections = [
      Selection(), narrowed { $0.orderId = "order-7" }, narrowed { $0.userId = "user-1" },
      narrowed { $0.productId = "gems" }, narrowed { $0.bundleId = CrowdedShop.bundle },
      narrowed { $0.bundleId = "com.example.another" },
    ]
    var orders: [Int] = []
    for (number, selection) in selections.enumerated() {
      var plan = try PartsTests.plan(settings)
      plan.selection = selection
      let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: PartsTests.quiet)
      let path = folder.path("\(number)")
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

  @Test("An audit without a report counts a withdrawn refund as a report does, and one of an order lists its own")
  func withdrawnRefunds() async throws {
    let folder = try TemporaryFolder()
    let settings = try await CrowdedShop(seed: 1).load(reports: "/nonexistent")
    _ = try await CrowdedShop.outcome(settings, CrowdedShop.asOf, folder.path("before"))
    let refunds = try #require(try CrowdedShop.tables(folder.path("before"))["refunds.csv"])
    let place = try #require(refunds[0].firstIndex(of: "order_id"))
    let orders = refunds.dropFirst().map { $0[place] }
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    let later = CrowdedShop.asOf + .days(1)
    _ = try await session.execute(
      """
      UPDATE night_audit.transactions SET revoked_at = NULL, revocation_withdrawn_at = $1 WHERE revoked_at IS NOT NULL
      """, [.timestamp((later - .hours(1)).microseconds)])
    await session.close()
    func adjusted(_ orderId: String?, _ destination: String?) async throws -> Int? {
      var plan = try PartsTests.plan(settings)
      plan.rules.asOf = later
      let day = Period.dayText(of: later, in: settings.timeZone)
      plan.period = try Period(since: day, until: day, in: settings.timeZone)
      plan.selection.orderId = orderId.map { Identifier($0) }
      let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: PartsTests.quiet)
      let path = destination.map { folder.path($0) }
      let outcome = try await withBlockingThread { scope in
        try audit.report(scope, destination: path.map { .exact($0) }, saving: nil) { _, _ in }
      }
      return outcome.summary.changes.counts[.adjusted]
    }
    let written = try await adjusted(nil, "after")
    let counted = try await adjusted(nil, nil)
    #expect(counted == written)
    let order = try #require(orders.first { !$0.isEmpty })
    _ = try await adjusted(order, "narrowed")
    let changes = String(decoding: try CrowdedShop.bytes(folder.path("narrowed"), "changes.csv"), as: UTF8.self)
    let lines = changes.split(separator: "\n")
    #expect(lines.contains { $0.contains("refund") && $0.contains(order) }, "\(changes)")
  }
}
