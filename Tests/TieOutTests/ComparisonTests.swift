import Foundation
import Reconciliation
import Settings
import Testing

@testable import TieOut

struct ComparisonTests {
  private static let first = day("11-01")
  private static let dollar = number("0.99")

  private func coverage(
    missing: [String] = [], partial: [String] = [], young: [String] = ["11-19", "11-20"], printed: String = "11-01"
  ) -> DayCoverage {
    let printed = day(printed)...day("11-20")
    return DayCoverage(days: Self.first...day("11-20"), compared: printed, printed: printed) { date in
      if missing.contains(where: { day($0) == date }) { return .missing }
      if partial.contains(where: { day($0) == date }) { return .partial }
      return young.contains { day($0) == date } ? .young : .final
    }
  }

  private func apple(
    _ date: String, _ units: Int = 1, kind: TieOutClass = .sale, country: Identifier = "US",
    currency: Identifier = "USD", price: Millionths = dollar
  ) -> AppleUnits {
    TieOutTests.apple(day(date), units, kind: kind, country: country, currency: currency, price: price)
  }

  private func ours(
    _ date: String, _ units: Int = 1, kind: TieOutClass = .sale, country: Identifier? = "US",
    currency: Identifier? = "USD", price: Millionths? = dollar
  ) -> OurUnits { TieOutTests.ours(day(date), units, kind: kind, country: country, currency: currency, price: price) }

  private func compare(
    _ apple: [AppleUnits], _ ours: [OurUnits], coverage: DayCoverage? = nil,
    _ change: (inout ProductSides) -> Void = { _ in }
  ) -> ProductComparison {
    var sides = ProductSides(app: "game", productId: "gems60", isKnown: true)
    sides.apple = apple
    sides.ours = ours
    change(&sides)
    return ProductComparison(sides, coverage: coverage ?? self.coverage())
  }

  private func row(
    _ comparison: ProductComparison, _ date: String, _ level: TieOutLevel = .units, _ kind: TieOutClass = .sale,
    country: Identifier = ""
  ) -> TieOutRow? {
    comparison.rows.first { $0.day == day(date) && $0.level == level && $0.kind == kind && $0.country == country }
  }

  private func unexplained(_ comparison: ProductComparison, _ date: String, _ kind: TieOutClass = .sale) -> Millionths?
  {
    row(comparison, date, .units, kind)?.comparison?.unexplained
  }

  private func trial(_ date: String) -> OurUnits {
    var offer = ours(date, price: nil)
    offer.mayBeFree = true
    return offer
  }

  private func explained(
    _ comparison: ProductComparison, _ date: String, _ explanation: TieOutExplanation, _ level: TieOutLevel = .units,
    _ kind: TieOutClass = .sale, country: Identifier = ""
  ) -> Millionths? { row(comparison, date, level, kind, country: country)?.comparison?.explained[explanation] }

  @Test func equalUnitsHaveNoDifference() throws {
    let comparison = compare([apple("11-05", 3)], [ours("11-05", 2), ours("11-05")])
    #expect(comparison.rows.map(\.level) == [.units, .country, .amount])
    for row in comparison.rows { #expect(row.comparison?.difference == .zero && row.comparison?.unexplained == .zero) }
    #expect(row(comparison, "11-05", .amount)?.apple == number("2.97"))
    #expect(row(comparison, "11-05", .amount)?.ours == number("2.97"))
    #expect(comparison.lags == [0: Millionths(3)])
  }

  @Test func aLostOrderIsUnexplainedOnEveryLevel() {
    let comparison = compare([apple("11-05", 3)], [ours("11-05", 2)])
    #expect(unexplained(comparison, "11-05") == .one)
    #expect(row(comparison, "11-05", .country, country: "US")?.comparison?.unexplained == .one)
    #expect(row(comparison, "11-05", .amount)?.comparison?.unexplained == Self.dollar)
  }

  @Test(arguments: [("11-04", true), ("11-05", true), ("11-08", true), ("11-03", false), ("11-09", false)])
  func timingIsOneDayBeforeToThreeAfter(date: String, isTiming: Bool) {
    let comparison = compare([apple(date)], [ours("11-05")])
    let sum = comparison.rows.filter { $0.level == .units }.compactMap { $0.comparison?.unexplained.magnitude }
      .reduce(.zero, +)
    #expect(sum == (isTiming ? .zero : Millionths(2)))
    if isTiming { #expect(comparison.lags[day(date).number - day("11-05").number] == .one) }
    if isTiming, date != "11-05" {
      #expect(explained(comparison, "11-05", .timing) == -.one && explained(comparison, date, .timing) == .one)
      #expect(explained(comparison, date, .timing, .amount) == Self.dollar)
    }
  }

  @Test func timingExplainsNoMoreUnitsThanExist() {
    let comparison = compare([apple("11-06", 5)], [ours("11-05", 2)])
    #expect(explained(comparison, "11-06", .timing) == Millionths(2))
    #expect(unexplained(comparison, "11-06") == Millionths(3))
  }

  @Test func aDayWithoutAReportCreatesNoFindings() {
    let comparison = compare([apple("11-06", 1)], [ours("11-05", 2)], coverage: coverage(missing: ["11-05"]))
    #expect(row(comparison, "11-05")?.apple == nil)
    #expect(explained(comparison, "11-05", .notReported) == Millionths(-2))
    // Apple's unit on the next day may be one of the two.
    #expect(explained(comparison, "11-06", .notReported) == .one)
    #expect(comparison.rows.allSatisfy { $0.comparison?.unexplained == .zero })
  }

  /// The reports of the missing vendors can only add units.
  @Test func partialVendorReportsAreALowerBound() {
    let comparison = compare(
      [apple("11-05", 13), apple("11-10")], [ours("11-05"), ours("11-10", 3)],
      coverage: coverage(partial: ["11-05", "11-10"]))
    #expect(unexplained(comparison, "11-05") == Millionths(12))
    #expect(row(comparison, "11-05", .country, country: "US")?.comparison?.unexplained == Millionths(12))
    #expect(row(comparison, "11-05", .amount)?.comparison?.unexplained == number("11.88"))
    #expect(row(comparison, "11-10")?.apple == .one)
    #expect(explained(comparison, "11-10", .notReported) == Millionths(-2))
    #expect(unexplained(comparison, "11-10") == .zero)
  }

  @Test func youngReportsAreNotJudged() {
    let comparison = compare([apple("11-20", 4)], [ours("11-19")])
    #expect(explained(comparison, "11-20", .notReported) == Millionths(4))
    #expect(explained(comparison, "11-19", .notReported) == -.one)
  }

  /// Apple may still count the recent unit in a report that is not final.
  @Test func recentUnitsMissingAtAppleAreAwaited() {
    let comparison = compare([], [ours("11-17"), ours("11-12")])
    #expect(explained(comparison, "11-17", .notReported) == -.one)
    #expect(unexplained(comparison, "11-12") == -.one)
  }

  @Test func unitsAtPriceZeroAreFreeAndMatchOffersWithoutAPrice() {
    let comparison = compare([apple("11-05", 2, kind: .free, price: .zero)], [trial("11-05")])
    #expect(explained(comparison, "11-05", .free) == -.one)
    #expect(explained(comparison, "11-05", .free, .units, .free) == Millionths(2))
    #expect(comparison.rows.allSatisfy { $0.comparison?.unexplained ?? .zero == .zero })
  }

  @Test(arguments: [("11-04", true), ("11-05", true), ("11-08", true), ("11-03", false), ("11-09", false)])
  func aTrialThatAppleCountsOnAnotherDayIsNoSale(date: String, isSame: Bool) {
    let comparison = compare([apple(date, kind: .free, price: .zero), apple("11-06")], [trial("11-05")])
    #expect(explained(comparison, "11-05", .free) == (isSame ? -.one : .zero))
    #expect(explained(comparison, "11-06", .timing) == (isSame ? .zero : .one))
    #expect(unexplained(comparison, "11-06") == (isSame ? .one : .zero))
    #expect(explained(comparison, date, .free, .units, .free) == .one)
  }

  @Test func aTrialOfTheSameDayStaysOnItsDay() {
    let comparison = compare(
      [apple("11-06", kind: .free, price: .zero), apple("11-08")], [trial("11-05"), trial("11-06")])
    #expect(explained(comparison, "11-06", .free) == -.one && explained(comparison, "11-05", .timing) == -.one)
    #expect(comparison.rows.allSatisfy { $0.comparison?.unexplained ?? .zero == .zero })
  }

  @Test func restoredUnitsAreNoSales() {
    let comparison = compare([apple("11-05", 7, kind: .restore, price: .zero)], [])
    #expect(explained(comparison, "11-05", .restore, .units, .restore) == Millionths(7))
    #expect(row(comparison, "11-05") == nil)
  }

  @Test func refundsHaveAWiderWindowAndUnknownOnesRequestASweep() {
    let late = compare([apple("11-09", -1, kind: .refund)], [ours("11-03", -1, kind: .refund)])
    #expect(explained(late, "11-09", .refundTiming, .units, .refund) == -.one)
    #expect(explained(late, "11-03", .refundTiming, .units, .refund) == .one)
    let unknown = compare([apple("11-05", -2, kind: .refund)], [])
    #expect(explained(unknown, "11-05", .refundUnknown, .units, .refund) == Millionths(-2))
    #expect(explained(unknown, "11-05", .refundUnknown, .amount, .refund) == number("-1.98"))
  }

  /// Apple's refund on the 5th matches our refund without a price on that day, not the refund of the 3rd.
  @Test func refundsDoNotMatchDaysWithUnknownRefunds() {
    let comparison = compare(
      [apple("11-05", -1, kind: .refund)],
      [ours("11-03", -1, kind: .refund), ours("11-05", -1, kind: .refund, price: nil)])
    #expect(unexplained(comparison, "11-03", .refund) == .one)
    #expect(explained(comparison, "11-03", .refundTiming, .amount, .refund) == .zero)
    #expect(explained(comparison, "11-03", .notReported, .amount, .refund) == Self.dollar)
    #expect(row(comparison, "11-05", .amount, .refund)?.comparison == nil)
  }

  /// Sales without a price do not make the refunds of the day unknown.
  @Test func refundsAreComparedOnDaysWithUnpricedSales() {
    let comparison = compare([apple("11-05"), apple("11-05", -1, kind: .refund)], [ours("11-05", price: nil)])
    #expect(row(comparison, "11-05", .amount)?.comparison == nil)
    #expect(explained(comparison, "11-05", .refundUnknown, .amount, .refund) == -Self.dollar)
  }

  @Test func partialRefundsAndUpgradesAreNotUnknown() {
    let partial = compare([apple("11-05", -1, kind: .refund)], []) {
      $0.partialRefunds = [RefundEvidence(day: day("11-03"))]
    }
    #expect(explained(partial, "11-05", .partialRefund, .units, .refund) == -.one)
    let odd = compare([apple("11-04"), apple("11-05", -1, kind: .refund, price: number("0.40"))], [ours("11-04")])
    #expect(explained(odd, "11-05", .partialRefund, .units, .refund) == -.one)
    #expect(explained(odd, "11-05", .partialRefund, .amount, .refund) == number("-0.40"))
    let upgrade = compare([apple("11-15", -1, kind: .refund)], [ours("11-02")]) {
      $0.apple.append(apple("11-02"))
      $0.upgrades = [RefundEvidence(day: day("11-02"))]
    }
    #expect(explained(upgrade, "11-15", .upgrade, .units, .refund) == -.one)
  }

  @Test func unclaimedRenewalsExplainOnlyOurSurplus() {
    var renewal = ours("11-05")
    renewal.isUnclaimedRenewal = true
    let comparison = compare([], [renewal, ours("11-05")])
    #expect(explained(comparison, "11-05", .renewal) == -.one)
    #expect(unexplained(comparison, "11-05") == -.one)
    #expect(explained(compare([apple("11-05")], [renewal]), "11-05", .renewal) == .zero)
  }

  @Test func unitsWithoutAStorefrontAreComparedAsUnitsOnly() {
    let comparison = compare(
      [apple("11-05", 1, country: "DE", currency: "EUR"), apple("11-05", 2)],
      [ours("11-05", 2, country: nil, currency: nil, price: nil), ours("11-05")])
    #expect(row(comparison, "11-05")?.comparison?.difference == .zero)
    #expect(explained(comparison, "11-05", .countryUnknown, .country) == Millionths(-2))
    #expect(explained(comparison, "11-05", .countryUnknown, .country, country: "DE") == .one)
    #expect(explained(comparison, "11-05", .countryUnknown, .country, country: "US") == .one)
    // Two units without a price make the sum unknown.
    let amount = row(comparison, "11-05", .amount)
    #expect(amount?.apple != nil && amount?.ours == nil && amount?.comparison == nil)
  }

  /// One of Apple's two units on the 6th is our unit without a price on the 5th. The price of the other is unknown.
  @Test func unpricedUnitsOfAnotherDayHaveNoAmount() {
    let comparison = compare([apple("11-06", 2)], [ours("11-05", price: nil)])
    #expect(unexplained(comparison, "11-06") == .one)
    let amount = row(comparison, "11-06", .amount)
    #expect(amount?.apple == number("1.98") && amount?.ours == .zero && amount?.comparison == nil)
    var totals = TieOutTotals()
    for row in comparison.rows { totals.add(row) }
    #expect(totals.weeks.map(\.units) == [.one] && totals.weeks.map(\.amount) == [nil])
  }

  @Test(
    arguments: [
      (2, "1.09", "0.99", .price, "0.20"), (2, "0.99", "0.986", .rounding, "0.008"),
      (1, "0.99", "0.985", .price, "0.005"),
    ] as [(Int, String, String, TieOutExplanation, String)])
  func anotherPriceIsTheOnlyDifferenceOfEqualUnits(
    units: Int, apples: String, mine: String, explanation: TieOutExplanation, difference: String
  ) {
    let comparison = compare(
      [apple("11-05", units, price: number(apples))], [ours("11-05", units, price: number(mine))])
    #expect(explained(comparison, "11-05", explanation, .amount) == number(difference))
  }

  @Test func anUnknownProductIsNamed() {
    let comparison = compare([apple("11-05", 3)], []) { $0.isKnown = false }
    #expect(explained(comparison, "11-05", .unknownProduct) == Millionths(3))
    #expect(explained(comparison, "11-05", .unknownProduct, .amount) == number("2.97"))
  }

  @Test func theShopsUnitsExplainNoDifference() {
    let comparison = compare([apple("11-05", 3)], [ours("11-05", 3)]) {
      $0.shop = [ShopUnits(day: day("11-05"), currency: "USD", units: 2, amount: number("1.98"))]
    }
    #expect(row(comparison, "11-05")?.shop == Millionths(2))
    #expect(row(comparison, "11-05", .country, country: "US")?.shop == nil)
    #expect(row(comparison, "11-05", .amount)?.shop == number("1.98"))
    #expect(row(comparison, "11-05")?.comparison?.difference == .zero)
  }

  @Test func daysBeforeThePrintedOnesServeAsEvidenceOnly() {
    let comparison = compare([apple("11-08")], [ours("11-07")], coverage: coverage(printed: "11-08"))
    #expect(explained(comparison, "11-08", .timing) == .one)
    #expect(comparison.rows.allSatisfy { $0.day >= day("11-08") })
  }
}

struct OurSideTests {
  private let zone: TimeZone

  init() throws { zone = try #require(TimeZone(identifier: "America/Los_Angeles")) }

  private func noon(_ date: String) -> Instant { zone.start(of: day(date)) + .hours(12) }

  private func sides(withdrawn: Revocation) -> ProductSides {
    var contents = TransactionRecord.Contents(environment: .production, transactionId: "t", productId: "gems60")
    contents.quantity = 3
    (contents.purchaseDate, contents.revocationWithdrawnDate) = (noon("11-02"), noon("11-10"))
    var sides = ProductSides(app: "game", productId: "gems60", isKnown: true)
    sides.add(
      TransactionRecord(contents), storefront: "USA", isClaimed: true, withdrawn: withdrawn,
      days: ReportDays(day("11-01")...day("11-20"), in: zone))
    return sides
  }

  @Test func aFullRefundThatWasReversedIsPutBackOnTheDayOfTheReversal() {
    let sides = sides(withdrawn: Revocation(date: noon("11-03"), type: "REFUND_FULL"))
    #expect(sides.ours.map(\.units) == [3, -3, 3] && sides.ours.map(\.kind) == [.sale, .refund, .sale])
    #expect(sides.ours.map(\.day) == [day("11-02"), day("11-03"), day("11-10")] && sides.partialRefunds.isEmpty)
  }

  private func restore(
    _ id: Identifier, of original: Identifier, _ change: (inout TransactionRecord.Contents) -> Void = { _ in }
  ) -> TransactionRecord {
    var contents = TransactionRecord.Contents(environment: .production, transactionId: id, productId: "gems60")
    contents.originalTransactionId = original
    (contents.purchaseDate, contents.originalPurchaseDate) = (noon("11-12"), noon("11-10"))
    (contents.priceMilliunits, contents.currency) = (4_990, "USD")
    change(&contents)
    return TransactionRecord(contents)
  }

  private func sides(_ records: [TransactionRecord]) -> ProductSides {
    var sides = ProductSides(app: "game", productId: "gems60", isKnown: true)
    let days = ReportDays(day("11-01")...day("11-20"), in: zone)
    for record in records { sides.add(record, storefront: "USA", isClaimed: true, days: days) }
    return sides.withRestoredSales
  }

  /// Apple counts the sale and, at price 0, the restore.
  @Test(arguments: ["P", "R"] as [Identifier])
  func aRestoreImpliesASaleOnItsOriginalDay(id: Identifier) {
    var sides = sides([restore(id, of: "P")])
    let sale = id == "P" ? ours(day("11-10"), price: number("4.99")) : OurUnits(day: day("11-10"))
    #expect(sides.ours.map(\.kind) == [.restore, .sale] && sides.ours.last == sale)
    sides.apple = [apple(day("11-10"), price: number("4.99")), apple(day("11-12"), kind: .restore, price: .zero)]
    let comparison = ProductComparison(sides, coverage: .whole(day("11-01")...day("11-20")))
    #expect(comparison.rows.contains { $0.day == day("11-10") && $0.ours == .one })
    #expect(comparison.rows.allSatisfy { $0.comparison?.unexplained ?? .zero == .zero })
  }

  @Test func restoresCountTheirSaleOnce() {
    let purchase = restore("P", of: "P") { $0.purchaseDate = $0.originalPurchaseDate }
    let again = restore("S", of: "P") { $0.purchaseDate = self.noon("11-13") }
    for records in [[purchase, restore("R", of: "P")], [restore("R", of: "P"), again, purchase]] {
      let sales = sides(records).ours.filter { $0.kind == .sale }
      #expect(sales.map(\.price) == [number("4.99")] && sales.map(\.day) == [day("11-10")])
    }
    // Of two restores, the one with the refund counts, whatever the order of the records.
    let refunded = restore("S", of: "P") { $0.revocation = Revocation(date: self.noon("11-15")) }
    for records in [[restore("R", of: "P"), refunded], [refunded, restore("R", of: "P")]] {
      let units = sides(records).ours.filter { $0.kind != .restore }
      #expect(units.map(\.kind) == [.sale, .refund] && units.map(\.day) == [day("11-10"), day("11-15")])
    }
  }

  @Test func theRefundOfARestoredSaleIsKnown() {
    let units = sides([restore("P", of: "P") { $0.revocation = Revocation(date: self.noon("11-14")) }]).ours
    #expect(units.map(\.kind) == [.restore, .sale, .refund] && units.map(\.units) == [1, 1, -1])
    #expect(units.last?.day == day("11-14"))
  }

  @Test func aReversedPartialRefundIsNoUnit() {
    for part in [
      Revocation(date: noon("11-03"), percentage: 33_333, type: "REFUND_PRORATED"),
      Revocation(date: noon("11-03"), coversSomeItemsOnly: true),
    ] {
      let sides = sides(withdrawn: part)
      #expect(sides.ours.map(\.units) == [3] && sides.partialRefunds.map(\.day) == [day("11-03")])
    }
  }
}

/// The comparison of one product over twenty days with final reports.
private func compare(_ apple: [AppleUnits], _ ours: [OurUnits]) -> [TieOutRow] {
  var sides = ProductSides(app: "game", productId: "gems60", isKnown: true)
  (sides.apple, sides.ours) = (apple, ours)
  return ProductComparison(sides, coverage: .whole(day("11-01")...day("11-20"))).rows
}

struct TotalsTests {
  /// Apple may count our sales of a day up to three days later, and our sales of the next day on this day.
  @Test func aDayIsInTheWeeksThatItsSalesMayCountIn() {
    #expect(TieOutTotals.weeks(around: [day("11-11")]) == [day("11-09")])
    #expect(TieOutTotals.weeks(around: [day("11-09")]) == [day("11-02"), day("11-09")])
    #expect(TieOutTotals.weeks(around: [day("11-13")]) == [day("11-09"), day("11-16")])
    #expect(TieOutTotals.weeks(around: []).isEmpty)
  }

  @Test func aWeekOfAProductIsOneFindingWithoutOffsetting() {
    var totals = TieOutTotals()
    let counted = [apple(day("11-02"), 3), apple(day("11-04")), apple(day("11-14"))]
    for row in compare(counted, [ours(day("11-08"))]) { totals.add(row) }
    #expect(totals.apple == Millionths(5) && totals.ours == .one)
    #expect(totals.unexplained == Millionths(4) && totals.explained.sum == .zero)
    #expect(totals.weeks.map(\.units) == [Millionths(4), .one])
    #expect(totals.weeks.map(\.monday) == [day("11-02"), day("11-09")])
    #expect(totals.weeks.first?.amount == number("3.96") && totals.weeks.first?.currency == "USD")
  }

  @Test(arguments: ["USD", "EUR"] as [Identifier])
  func aMissingPriceLeavesTheWeeksAmountUnknown(tuesdays: Identifier) {
    let rows = compare(
      [apple(day("11-02"), 3), apple(day("11-03"), 4, currency: tuesdays)],
      [ours(day("11-02")), OurUnits(day: day("11-03"))])
    for ordered in [rows, rows.reversed()] {
      var totals = TieOutTotals()
      for row in ordered { totals.add(row) }
      #expect(totals.weeks.map(\.units) == [Millionths(5)])
      #expect(totals.weeks.map(\.amount) == [nil] && totals.weeks.map(\.currency) == [nil])
    }
  }
}

struct ScopeTests {
  private func product(_ parent: Identifier, _ id: Identifier) -> Scope.Product { .init(parent: parent, productId: id) }

  @Test func theSKUIdentifiesTheApp() {
    let scope = Scope(
      apps: [.init(name: "game", bundleId: "g", sku: "GAME01"), .init(name: "cards", bundleId: "c", sku: "CARDS")],
      known: ["g": ["gems"], "c": ["gems"]], reported: [])
    #expect(scope.app(of: product("GAME01", "gems")) == "game" && scope.app(of: product("CARDS", "new")) == "cards")
    #expect(scope.app(of: product("OTHER", "gems")) == nil && scope.ambiguous.isEmpty)
  }

  @Test func withoutASKUKnownProductsIdentifyTheApp() {
    let scope = Scope(
      apps: [.init(name: "game", bundleId: "g", sku: nil)], known: ["g": ["gems"]],
      reported: [product("GAME01", "gems"), product("GAME01", "new"), product("OTHER", "coins")])
    #expect(scope.app(of: product("GAME01", "gems")) == "game" && scope.app(of: product("GAME01", "new")) == "game")
    #expect(scope.app(of: product("OTHER", "coins")) == nil)
    #expect(scope.isKnown("gems") && !scope.isKnown("new"))
  }

  @Test func aProductOfTwoAppsIsComparedForBoth() {
    let scope = Scope(
      apps: [.init(name: "game", bundleId: "g", sku: nil), .init(name: "cards", bundleId: "c", sku: nil)],
      known: ["g": ["gems", "hero"], "c": ["gems"]],
      reported: [product("GAME01", "gems"), product("CARDS", "gems"), product("GAME01", "hero")])
    #expect(scope.ambiguous == ["gems"] && scope.app(of: product("CARDS", "gems")) == "cards+game")
    #expect(scope.app(named: "game", productId: "gems") == "cards+game")
    #expect(scope.app(named: "game", productId: "hero") == "game")
  }

  /// An app without answers from Apple has orders only.
  @Test(
    arguments: [
      (nil, nil, ["both"], ["both"], []), (nil, nil, ["both"], [], ["both"]), (nil, "CARDS", ["both"], [], ["both"]),
      ("GAME01", "CARDS", ["both"], [], []), ("GAME01", "CARDS", [], [], ["both"]),
    ] as [(String?, String?, Set<Identifier>, Set<Identifier>, Set<Identifier>)])
  func ordersIdentifyTheSellerIfTransactionsDoNot(
    game: String?, cards: String?, ofGame: Set<Identifier>, ofCards: Set<Identifier>, open: Set<Identifier>
  ) {
    let apps = [
      Settings.App(name: "game", bundleId: "g", sku: game), Settings.App(name: "cards", bundleId: "c", sku: cards),
    ]
    let asked = Scope.open(
      [product("GAME01", "both"), product("", "GAME01")], of: apps,
      known: ["g": ofGame, "c": ofCards, "foreign": ["both"]])
    #expect(asked == open)
  }
}
