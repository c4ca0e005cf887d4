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
}
