import AppStore
import Postgres
import Reconciliation
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run

/// Counts the stored transactions that are sales, and those that notifications reported.
@Suite struct FeedMeasurementTests {
  private static let asOf = Instant(seconds: 1_795_143_600)
  private static let bundle = "com.example.game"

  struct Sale: Sendable {
    var id: String
    var original: String?
    var period: String?
    var hasExpiry = false
    var environment = AppleEnvironment.production
    var bundle = FeedMeasurementTests.bundle
    var ownership: String?
    var age = Span.days(3)
    var notified: Span? = .days(3)
  }

  /// `expected` is the number of sales with a notification, and the number of all sales.
  @Test(
    arguments: [
      ("reported and not", [Sale(id: "1"), Sale(id: "2", notified: nil)], [1, 2]),
      ("sandbox only", [Sale(id: "1", environment: .sandbox)], nil),
      ("another app", [Sale(id: "1", bundle: "com.example.other")], nil),
      ("a restore and its purchase", [Sale(id: "1"), Sale(id: "2", original: "1", notified: nil)], [1, 1]),
      ("family sharing", [Sale(id: "1"), Sale(id: "2", ownership: "FAMILY_SHARED", notified: nil)], [1, 1]),
      ("a notification after the as-of", [Sale(id: "1", notified: .hours(-1))], [0, 1]),
      ("sales outside the window", [Sale(id: "1", age: .days(121)), Sale(id: "2", age: .seconds(3_599))], nil),
      (
        "one period with two IDs, and the next",
        [
          Sale(id: "1", original: "1", period: "w1", hasExpiry: true, notified: nil),
          Sale(id: "2", original: "1", period: "w1", hasExpiry: true),
          Sale(id: "3", original: "1", period: "w2", hasExpiry: true, notified: nil),
        ], [1, 2]
      ),
      (
        "periods without an item ID",
        [
          Sale(id: "1", original: "1", hasExpiry: true, age: .days(40)),
          Sale(id: "2", original: "1", hasExpiry: true, notified: nil),
        ], [1, 2]
      ),
    ] as [(String, [Sale], [Int]?)])
  func salesAreCountedByPurchase(_ name: String, _ sales: [Sale], _ expected: [Int]?) async throws {
    let measured = try await measure(sales)
    #expect(measured["game"].map { [$0.reported, $0.sales] } == expected, "\(name)")
  }

  @Test func anAppWithoutSweepOrKeyHasNoCoverage() async throws {
    #expect(try await measure([Sale(id: "1")], channel: .verifyReceipt).isEmpty)
    #expect(try await measure([Sale(id: "1")], unswept: .offerRedeemed).isEmpty)
    #expect(try await measure([Sale(id: "1")], unswept: .refund)["game"]?.share == 1)
  }

  @Test func aReportOfOneAppNamesTheUncheckedKindsOfThatAppAlone() {
    var settings = Settings()
    settings.apps = ["x", "y"].map { Settings.App(name: "app " + $0, bundleId: $0) }
    settings.channel = .verifyReceipt
    var selection = Selection()
    #expect(settings.notChecked([:], in: selection).keys.sorted() == ["app x", "app y"])
    selection.bundleId = "y"
    #expect(settings.notChecked([:], in: selection).keys.sorted() == ["app y"])
  }

  private func measure(
    _ sales: [Sale], channel: Settings.Channel = .serverApi, unswept: SweptType? = nil
  ) async throws -> [String: FeedCoverage] {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.storeDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: Self.bundle)]
    settings.channel = channel
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.execute(
      """
      INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt)
      SELECT $1, 'Production', t, $2, $2 FROM unnest($3::text[]) t
      """,
      [
        .text(Self.bundle), .timestamp(Self.asOf.microseconds),
        .textArray(SweptType.allCases.filter { $0 != unswept }.map(\.rawValue)),
      ])
    for sale in sales {
      let date = Self.asOf - sale.age
      try await session.execute(
        """
        INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
          web_order_line_item_id, purchased_at, expires_at, ownership, notified_at, tells_account_token, is_contradictory,
          channel, signed_at, checked_at)
        VALUES ($1, $2, $3, $4, 'gems', $5, $6, $7, $8, $9, false, false, 'serverApi', $6, $6)
        """,
        [
          .text(sale.environment.rawValue), .text(sale.id), .text(sale.original ?? sale.id), .text(sale.bundle),
          .text(sale.period), .timestamp(date.microseconds),
          .timestamp(sale.hasExpiry ? (date + .days(30)).microseconds : nil), .text(sale.ownership),
          .timestamp(sale.notified.map { (Self.asOf - $0).microseconds }),
        ])
    }
    let complete = settings
    let measured = try await session.withConnection {
      try FeedCoverage.measured(complete, asOf: Self.asOf, on: $0)
    }
    await session.close()
    return measured
  }
}
