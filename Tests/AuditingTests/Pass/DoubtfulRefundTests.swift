import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import SalesStore
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SampleWorlds

@Suite struct DoubtfulRefundTests {
  @Test func theRefundListAgreesWithTheOrders() async throws {
    let folder = try TemporaryDirectory()
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shopDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: CrowdedShop.bundle)]
    settings.formats = [.csv]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    // An order with its goods, one whose goods were taken back, and one marked `refunded` with its goods.
    try await session.executeScript(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id, created_at,
        updated_at)
      SELECT id, 'user', 'gems', 1, 9.90, 'USD', status, 'T1-' || id, timestamptz '2026-11-17T12:00:00Z',
        timestamptz '2026-11-18T12:00:00Z'
      FROM (VALUES ('back', 'verified'), ('gone', 'refunded'), ('kept', 'refunded')) o (id, status);
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at, revoked_at)
      SELECT 'd-' || order_id, order_id, user_id, product_id, 1, created_at,
        CASE order_id WHEN 'gone' THEN updated_at END FROM sales.orders;
      INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        quantity, purchased_at, revocation_withdrawn_at, revocation_told_at, tells_account_token, is_contradictory, channel,
        signed_at, checked_at)
      SELECT 'Production', transaction_id, transaction_id, '\(CrowdedShop.bundle)', product_id, 1, created_at,
        timestamptz '2026-11-20T00:02:00Z', created_at, false, false, 'serverApi', created_at, created_at FROM sales.orders;
      INSERT INTO night_audit.evidence (run_id, as_of, channel, signed_at, environment, transaction_id, product_id,
        tells_revocation, revoked_at, tells_account_token)
      SELECT gen_random_uuid(), updated_at, 'notification', updated_at, 'Production', transaction_id, product_id, true,
        updated_at, false FROM sales.orders;
      """)
    await session.close()
    var plan = try CrowdedShop.plan(settings)
    plan.isPastAudit = true
    let audit = Audit(settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    _ = try await withBlockingThread { scope in
      try audit.report(scope, destination: .exact(folder.file("report")), saving: nil) { _, _ in }
    }
    let tables = try CrowdedShop.tables(folder.file("report"))
    let orders = try #require(tables["orders.csv"])
    let disposition = try #require(orders.first?.firstIndex(of: "disposition"))
    #expect(orders.dropFirst().map { $0[disposition] } == ["settled", "refunded", "refunded_still_delivered"])
    let refunds = try #require(tables["refunds.csv"])
    #expect(refunds.dropFirst().map { $0[0] } == ["T1-gone", "T1-kept"])
  }
}
