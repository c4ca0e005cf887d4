import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import SampleWorlds

/// A user with a receipt for every order. Each receipt lists all purchases, or all purchases so far like Apple's.
@Suite struct SharedListTests {
  private static let asOf = Instant(seconds: 1_795_132_800)

  private static let effort = Effort.factor

  @Test(arguments: ["TRUE", "n <= r"])
  func eachOrderOwnsOneListedPurchase(listed: String) async throws {
    let count = 60 * Self.effort
    let folder = try TemporaryDirectory()
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shopDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.holdShare = .whole
    settings.formats = [.csv]
    try await execute(
      settings.databaseURL,
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      SELECT 'o' || n, 'bot', 'gems.100', 1, 9.90, 'USD', 'verified', t, t
      FROM generate_series(1, \(count)) n, LATERAL (SELECT to_timestamp(1795000000 + n * 20) AS t) w;
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      SELECT 'r' || n, 'o' || n, 'bot', 'x', 'verified', to_timestamp(1795000000 + n * 20)
      FROM generate_series(1, \(count)) n;
      INSERT INTO night_audit.transactions (environment, transaction_id, bundle_id, product_id, quantity,
        purchased_at, revocation_told_at, tells_account_token, is_contradictory, channel, signed_at, checked_at)
      SELECT 'Production', 't' || n, 'com.example.game', 'gems.100', 1, t, t, false, false, 'verifyReceipt', t, t
      FROM generate_series(1, \(count)) n, LATERAL (SELECT to_timestamp(1795000005 + n * 20) AS t) w;
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
        brought_count)
      SELECT 'receipt', 'r' || n, 'o' || n, to_timestamp(1795000000 + n * 20), 'app', 'verified', \(count)
      FROM generate_series(1, \(count)) n;
      INSERT INTO night_audit.receipt_transactions
      SELECT 'receipt', 'r' || r, 'Production', 't' || n FROM generate_series(1, \(count)) n, generate_series(1, \(count)) r
      WHERE \(listed);
      -- Of what the shop has no more, so many that they come in many messages of the server.
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, outcome, brought_count)
      SELECT kind, 'z' || n, to_timestamp(1795000000), 'verified', 1
      FROM generate_series(1, 20000) n, unnest(ARRAY['receipt', 'lookup']) kind;
      INSERT INTO night_audit.lookups (order_id, subject_id) SELECT 'z' || n, 'z' || n FROM generate_series(1, 20000) n;
      INSERT INTO night_audit.receipt_transactions
      SELECT kind, 'z' || n, 'Production', 'z' || n FROM generate_series(1, 20000) n, unnest(ARRAY['receipt', 'lookup']) kind;
      """)
    let files = try await CrowdedShop.audit(settings, Self.asOf, folder.file("report"))
    let orders = try #require(files["orders.csv"])
    #expect(orders.count == count + 1 && orders.dropFirst().allSatisfy { $0.contains("paid") })
    let owned = orders.dropFirst().compactMap { row in row.first { $0.hasPrefix("t") } }
    #expect(Set(owned).count == count)
  }
}
