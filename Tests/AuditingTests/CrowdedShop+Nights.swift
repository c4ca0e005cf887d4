import AppStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Settings
import ShopDatabases
import TestSupport

@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

extension CrowdedShop {
  struct Arrival: Hashable, Sendable, CustomStringConvertible {
    var seed: UInt64
    var nights: Int
    var description: String { "order \(seed) over \(nights) nights" }
  }

  /// Fills a database and returns the settings to audit it. `audit` is called after each night except the last.
  func load(
    reports: String, database: String? = nil, arrival: Arrival? = nil,
    audit: (Settings, Instant) async throws -> Void = { _, _ in }
  ) async throws -> Settings {
    try await Self.load([self], reports: reports, database: database, arrival: arrival, audit: audit)
  }

  /// Fills a database with several wide worlds. The byte order of their IDs differs from that of every language.
  static func load(
    wide seeds: Range<UInt64>, reports: String, database: String? = nil, arrival: Arrival,
    audit: (Settings, Instant) async throws -> Void = { _, _ in }
  ) async throws -> Settings {
    let letters = ["w", "Z", "\u{E4}", "W", "Ae", "a", "-w", "_"]
    let shops = seeds.map { CrowdedShop(seed: $0, prefix: "\(letters[Int($0 % 8)])\($0)-", isWide: true) }
    return try await load(shops, reports: reports, database: database, arrival: arrival, audit: audit)
  }

  private static func load(
    _ shops: [CrowdedShop], reports: String, database: String?, arrival: Arrival?,
    audit: (Settings, Instant) async throws -> Void
  ) async throws -> Settings {
    var settings = Settings()
    if let database {
      settings.databaseURL = database
    } else {
      settings.databaseURL = try await PrivatePostgres.shopDatabase()
    }
    settings.apps = [Settings.App(name: "game", bundleId: Self.bundle)]
    settings.channel = .verifyReceipt
    if shops.contains(where: \.isWide) { settings.apps.append(Settings.App(name: "second", bundleId: second)) }
    settings.testUsers = shops.flatMap { $0.world.rules.testUsers.map(\.text) }
    // Half of the orders have findings, which must not hold the night.
    settings.holdShare = .whole
    settings.reportDirectory = reports
    settings.formats = [.csv]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    if database != nil {
      try await session.withConnection { connection in
        try SalesSchema.create("sales", connection)
        _ = try Migrator.migrate(connection)
      }
    }
    try await session.executeScript(shops.map { $0.world.salesRows() }.joined(separator: "\n"))
    let connect: @Sendable () async throws -> PostgresSession = { [url = settings.databaseURL] in
      try await PostgresSession.connect(url, applicationName: "night-audit tests")
    }
    let queue = try await CheckQueue.open(
      settings: settings, asOf: Self.asOf, isPastAudit: false, selection: Selection(), connect: connect,
      connectSales: connect)
    try await queue.enqueue()
    var results = shops.flatMap(\.results).filter { $0.outcome != .pending }
    if let arrival {
      var chance = SeededGenerator(seed: arrival.seed)
      results.shuffle(using: &chance)
      // Missing answers come last, because their age counts.
      results = results.filter { $0.outcome != .unanswered } + results.filter { $0.outcome == .unanswered }
    }
    let nights = arrival?.nights ?? 1
    let store = OpenSession(open: connect)
    for night in 1...nights {
      let asOf = Self.asOf - .days(Int64(nights - night))
      let writer = AnswerWriter(session: store, asOf: asOf, runId: Self.runId, settings: settings)
      let share = results.prefix((results.count + nights - night) / (nights - night + 1))
      results.removeFirst(share.count)
      // The facts are written in batches, to test that folding is incremental.
      for start in stride(from: share.startIndex, to: share.endIndex, by: 20 * shops.count) {
        try await writer.write(Array(share[start..<min(start + 20 * shops.count, share.endIndex)]))
      }
      _ = try await SystemicGuard(asOf: asOf, settings: settings).decide(
        worker: queue.worker, isWhole: true, store: store, source: queue.source)
      if night < nights { try await audit(settings, asOf) }
    }
    await store.close()
    await queue.close()
    await session.close()
    return settings
  }

  private static let runId = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"

  private var results: [CheckResult] {
    world.receipts.map { receipt in
      let history = CheckHistory(dated: receipt.receivedAt, knownSince: receipt.receivedAt)
      var check = CheckInProgress(
        row: CheckRow(subject: CheckSubject(kind: .receipt, id: receipt.receiptId), history: history))
      let state = receipt.state
      (check.shop.orderId, check.kind) = (receipt.orderId, state.kind)
      var result = CheckResult(of: check, state.outcome, state.reason, channel: .verifyReceipt)
      (result.environment, result.bundleId) = (state.environment, state.bundleId)
      result.signedTransactionId = state.signedTransactionId?.text
      result.facts = facts[receipt.receiptId] ?? []
      result.containedCount = result.facts.count
      return result
    }
  }
}

extension CrowdedShop {
  /// A user orders a product again and states its restore: one purchase with two IDs.
  static let restorer = buyer(
    "restorer", of: "gold", orders: "'order-7r' || number", transactions: "'t' || number || '-sale'",
    original: "'t1-sale'"
  )

  static let buyerOfTwo = buyer(
    "buyer of two", of: "gems", orders: "'order-8' || number", transactions: "'buyer-' || number")

  /// Two orders that state their transactions, bought a microsecond apart.
  private static func buyer(
    _ user: String, of product: String, orders: String, transactions: String, original: String = "transaction_id"
  ) -> String {
    """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id, created_at,
        updated_at)
      SELECT \(orders), '\(user)', '\(product)', 1, 9.90, 'USD', 'verified', \(transactions), bought, bought
      FROM (SELECT number, timestamptz 'epoch' + (\((asOf - .days(2)).microseconds) + number)
        * interval '1 microsecond' AS bought FROM generate_series(1, 2) number) two;
    INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        quantity, purchased_at, revocation_told_at, tells_account_token, is_contradictory, channel, signed_at, checked_at)
      SELECT 'Production', transaction_id, \(original), '\(bundle)', product_id, 1, created_at, created_at, false, false,
        'serverApi', created_at, created_at
      FROM sales.orders WHERE user_id = '\(user)';
    """
  }

  /// Orders and receipts without an ID, a repeated order, and a catalogue.
  static let brokenRows = """
    CREATE VIEW sales.products AS SELECT 'gems' AS product_id, 'Non-Consumable' AS type, NULL::text AS name,
      NULL::timestamptz AS sold_from, NULL::timestamptz AS sold_until;
    \(repeatedDeliveries)
    ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey, ALTER order_id DROP NOT NULL;
    INSERT INTO sales.orders (SELECT v.order_id, v.user_id, bundle_id, product_id, quantity, amount, currency, status, NULL,
      NULL, created_at, NULL, updated_at FROM sales.orders o,
      (VALUES (NULL, 'b'), ('', 'c'), (NULL, 'a long one')) AS v (order_id, user_id) WHERE o.order_id = 'order-7');
    INSERT INTO sales.orders SELECT * FROM sales.orders WHERE order_id = 'order-30';
    ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey, ALTER receipt_id DROP NOT NULL;
    INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at) (SELECT v.receipt_id,
      v.order_id, 'u', 'x', 'verified', o.created_at FROM sales.orders o, (VALUES (NULL, 'order-9'), ('', 'order-3'),
      (NULL, 'a long one'), (NULL, NULL)) AS v (receipt_id, order_id) WHERE o.order_id = 'order-7');
    \(buyerOfTwo)
    \(restorer)
    """

  /// Repeated delivery IDs: on existing orders, without an order, and on an order that does not exist.
  static let repeatedDeliveries = """
    ALTER TABLE sales.deliveries DROP CONSTRAINT deliveries_pkey;
    INSERT INTO sales.deliveries (SELECT delivery_id, 'order-9', user_id, product_id, quantity, delivered_at, NULL
      FROM sales.deliveries WHERE delivery_id IN ('d1', 'd2', 'd3'));
    INSERT INTO sales.deliveries (SELECT v.delivery_id, v.order_id, v.user_id, 'gems', 1, d.delivered_at, NULL
      FROM sales.deliveries d, (VALUES ('d-none', '', 'user-2'), ('d-none', NULL, 'user-1'), ('d-gone', 'gone', 'b'),
        ('d-gone', 'gone', 'a long one')) AS v (delivery_id, order_id, user_id) WHERE d.delivery_id = 'd5');
    """
}
