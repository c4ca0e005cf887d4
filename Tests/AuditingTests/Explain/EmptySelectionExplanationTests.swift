import Foundation
import Postgres
import Reconciliation
import Settings
import Testing

@testable import Auditing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

@Suite struct EmptySelectionExplanationTests {
  @Test func theRemedyNamesTheDaysAndTheFilters() throws {
    let day = try Period(since: "2026-11-24", until: "2026-11-24", in: .gmt)
    let days = try Period(since: "2026-11-01", until: "2026-11-24", in: .gmt)
    let order = Selection.narrowed { $0.orderId = "4711" }
    #expect(
      EmptySelectionExplanation(order, day, days: ("2026-10-21", "2026-10-21")).words
        == "no order is listed: the orders for --order 4711 are of 2026-10-21, and the report covers 2026-11-24; "
        + "add --date 2026-10-21, or run: night-audit explain 4711")
    let user = Selection.narrowed {
      $0.userId = "800"
      $0.productId = "gems"
    }
    #expect(
      EmptySelectionExplanation(user, days, days: ("2026-09-01", "2026-10-21")).words
        == "no order is listed: the orders for --user 800 --product gems are from 2026-09-01 to 2026-10-21, and the "
        + "report covers 2026-11-01 to 2026-11-24; add --since 2026-09-01 --until 2026-10-21")
    let none = EmptySelectionExplanation(order, day, days: nil)
    #expect(none.words == "no order is listed: the shop has none for --order 4711")
    #expect(none.missing == "the shop has no order for --order 4711")
    #expect(EmptySelectionExplanation(order, day, days: ("2026-10-21", "2026-10-21")).missing == nil)
  }

  @Test func anEmptySelectionIsExplainedForEachFilter() async throws {
    let settings = try await CrowdedShop(seed: 1).load(reports: "/nonexistent")
    func words(_ selection: Selection, until day: String = "2026-12-31") async throws -> String? {
      var plan = try CrowdedShop.plan(settings)
      plan.selection = selection
      plan.period = try Period(since: "2026-01-01", until: day, in: .gmt)
      let narrowed = plan
      return try await withBlockingThread { scope in
        let shop = try SalesStore.connect(settings, scope, applicationName: "night-audit tests")
        return try EmptySelectionExplanation(narrowed, SalesRows(settings), in: .gmt, on: shop)?.words
      }
    }
    let order = Selection.narrowed { $0.orderId = "order-7" }
    #expect(try await words(order) == nil)
    #expect(try await words(Selection()) == nil)
    #expect(
      try await words(Selection.narrowed { $0.productId = "no such" })
        == "no order is listed: the shop has none for --product no such")
    #expect(try await words(order, until: "2026-01-01")?.contains("; add --date 2026-") == true)
    #expect(
      try await words(Selection.narrowed { $0.userId = "nobody" })
        == "no order is listed: the shop has none for --user nobody")
  }
}
