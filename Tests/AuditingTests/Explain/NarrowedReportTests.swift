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
    // The report becomes that of a complete night of the day before.
    let night = Period.dayText(of: CrowdedShop.asOf, in: settings.timeZone)
    _ = try await session.execute(
      """
      UPDATE night_audit.runs SET is_nightly = true, complete = true, period_since = $1::text::date,
        period_until = $1::text::date
      """, [.text(night)])
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
    #expect(counted == written && counted ?? 0 > 0)
    let order = try #require(orders.first { !$0.isEmpty })
    _ = try await adjusted(order, "narrowed")
    let changes = String(decoding: try CrowdedShop.bytes(folder.path("narrowed"), "changes.csv"), as: UTF8.self)
    let lines = changes.split(separator: "\n")
    #expect(lines.contains { $0.contains("refund") && $0.contains(order) }, "\(changes)")
  }
}
