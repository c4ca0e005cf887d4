import AuditStore
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import TieOut

/// Tie-outs with a database and report files in a folder.
struct TieOutRunTests {
  /// 2026-11-20T03:00:00Z, an evening in California.
  private static let asOf = Instant(seconds: 1_795_143_600)

  private final class Shop {
    let conninfo: String
    let folder: String

    init() async throws {
      conninfo = try await PrivatePostgres.storeDatabase()
      folder = FileManager.default.temporaryDirectory.appendingPathComponent("tie-out-\(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try await withConnection { connection in
        try connection.executeScript(
          """
          CREATE SCHEMA sales;
          CREATE TABLE sales.orders (order_id text, user_id text, bundle_id text, product_id text, quantity integer,
            amount numeric, currency text, status text, transaction_id text, app_account_token text,
            created_at timestamptz, verified_at timestamptz, updated_at timestamptz);
          """)
      }
    }

    /// A shop with Apple's reports of the last days, one sale a day or the stated units. It knows one payment a day if
    /// `bought`.
    convenience init(days: Int, bought: Bool = false, units: [String: String] = [:]) async throws {
      try await self.init()
      let dates = TieOutRunTests.days(days)
      for date in dates { try drop(date, units: units[date] ?? "1") }
      if bought { try await buy(dates) }
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    @discardableResult
    func withConnection<R: Sendable>(_ body: @Sendable (borrowing BlockingConnection) throws -> R) async throws -> R {
      let session = try await PostgresSession.connect(conninfo, applicationName: "tie-out tests")
      let result = try await session.withConnection(body)
      await session.close()
      return result
    }

    func drop(_ text: String, named name: String) throws {
      try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
    }

    func drop(_ sales: SampleSales, on day: String, vendor: String = "80012345") throws {
      let name = "S_D_\(vendor)_\(day.filter { $0 != "-" }).txt.gz"
      try Data(gzip(sales.bytes)).write(to: URL(fileURLWithPath: folder + "/" + name))
    }

    /// Puts a report of one sale of these units into the folder.
    func drop(_ day: String, units: String = "1", vendor: String = "80012345") throws {
      try drop(TieOutRunTests.sales(day, units: units), on: day, vendor: vendor)
    }

    func drop(detail days: ClosedRange<ReportDay>, rows: [String] = [], named name: String) throws {
      let head = FinanceReportTests.detail.split(separator: "\n").prefix(4).joined(separator: "\n")
        .replacing("11/02/2025", with: TieOutRunTests.american(days.lowerBound))
        .replacing("11/29/2025", with: TieOutRunTests.american(days.upperBound))
      try drop(([head] + rows).map { $0 + "\n" }.joined(), named: name)
    }

    func execute(_ sql: String) async throws { try await withConnection { try $0.executeScript(sql) } }

    func value(_ sql: String) async throws -> String {
      try await withConnection { try $0.execute("SELECT (\(sql))::text").single().optionalText(0) } ?? ""
    }

    /// Stores one payment for each day, with the IDs 0, 1, 2 and so on.
    func buy(_ days: [String]) async throws {
      let rows = days.enumerated().map { "('\($0)', timestamptz '\($1)T20:00:00Z')" }.joined(separator: ", ")
      try await execute(
        """
        INSERT INTO night_audit.transactions (environment, transaction_id, bundle_id, product_id, quantity, purchased_at,
          price_milliunits, currency, storefront, revocation_told_at, tells_account_token, is_contradictory, channel,
          signed_at, checked_at)
        SELECT 'Production', id, 'com.example.game', 'gems60', 1, at, 990, 'USD', 'USA', at, false, false, 'serverApi', at,
          at FROM (VALUES \(rows)) bought (id, at)
        """)
    }

    /// Stores a notification about a refund of the transaction 17 on a day, which a later fact withdrew.
    func withdrawRefund(of day: String, on withdrawal: String, partial: Bool = false) async throws {
      try await execute(
        """
        INSERT INTO night_audit.evidence (run_id, as_of, channel, signed_at, environment, transaction_id, product_id,
          tells_revocation, revoked_at, revocation_percentage, revocation_type, tells_account_token)
        VALUES (gen_random_uuid(), timestamptz '\(day)T03:00:00Z' + interval '1 day', 'notification', '\(day)T21:00:00Z',
          'Production', '17', 'gems60', true, '\(day)T20:00:00Z', \(partial ? "33333, 'REFUND_PRORATED'" : "NULL, NULL"),
          false);
        UPDATE night_audit.transactions SET revocation_withdrawn_at = '\(withdrawal)T20:00:00Z'
        WHERE transaction_id = '17';
        """)
    }

    func unreadableDays(asOf: Instant = TieOutRunTests.asOf) async throws -> Set<ReportDay> {
      try await withConnection { try ConnectReportTable.unreadableDays(asOf: asOf, on: $0) }
    }

    func run(
      after span: Reconciliation.Span = .seconds(0), lookback: Reconciliation.Span = .days(45),
      orders: [JudgedOrder] = [], skus: [String: String?] = ["game": "GAME01"]
    ) async throws -> TieOutOutcome {
      let asOf = TieOutRunTests.asOf + span
      var settings = Settings()
      (settings.databaseURL, settings.lookback, settings.tieOut.folder) = (conninfo, lookback, folder)
      settings.apps = skus.sorted { $0.key < $1.key }
        .map { Settings.App(name: $0.key, bundleId: "com.example.\($0.key)", sku: $0.value) }
      let run = try TieOutRun(settings: settings, asOf: asOf, logger: Logger(label: "tests")) { false }
      let gathered = try await run.gather(mayFetch: true)
      return try await withBlockingThread { scope in
        try run.compare(scope, gathered, temporaryDirectory: NSTemporaryDirectory()) { each in
          for order in orders { try each(order) }
        }
      }
    }

    /// The reasons for the incompleteness of a run.
    func reasons(skus: [String: String?] = ["game": "GAME01"]) async throws -> [String] {
      try await run(skus: skus).record.incompleteReasons
    }

    func gross(vendors: [String]) async throws -> YearGross {
      _ = try await run()
      return try await withConnection {
        try YearGross.read(
          year: 2026, today: try #require(ReportDay("2026-11-19")), asOf: TieOutRunTests.asOf, vendors: vendors, on: $0)
      }
    }

    /// Records the publication of a complete night.
    func publish(after span: Reconciliation.Span = .seconds(0)) async throws {
      let asOf = TieOutRunTests.asOf + span
      let day = TieOutRunTests.businessDay(asOf)
      try await execute(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version, complete, publication)
        VALUES (gen_random_uuid(), 'run', timestamptz 'epoch' + \(asOf.microseconds) * interval '1 microsecond',
          '\(day)', '\(day)', 'UTC', '', true, 'h', '1', true, 'published')
        """)
    }

    func rows(asOf: Instant = TieOutRunTests.asOf + .days(365)) async throws -> [TieOutRow] {
      try await withConnection { connection in
        var rows: [TieOutRow] = []
        let days = ReportDay(number: 0)...ReportDay(number: 40_000)
        try TieOutTable.forEach(days, asOf: asOf, on: connection) { rows.append($0) }
        return rows
      }
    }
  }

  private static let adjustment = TieOutFacts.Revision(
    day: "2026-11-10", vendor: "80012345", before: .one, now: Millionths(5))

  private static func businessDay(_ asOf: Instant) -> String {
    TimeZone.gmt.reportDay(of: asOf - .days(1)).description
  }

  private static func weeks(_ rows: [TieOutRow]) -> [TieOutTotals.Week] {
    var totals = TieOutTotals()
    for row in rows { totals.add(row) }
    return totals.weeks
  }

  private static func american(_ day: ReportDay) -> String {
    let parts = day.description.split(separator: "-")
    return "\(parts[1])/\(parts[2])/\(parts[0])"
  }

  private static func settled(_ day: ReportDay, units: Int = 1, share: String = "0.70") -> String {
    let (date, sum) = (american(day), number(share).times(Millionths(units)) ?? .zero)
    return "\(date)\t\(date)\t1\tgems60\tx\t\tIA1\tUS\t\(units)\t\(share)\t\(sum)\tUSD\t0.99\tUSD\tS\t\t\t\t"
  }

  private static func sales(_ date: String, units: String = "1") -> SampleSales {
    var sales = SampleSales()
    sales.add(units: units, day: ReportDay(date).map(american) ?? date)
    return sales
  }

  private static func days(_ count: Int) -> [String] {
    // 2026-11-18, the day before the as-of in California.
    let yesterday = ReportDay(number: 20_775)
    return (0..<count).map { yesterday.advanced(by: -$0).description }
  }

  private static func order(
    _ minorUnits: Int64 = 99, _ code: String = "USD", on day: String = "2026-11-10", isBooked: Bool = true,
    isAwaited: Bool = false, renewals: [Identifier] = []
  ) throws -> JudgedOrder {
    JudgedOrder(
      productId: "gems60", amount: Money(minorUnits: minorUnits, currency: try #require(Currency(code: code))),
      bookedAt: Instant(seconds: Int64(try #require(ReportDay(day)).number) * 86_400) + .hours(20),
      isBooked: isBooked, isAwaited: isAwaited, renewals: renewals)
  }

  @Test func aPaymentKnownToAppleOnlyIsUnexplainedAndAFinding() async throws {
    let shop = try await Shop(days: 53, bought: true, units: ["2026-11-10": "3"])
    let outcome = try await shop.run()
    #expect(outcome.isComplete, "\(outcome.record.incompleteReasons)")
    #expect(outcome.totals.unexplained == Millionths(2))
    #expect(outcome.totals.apple == outcome.totals.ours + outcome.totals.explained.sum + outcome.totals.unexplained)
    let week = try #require(outcome.weeks.first)
    #expect(outcome.weeks.count == 1 && week.monday.description == "2026-11-09" && week.units == Millionths(2))
    #expect(week.amount == number("1.98") && week.currency == "USD")
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_tie_out_days WHERE unexplained <> 0") == "3")
  }

  /// A SKU may list all items of an Advanced Commerce purchase. Random text, because compression would shorten the key.
  @Test func theLongestKeyOfAReportIsARow() async throws {
    let shop = try await Shop()
    var random = SeededGenerator(seed: 1)
    func word(_ bytes: Int) -> String {
      String((0..<bytes).map { _ in Character(UnicodeScalar(UInt8(random.number(0x21...0x7E)))) })
    }
    var sales = Self.sales("2026-11-10")
    sales.add(word(2_000), day: "11/10/2026", country: word(200), currency: word(200))
    sales.add(word(2_000), day: "11/10/2026", country: word(200), currency: word(200), parent: word(200))
    try shop.drop(sales, on: "2026-11-10")
    let outcome = try await shop.run()
    #expect(outcome.totals.apple == Millionths(3) && outcome.totals.explained[.otherScope] == .one)
    #expect(!outcome.record.incompleteReasons.contains { $0.contains("unreadable") })
  }

  /// With a wrong SKU, all sales of the app would count as sales of another app.
  @Test func aSKUMissingFromReportsWithSalesIsAReasonForIncompleteness() async throws {
    let shop = try await Shop(days: 53)
    func reasons(_ sku: String?) async throws -> [String] { try await shop.reasons(skus: ["game": sku]) }
    #expect(try await reasons("GAME-01").isEmpty)
    try await shop.buy(["2026-11-10"])
    let told = try await reasons("GAME-01")
    #expect(told.count == 1 && told[0].hasPrefix("app.game.sku is GAME-01, which is in no report"), "\(told)")
    for sku in ["GAME01", nil] { #expect(try await reasons(sku).isEmpty) }
    var free = SampleSales()
    free.add("GAME-01", type: "1F", day: "11/11/2026", price: "0", parent: "")
    try shop.drop(free, on: "2026-11-11")
    #expect(try await reasons("GAME-01").isEmpty)
  }

  @Test func wholeWeeksWithinTheLookbackAreReported() async throws {
    let shop = try await Shop()
    for date in Self.days(130) { try shop.drop(SampleSales(), on: date) }
    // The window of 45 days begins on Saturday, October 3.
    for (date, units) in [("2026-10-02", "13"), ("2026-10-04", "1"), ("2026-09-10", "11"), ("2026-10-11", "2")] {
      try shop.drop(date, units: units)
    }
    try await shop.execute("INSERT INTO sales.orders (order_id, product_id) VALUES ('1', 'gems60')")
    let outcome = try await shop.run(after: .days(-2), lookback: .days(120))
    #expect(outcome.record.days.lowerBound.description == "2026-10-03")
    #expect(outcome.weeks.map(\.monday.description) == ["2026-09-07", "2026-09-28", "2026-10-05"])
    #expect(outcome.weeks.map(\.units) == [Millionths(11), Millionths(14), Millionths(2)])
    #expect(outcome.weeks.map(\.amount) == [number("10.89"), number("13.86"), number("1.98")])
  }

  @Test func awaitedOrdersOffsetUnexplainedUnits() async throws {
    let shop = try await Shop(days: 20, bought: true, units: ["2026-11-10": "6"])
    // Apple's report has five units more than our payments. Two orders are awaited, whatever their status; decided
    // orders and orders of other weeks do not count.
    let outcome = try await shop.run(orders: [
      Self.order(isAwaited: true), Self.order(isBooked: false, isAwaited: true), Self.order(),
      Self.order(isBooked: false), Self.order(on: "2026-11-01", isAwaited: true),
    ])
    #expect(outcome.totals.unexplained == Millionths(5) && outcome.totals.awaited == Millionths(2))
    let week = try #require(outcome.weeks.first)
    #expect(outcome.weeks.count == 1 && week.units == Millionths(3) && week.amount == nil)
    #expect(outcome.record.notes.contains { $0.hasPrefix("2 of the unexplained units") })
    #expect(try await shop.rows().map(\.awaited).reduce(.zero, +) == Millionths(2))
  }

  /// Apple has not answered about any order of the product. A foreign purchase with the same product ID proves nothing.
  @Test func productsOfOrdersAreKnownDespiteForeignPurchases() async throws {
    let shop = try await Shop()
    try shop.drop("2026-11-10", units: "12")
    try await shop.buy(["2026-11-10"])
    try await shop.execute(
      """
      UPDATE night_audit.transactions SET bundle_id = 'com.other.app';
      INSERT INTO sales.orders (order_id, product_id) VALUES ('1', 'gems60');
      """)
    let orders = try (0..<12).map { _ in try Self.order(isAwaited: true) }
    let outcome = try await shop.run(orders: orders)
    #expect(outcome.totals.unexplained == Millionths(12) && outcome.totals.explained[.unknownProduct] == .zero)
    #expect(outcome.weeks.isEmpty)
  }

  /// Apple rejects the key of one app, so only its paid orders show that it sells the product.
  @Test(arguments: ["verified", "failed"])
  func ordersIdentifyProductsOfAnUnreportedApp(status: String) async throws {
    let shop = try await Shop()
    var sales = Self.sales("2026-11-10", units: "1")
    sales.add(units: "12", day: "11/10/2026", parent: "QUIZ01")
    try shop.drop(sales, on: "2026-11-10")
    try await shop.buy(["2026-11-10"])
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, bundle_id, product_id, status)
      VALUES ('1', 'com.example.quiz', 'gems60', '\(status)'), ('2', 'com.example.quiz', 'gems60', NULL)
      """)
    let outcome = try await shop.run(skus: ["game": nil, "quiz": nil])
    let isJoint = status == "verified"
    #expect(outcome.record.incompleteReasons.contains { $0.hasPrefix("two apps sell the product gems60") } == isJoint)
    let apps = Set(try await shop.rows().filter { $0.level == .units }.map(\.app))
    #expect((apps == ["game+quiz"]) == isJoint)
  }

  /// Apple refunded one of several items of an Advanced Commerce purchase, without a percentage.
  @Test func aPartlyRevokedPurchaseIsNoUnit() async throws {
    let shop = try await Shop(days: 20, bought: true)
    try await shop.execute(
      """
      UPDATE night_audit.transactions SET revoked_at = '2026-11-03T20:00:00Z', revocation_of_some_items = true
      WHERE transaction_id = '17';
      """)
    #expect(try await shop.run().totals.explained.isZero)
    #expect(try await shop.rows().allSatisfy { $0.kind == .sale && $0.comparison?.unexplained == .zero })
  }

  @Test func aRestoreOfTodayImpliesItsSale() async throws {
    let shop = try await Shop(days: 20, bought: true)
    try await shop.execute(
      """
      UPDATE night_audit.transactions SET original_transaction_id = transaction_id, original_purchased_at = purchased_at,
        purchased_at = '2026-11-20T02:00:00Z' WHERE purchased_at = '2026-11-10T20:00:00Z';
      """)
    let outcome = try await shop.run()
    #expect(outcome.totals.ours == Millionths(20) && outcome.totals.unexplained == .zero && outcome.weeks.isEmpty)
  }

  /// A partial refund that was reversed is no unit, so it explains no unknown sale.
  @Test func aReversedPartialRefundHidesNoSale() async throws {
    let shop = try await Shop(days: 20, bought: true, units: ["2026-11-11": "2"])
    try await shop.withdrawRefund(of: "2026-11-03", on: "2026-11-10", partial: true)
    #expect(try await shop.run().weeks.map(\.units) == [.one])
    #expect(try await shop.rows().allSatisfy { $0.kind == .sale })
  }

  /// A reversed refund exists in the evidence only. A fact without a recorded answer does not count as evidence.
  @Test(arguments: [true, false]) func aReversedRefundIsCountedIfItsEvidenceIsRecorded(isRecorded: Bool) async throws {
    let shop = try await Shop(days: 20, bought: true)
    if !isRecorded {
      try await shop.execute(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version)
        VALUES (gen_random_uuid(), 'run', '2026-11-01T03:00:00Z', '2026-10-31', '2026-10-31', 'UTC', '', true, 'h', '1')
        """)
    }
    try await shop.withdrawRefund(of: "2026-11-11", on: "2026-11-12")
    _ = try await shop.run()
    #expect(try await shop.rows().contains { $0.kind == .refund } == isRecorded)
  }

  /// Amounts have up to twelve digits; the sum of ten exceeds 64 bits of millionths.
  @Test func anOversizedSumAffectsOnlyItsRow() async throws {
    let shop = try await Shop(days: 20)
    let orders = try (0..<10).map { _ in try Self.order(999_999_999_999, "JPY") }
    #expect(try await shop.run(orders: orders).totals.apple == Millionths(20))
    let row = try await shop.rows().first { $0.level == .amount && $0.currency == "JPY" }
    #expect(row?.day == ReportDay("2026-11-10") && row?.shop == Millionths(9_999_999_999_990))
  }

  @Test func theShopsUnitsAreItsPaidOrders() async throws {
    let shop = try await Shop(days: 20)
    _ = try await shop.run(orders: [Self.order(), Self.order(5_999, isBooked: false, isAwaited: true)])
    let rows = try await shop.rows().filter { $0.shop ?? .zero != .zero }
    #expect(rows.map(\.level) == [.amount, .units] && rows.map(\.shop) == [number("0.99"), .one])
  }

  @Test func aRenewalIsExplainedUnlessAnOrderOwnsIt() async throws {
    let shop = try await Shop(days: 20, bought: true)
    try shop.drop(SampleSales(), on: "2026-11-10")
    try await shop.execute(
      """
      UPDATE night_audit.transactions SET is_renewal = true WHERE transaction_id = '8';
      INSERT INTO night_audit.claims (environment, transaction_id, order_id) VALUES ('Production', '8', 'order');
      """)
    let alone = try await shop.run().totals
    #expect(alone.explained[.renewal] == Millionths(-1) && alone.unexplained == .zero)
    let owned = try await shop.run(orders: [Self.order(on: "2026-01-10", renewals: ["8"])]).totals
    #expect(owned.explained[.renewal] == .zero && owned.unexplained == Millionths(-1))
  }

  @Test func partialMonthsAreExcludedFromSums() async throws {
    let shop = try await Shop(days: 53)
    let gross = try await shop.gross(vendors: ["80012345"])
    // 53 days reach back to September 27.
    #expect(gross.missing.contains("2026-09") && !gross.missing.contains("2026-10") && gross.running == "2026-11")
    #expect(gross.lines.map(\.month) == ["2026-10", "2026-11", "2026"])
    #expect(gross.lines.map(\.gross) == [number("30.69"), number("17.82"), number("48.51")])
  }

  @Test func everyVendorsMonthCountsBesideOtherReports() async throws {
    let shop = try await Shop(days: 53)
    for date in Self.days(53) { try shop.drop(date, units: "2", vendor: "80099999") }
    var month = SampleSales()
    month.add(units: "31", day: "10/01/2026")
    month.add(type: "IA3", units: "5", day: "10/01/2026")
    try shop.drop(month.text, named: "S_M_80012345_202610.txt")
    for vendors in [[], ["80012345"]] {
      let gross = try await shop.gross(vendors: vendors)
      #expect(gross.lines.first?.month == "2026-10" && gross.lines.first?.gross == number("92.07"))
      #expect(!gross.missing.contains("2026-10"))
    }
  }

  /// Facts about days before the window may change, whether or not an earlier night compared these days.
  @Test(arguments: [0, 3])
  func oldDaysAreComparedLikeNewOnes(bought: Int) async throws {
    var pictures: [[TieOutRow]] = []
    for hasEarlierNight in [false, true] {
      let shop = try await Shop()
      try shop.drop("2026-09-22", units: "3")
      if hasEarlierNight { _ = try await shop.run(after: .days(-50), lookback: .days(120)) }
      if bought > 0 { try await shop.buy(Array(repeating: "2026-09-22", count: bought)) }
      let outcome = try await shop.run(lookback: .days(120))
      #expect(outcome.totals.apple == .zero && outcome.record.days.lowerBound.description == "2026-10-05")
      pictures.append(try await shop.rows())
    }
    #expect(!pictures[0].isEmpty && pictures[0] == pictures[1])
    #expect(Self.weeks(pictures[1]).map(\.units) == (bought == 0 ? [Millionths(3)] : []))
  }

  /// After a manual tie-out or a failed night, the next night still reports the revised day.
  @Test func adjustmentsAreReportedUntilANightPublishesThem() async throws {
    let shop = try await Shop(days: 20)
    #expect(try await shop.run().totals.apple == Millionths(20))
    try await shop.publish()
    try shop.drop("2026-11-10", units: "5")
    for hours in [22, 23, 24] {
      let outcome = try await shop.run(after: .hours(Int64(hours)))
      #expect(outcome.revised == [Self.adjustment])
      if hours == 24 { #expect(outcome.totals.apple == Millionths(24)) }
    }
    try await shop.publish(after: .hours(24))
    #expect(try await shop.run(after: .hours(25)).revised == [Self.adjustment])
    #expect(try await shop.run(after: .hours(48)).revised == [])
  }

  /// Equal rows in another file are no adjustment; a changed price is one.
  @Test func anEqualReportIsNoAdjustment() async throws {
    let shop = try await Shop(days: 20)
    _ = try await shop.run()
    try await shop.publish()
    var sales = Self.sales("2026-11-10")
    let name = "S_D_80012345_20261110.txt"
    try shop.drop(sales.text, named: name)
    #expect(try await shop.run(after: .hours(24)).revised == [])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.connect_reports") == "21")
    func revised() async throws -> [TieOutFacts.Revision] {
      try shop.drop(sales.text, named: name)
      return try await shop.run(after: .hours(24)).revised
    }
    sales.rows[0]["Customer Price"] = "1.99"
    #expect(
      try await revised() == [TieOutFacts.Revision(day: "2026-11-10", vendor: "80012345", before: .one, now: .one)])
    // App updates belong to no tie-out; app sales do.
    sales.rows[0]["Customer Price"] = "0.99"
    sales.add("GAME01", type: "7F", proceeds: "0", day: "11/10/2026", price: "0", parent: " ")
    #expect(try await revised() == [])
    sales.rows[1]["Developer Proceeds"] = "3.50"
    #expect(try await revised().count == 1)
  }

  @Test func theReportsOfADaysVendorsAreAdded() async throws {
    let shop = try await Shop(days: 20, units: ["2026-11-10": "5"])
    try shop.drop("2026-11-10", units: "7", vendor: "80099999")
    #expect(try await shop.reasons().contains { $0.contains("never asked, vendor 80099999") })
    let row = try await shop.rows().first { $0.day == ReportDay("2026-11-10") && $0.level == .units }
    #expect(row?.apple == Millionths(12))
  }

  /// A manual tie-out, or a clock ahead of time, may have a later as-of than the next night.
  @Test func theLastStoredReportCountsWhateverItsAsOf() async throws {
    let shop = try await Shop(days: 20)
    _ = try await shop.run()
    try await shop.publish()
    try shop.drop("2026-11-10", units: "3")
    #expect(try await shop.run(after: .hours(25)).totals.apple == Millionths(22))
    try shop.drop("2026-11-10", units: "5")
    let night = try await shop.run(after: .hours(24))
    #expect(night.totals.apple == Millionths(24) && night.revised == [Self.adjustment])
    try await shop.publish(after: .hours(24))
    let next = try await shop.run(after: .hours(48))
    #expect(next.totals.apple == Millionths(24) && next.revised == [])
  }

  /// The reports that a night reads when it is made again are those of the next night.
  @Test func aNightMadeAgainUsesTheReportsReadUpToItsAsOf() async throws {
    let shop = try await Shop(days: 20, bought: true)
    let made = try await shop.run()
    let rows = try await shop.rows(asOf: Self.asOf)
    try await shop.publish()
    try shop.drop("2026-11-10", units: "5")
    let rowsOfPeriod = [Self.settled(day("09-20"))]
    try shop.drop(detail: day("08-30")...day("09-26"), rows: rowsOfPeriod, named: "80012345_1226_Z1.txt")
    let next = try await shop.run(after: .hours(24))
    #expect(next.totals.apple == Millionths(24) && next.periods.map(\.name) == ["2026-12"])
    try await shop.publish(after: .hours(24))
    try shop.drop("2026-11-11", units: "7")
    let again = try await shop.run()
    #expect(again.record == made.record && again.periods == made.periods && again.weeks == made.weeks)
    #expect(try await shop.rows(asOf: Self.asOf) == rows)
    #expect(try await shop.run(after: .hours(48)).totals.apple == Millionths(30))
  }

  @Test func aRestoredReportCountsAgain() async throws {
    let shop = try await Shop(days: 20)
    let stored = "SELECT count(*) FROM night_audit.connect_reports"
    let rows = try ConnectSalesRows.ofDailyReports(Self.asOf)
    let counted = "SELECT sum(units)::integer FROM \(rows) AND name = '2026-11-10'"
    for units in ["3", "33", "3", "3"] {
      try shop.drop("2026-11-10", units: units)
      _ = try await shop.run()
      #expect(try await shop.value(counted) == units)
    }
    #expect(try await shop.value(stored) == "22")
    try shop.drop(Self.sales("2026-11-10", units: "5").text, named: "S_D_80012345_20261110.txt")
    for _ in 0..<2 {
      _ = try await shop.run()
      #expect(try await shop.value(stored) == "23")
    }
    try FileManager.default.removeItem(atPath: shop.folder + "/S_D_80012345_20261110.txt")
    _ = try await shop.run()
    #expect(try await shop.value(stored) == "24")
  }

  /// A re-run regards its last days as young, but later nights have judged them and do not compare them again.
  @Test func aRepeatedTieOutKeepsRowsOfLaterNights() async throws {
    let shop = try await Shop(days: 53, bought: true, units: ["2026-11-17": "3"])
    func unexplained(_ rows: [TieOutRow]) -> Millionths { Self.weeks(rows).map(\.units).reduce(.zero, +) }
    _ = try await shop.run()
    let then = try await shop.rows(asOf: Self.asOf)
    #expect(unexplained(then) == .zero)
    _ = try await shop.run(after: .days(40))
    let stands = try await shop.rows(asOf: Self.asOf + .days(40))
    #expect(unexplained(stands) == Millionths(2))
    _ = try await shop.run()
    _ = try await shop.run(after: .days(60))
    #expect(try await shop.rows(asOf: Self.asOf + .days(60)) == stands)
    #expect(try await shop.rows(asOf: Self.asOf) == then)
  }

  @Test func aBadRowLeavesNoPartOfItsFile() async throws {
    let shop = try await Shop()
    var broken = Self.sales("2026-11-10")
    broken.rows.append(broken.rows[0])
    broken.rows[1]["Units"] = "many"
    try shop.drop(broken, on: "2026-11-10")
    let outcome = try await shop.run()
    #expect(try await shop.value("SELECT count(*) FROM night_audit.connect_sales") == "0")
    #expect(
      try await shop.value("SELECT detail FROM night_audit.connect_reports WHERE state = 'unreadable'")
        == "line 3: Units is “many”, expected a decimal number")
    #expect(outcome.record.incompleteReasons.contains { $0.contains("unreadable") } && !outcome.isComplete)
    // The reason is reported as long as the file exists.
    let why = "S_D_80012345_20261110.txt.gz: line 3: Units is “many”, expected a decimal number"
    for reasons in [outcome.record.incompleteReasons, try await shop.reasons()] {
      #expect(reasons.contains(why), "\(reasons)")
    }
  }

  /// Postgres stores no NUL, so a message with one would end the tie-out.
  @Test func damagedFilesAreNamed() async throws {
    let shop = try await Shop()
    try shop.drop(Self.sales("2026-11-10").text.replacing("gems60", with: "ge\0ms"), named: "S_D_80012345_20261110.txt")
    let tail = "\n" + String(repeating: "\0", count: 64)
    try shop.drop(FinanceReportTests.detail + tail, named: "80012345_0226_Z1.txt")
    let utf16: [UInt8] = [0xFF, 0xFE] + FinanceReportTests.detail.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    try Data(utf16).write(to: URL(fileURLWithPath: shop.folder + "/80012345_0326_Z1.txt"))
    let reasons = try await shop.reasons()
    for expected in [
      "S_D_80012345_20261110.txt: line 2: has a NUL byte", "80012345_0226_Z1.txt: line 8: has a NUL byte",
      "80012345_0326_Z1.txt: is text in UTF-16",
    ] {
      #expect(reasons.contains { $0.hasPrefix(expected) }, "\(expected): \(reasons)")
    }
  }

  @Test func unreadableFinanceFilesReplaceNoOthers() async throws {
    let shop = try await Shop()
    try shop.drop(detail: day("08-30")...day("09-26"), named: "80012345_1226_Z1.txt")
    let reports = try ConnectReportTable.current(Self.asOf)
    let counted = "SELECT file_name || ' ' || state FROM \(reports) r WHERE name = '2026-12'"
    _ = try await shop.run()
    #expect(try await shop.value(counted) == "80012345_1226_Z1.txt zero")
    try shop.drop(detail: day("09-01")...day("09-30"), named: "80012345_september.txt")
    for _ in 0..<2 {
      let reasons = try await shop.reasons()
      #expect(reasons.contains { $0.hasPrefix("80012345_september.txt: line 3: the file is of 2026-09-01") })
      #expect(try await shop.value(counted) == "80012345_1226_Z1.txt zero")
    }
  }

  @Test func ofTwoFinanceFilesTheLaterDownloadCounts() async throws {
    let shop = try await Shop()
    let period = day("08-30")...day("09-26")
    let names = ["80012345_1226_Z1.txt", "80012345_1226_Z1 (2).txt", "80012345_1226_Z1 (10).txt"]
    for (index, name) in names.enumerated() {
      try shop.drop(detail: period, rows: [Self.settled(day("09-20"), units: index + 1)], named: name)
    }
    #expect(names.reversed().sorted { ReportFileName.precedes($0, $1) } == names)
    for _ in 0..<2 {
      let settled = try await shop.run().periods.first { $0.name == "2026-12" }?.line.settled
      #expect(settled == number("2.10"))
    }
  }

  /// Without this reason, the missing comparison would go unnoticed.
  @Test func anInvalidPaymentsFileIsAReasonForIncompleteness() async throws {
    let shop = try await Shop()
    let columns = PaymentsTests.header.dropLast().split(separator: ",")
    func reasons(_ header: String) async throws -> [String] {
      try shop.drop(header + "\n", named: "payments 2026.csv")
      return try await shop.reasons().filter { $0.hasPrefix("payments") }
    }
    #expect(try await reasons(columns.joined(separator: ";")).count == 1)
    #expect(try await reasons(columns.joined(separator: ",")).isEmpty)
    // Some spreadsheets quote all text.
    #expect(try await reasons(columns.map { "\"\($0)\"" }.joined(separator: ",")).isEmpty)
  }

  /// The day is not printed, but findings and sums of its fiscal period are missing.
  @Test func uncomparedOlderDaysAreReportedEveryNight() async throws {
    let shop = try await Shop(days: 80)
    let old = Self.days(80)[60]
    try shop.drop("no report\n", named: "S_D_80012345_20260919.txt.gz")
    #expect(old == "2026-09-19")
    for _ in 0..<2 {
      let reasons = try await shop.reasons()
      #expect(reasons.contains { $0.hasPrefix("S_D_80012345_20260919.txt.gz: ") })
      #expect(reasons.contains { $0.contains("(unreadable, vendor 80012345): 2026-09-19") })
    }
    // A shop whose first report is newer lacks no older reports.
    #expect(try await !shop.reasons().contains { $0.contains("never asked") })
  }

  @Test func aDayIsUnreadableUntilAReadableReportArrives() async throws {
    let shop = try await Shop()
    var broken = Self.sales("2026-11-10", units: "3")
    try shop.drop(broken, on: "2026-11-10")
    _ = try await shop.run()
    #expect(try await shop.unreadableDays().isEmpty)
    broken.rows[0]["Units"] = "many"
    try shop.drop(broken, on: "2026-11-10")
    _ = try await shop.run()
    #expect(try await shop.unreadableDays() == [day("11-10")])
    try shop.drop("2026-11-10", units: "2")
    _ = try await shop.run(after: .hours(24))
    #expect(try await shop.unreadableDays(asOf: Self.asOf + .hours(24)).isEmpty)
    #expect(try await shop.unreadableDays() == [day("11-10")])
  }

  @Test func aCopiedFileCountsUnchanged() async throws {
    let shop = try await Shop()
    let whole = Self.sales("2026-11-10", units: "3")
    var broken = whole
    broken.rows[0]["Units"] = "many"
    for (sales, units) in [(whole, 3), (broken, 0), (whole, 3), (whole, 3)] {
      try shop.drop(sales, on: "2026-11-10")
      #expect(try await shop.run().totals.apple == Millionths(units))
    }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.connect_reports") == "3")
  }

  @Test func downloadOrderDoesNotChangeTheResult() async throws {
    var pictures: [[TieOutRow]] = []
    for isReversed in [false, true] {
      let shop = try await Shop()
      try await shop.buy(Self.days(20))
      var days = Self.days(20)
      if isReversed { days.reverse() }
      for date in days {
        let bytes = Self.sales(date, units: date.hasSuffix("3") ? "2" : "1").bytes
        let report = ConnectReport(
          vendor: "80012345", kind: .sales, frequency: "DAILY", name: date, version: "1_0", source: .api)
        try await shop.withConnection { _ = try ConnectReportTable.store(bytes, as: report, asOf: Self.asOf, on: $0) }
      }
      _ = try await shop.run()
      pictures.append(try await shop.rows())
    }
    #expect(!pictures[0].isEmpty && pictures[0] == pictures[1])
  }

  @Test func aReportWithoutRowsIsZeroAndAnAbsenceDoesNotUndoAReport() async throws {
    let shop = try await Shop()
    var empty = SampleSales()
    empty.rows = []
    try shop.drop(empty, on: "2026-11-10")
    try shop.drop("2026-11-11")
    _ = try await shop.run()
    let report = ConnectReport(vendor: "80012345", kind: .sales, frequency: "DAILY", name: "2026-11-11", source: .api)
    let old = ConnectReport(vendor: "80012345", kind: .sales, frequency: "DAILY", name: "2026-09-01", source: .api)
    try await shop.withConnection {
      try ConnectReportTable.store(report, state: .pending, asOf: Self.asOf + .hours(24), on: $0)
      for night in 1...5 {
        for (report, isOurs) in [(report, true), (report, false), (old, true)] {
          try ConnectReportTable.storeNoSales(
            report, hasOwnUnits: isOurs, asOf: Self.asOf + .days(Int64(night)), on: $0)
        }
      }
    }
    let state = "SELECT state FROM \(try ConnectReportTable.current(Self.asOf + .days(5))) r WHERE name = "
    #expect(try await shop.value(state + "'2026-11-10'") == "zero")
    #expect(try await shop.value(state + "'2026-11-11'") == "reported")
    #expect(try await shop.value(state + "'2026-09-01'") == "zero")
  }

  /// Apple's first answer may come before the night asks about the purchases of that day.
  @Test func aDoubtfulZeroReplacesAZeroWithoutAFile() async throws {
    let shop = try await Shop()
    func daily(_ name: String) -> ConnectReport {
      ConnectReport(vendor: "80012345", kind: .sales, frequency: "DAILY", name: name, source: .api)
    }
    func answer(_ name: String, night: Int, hasOwnUnits: Bool) async throws -> DownloadState? {
      let (report, asOf) = (daily(name), Self.asOf + .days(Int64(night)))
      return try await shop.withConnection { connection in
        try ConnectReportTable.storeNoSales(report, hasOwnUnits: hasOwnUnits, asOf: asOf, on: connection)
        let known = try ConnectReportTable.known(.sales, frequency: "DAILY", asOf: asOf, on: connection)
        return known[name]?["80012345"]?.state
      }
    }
    #expect(try await answer("2026-11-10", night: 0, hasOwnUnits: false) == .zero)
    for night in 1...3 { #expect(try await answer("2026-11-10", night: night, hasOwnUnits: true) == .doubtfulZero) }
    #expect(try await answer("2026-11-10", night: 4, hasOwnUnits: true) == .zero)
    let (empty, file) = (SampleSales().bytes, daily("2026-11-11"))
    try await shop.withConnection { _ = try ConnectReportTable.store(empty, as: file, asOf: Self.asOf, on: $0) }
    #expect(try await answer("2026-11-11", night: 1, hasOwnUnits: true) == .zero)
  }

  @Test func anUnknownProductTypeIsNotedWithItsRows() async throws {
    let shop = try await Shop()
    var sales = Self.sales("2026-11-10")
    sales.add(type: "IZ9", day: "11/10/2026")
    try shop.drop(sales, on: "2026-11-10")
    let notes = try await shop.run().record.notes
    #expect(notes.contains("1 row of the unknown product type IZ9 counted as in-app purchases"), "\(notes)")
  }

  /// Reports of other kinds, such as those about subscriptions, are ignored.
  @Test func everyDayWithoutSalesHasItsReport() async throws {
    let shop = try await Shop(days: 53)
    let prices = "App Name\tSubscription Name\tCustomer Price\tCustomer Currency\nGame\tgems60\t0.99\tUSD\n"
    for name in ["Subscription_80012345_20261118.txt", "read me.txt"] { try shop.drop(prices, named: name) }
    for date in ["2026-11-09", "2026-11-10"] { try shop.drop(SampleSales(), on: date) }
    let zeros = "SELECT count(*) FROM night_audit.connect_reports WHERE state = 'zero'"
    for _ in 0..<2 {
      let outcome = try await shop.run()
      #expect(outcome.isComplete, "\(outcome.record.incompleteReasons)")
      #expect(try await shop.value(zeros) == "2" && outcome.totals.apple == Millionths(43))
    }
  }

  @Test func anAppNamedLikeAnotherSKUIsDistinct() async throws {
    let shop = try await Shop()
    var sales = Self.sales("2026-11-10")
    sales.add(units: "4", day: "11/10/2026", parent: "game")
    sales.add(units: "2", day: "11/10/2026", parent: "game (SKU)")
    try shop.drop(sales, on: "2026-11-10")
    try await shop.buy(["2026-11-10"])
    let outcome = try await shop.run()
    #expect(outcome.totals.explained[.otherScope] == Millionths(6) && outcome.totals.unexplained == .zero)
    let counted = try await shop.rows().filter { $0.level == .units }.map { [$0.app, "\($0.apple ?? .zero)"] }
    #expect(counted == [["game", "1"], ["game (SKU)", "6"]])
  }

  /// Reports of regions replace neither each other nor the consolidated report.
  @Test func regionalFinanceReportsAreNotConsolidatedOnes() async throws {
    let shop = try await Shop()
    let files = "SELECT string_agg(file_name, ' ' ORDER BY report_id) FROM night_audit.connect_reports"
    for region in ["EU", "US"] { try shop.drop(FinanceReportTests.financial, named: "80012345_0226_\(region).txt") }
    _ = try await shop.run()
    #expect(try await shop.value(files) == "")
    try shop.drop(FinanceReportTests.financial, named: "80012345_0226_ZZ.txt")
    _ = try await shop.run()
    #expect(try await shop.value(files) == "80012345_0226_ZZ.txt")
  }

  /// Free trials are settled with zero proceeds; for restores Apple shows the original proceeds.
  @Test func freeUnitsAndRestoresHaveNoProceeds() async throws {
    let shop = try await Shop()
    let period = try #require(FiscalCalendar.period(named: "2026-12"))
    var sales = Self.sales("2026-09-20", units: "3")
    sales.add(units: "2", proceeds: "0", day: "09/20/2026", price: "0")
    sales.add(type: "IA3", units: "4", day: "09/20/2026")
    for date in (period.first...period.last).map(\.description) {
      try shop.drop(date == "2026-09-20" ? sales : SampleSales(), on: date)
    }
    let rows = [Self.settled(day("09-20"), units: 2, share: "0.00"), Self.settled(day("09-20"))]
    try shop.drop(detail: period.first...period.last, rows: rows, named: "80012345_1226_Z1.txt")
    let line = try #require(try await shop.run().periods.first { $0.name == "2026-12" }?.line)
    #expect(line.salesProceeds == number("2.10") && line.settled == number("0.70"))
    #expect(line.openAtEnd == number("1.40") && line.difference == .zero)
  }

  @Test func financeFilesAreTiedToTheSalesOfTheirPeriod() async throws {
    let shop = try await Shop()
    let second = try #require(FiscalCalendar.period(named: "2026-12"))
    for date in second.first...second.last { try shop.drop(date.description) }
    let rows = (second.first...second.last).dropLast().map { Self.settled($0) }
    try shop.drop(detail: second.first...second.last, rows: rows, named: "80012345_1226_Z1.txt")
    let outcome = try await shop.run()
    let period = try #require(outcome.periods.first { $0.name == "2026-12" })
    #expect(period.hasSales && period.currency == "USD")
    #expect(period.line.salesProceeds == number("19.60") && period.line.settled == number("18.90"))
    #expect(period.line.openAtEnd == number("0.70") && period.line.difference == .zero)
    let view = """
      SELECT count(*) FROM night_audit.bi_tie_out_periods
      WHERE fiscal_period = '2026-12' AND currency = 'USD' AND settled = 18.9 AND open_at_end = 0.7 AND difference = 0
      """
    #expect(try await shop.value(view) == "1")
    try shop.drop("2026-09-10", vendor: "80099999")
    let silent = try await shop.run()
    #expect(!silent.periods.contains { $0.name == "2026-12" })
    #expect(
      silent.record.incompleteReasons.contains(
        "no FINANCE_DETAIL of fiscal period 2026-12, vendor 80099999 (never asked)"))
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_tie_out_periods") == "0")
  }
}
