import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Adjustments of days that were already reported.
@Suite struct DayTotalsTests {
  private static let start = Instant(seconds: 1_763_424_000)
  private static let days = (0..<3).map { index in
    DayTotals.Day(
      name: "2026-11-1\(index + 7)", start: start + .days(Int64(index)), end: start + .days(Int64(index) + 1))
  }
  private static let dollars = Currency(code: "USD")

  private func judgement(_ id: String, _ created: Instant, _ minorUnits: Int64 = 499) throws -> Judgement {
    let money = Money(minorUnits: minorUnits, currency: try #require(Self.dollars))
    let order = Order(
      orderId: Identifier(id), userId: "u", productId: "gems", amount: money, status: .pending, createdAt: created)
    return Judgement(
      judging: OrderFacts(order: order),
      rules: Rules(asOf: Self.start + .days(9), bundleIds: ["com.example.game"], lookbackStart: Self.start))
  }

  @Test func anOrderCountsOnItsOwnDayOnly() throws {
    var totals = DayTotals(days: Self.days)
    for (offset, _) in [(-1, ""), (0, ""), (86_399, ""), (86_400, ""), (3 * 86_400, "")] {
      totals.add(try judgement("o\(offset)", Self.start + .seconds(Int64(offset))))
    }
    let bucket = DayTotals.Bucket(currency: try #require(Self.dollars), disposition: .void)
    #expect(totals.sums(of: "2026-11-17") == [bucket: DayTotals.Sum(orders: 2, minorUnits: 998)])
    #expect(totals.sums(of: "2026-11-18") == [bucket: DayTotals.Sum(orders: 1, minorUnits: 499)])
    #expect(totals.sums(of: "2026-11-19") == [:])
    #expect(totals.sums(of: "2026-11-20") == nil)
  }

  @Test func dayLinesStartAtZeroAndCountEachOrder() {
    var line = Totals.Line()
    #expect(line.orders == 0 && line.ordered == 0 && line.sums == Array(repeating: 0, count: 10))
    line.add(499, .settled)
    line.add(1, .void)
    var both = line
    both.add(line)
    #expect(line.orders == 2 && line.ordered == 500 && both.orders == 4 && both.ordered == 1_000)
    #expect(both.sums[Disposition.settled.index] == 998 && both.sums[Disposition.void.index] == 2)
  }

  @Test func takenUserSumsStayInTheTotals() throws {
    var totals = Totals()
    for (id, amount) in [("o1", 499), ("o2", 1)] as [(String, Int64)] {
      let judgement = try judgement(id, Self.start, amount)
      totals.read(judgement.row)
      totals.add(judgement)
      var taken: [Int128] = []
      totals.takeUsers { taken.append($1.ordered) }
      #expect(taken == [Int128(amount)] && totals.users.isEmpty)
    }
    #expect(!totals.control.isEmpty && totals.control.allSatisfy(\.isBalanced), "\(totals.control)")
  }

  @Test func adjustmentsAreListedByDay() throws {
    let bucket = DayTotals.Bucket(currency: try #require(Self.dollars), disposition: .settled)
    let names = (1...20).map { "2026-11-\($0 < 10 ? "0" : "")\($0)" }
    let reported: [String: DayTotals.Sums] = Dictionary(
      uniqueKeysWithValues: names.map { ($0, [bucket: DayTotals.Sum(orders: 1, minorUnits: 1)]) })
    #expect(Adjustment.between(reported, reported.mapValues { _ in [:] }).map(\.day) == names)
  }

  @Test func changedDayTotalsAreAdjustments() throws {
    let dollars = try #require(Self.dollars)
    let settled = DayTotals.Bucket(currency: dollars, disposition: .settled)
    let refunded = DayTotals.Bucket(currency: dollars, disposition: .refunded)
    let two = DayTotals.Sum(orders: 2, minorUnits: 998)
    let one = DayTotals.Sum(orders: 1, minorUnits: 499)
    let reported: [String: DayTotals.Sums] = [
      "2026-11-17": [settled: two], "2026-11-18": [settled: one], "2026-11-01": [:],
    ]
    let now: [String: DayTotals.Sums] = [
      "2026-11-17": [settled: one, refunded: one], "2026-11-18": [settled: one], "2026-11-19": [settled: two],
    ]
    // The 18th is unchanged, the 19th was not reported, and the 1st is outside the period now.
    #expect(
      Adjustment.between(reported, now) == [
        Adjustment(day: "2026-11-17", bucket: settled, reported: two, now: one),
        Adjustment(day: "2026-11-17", bucket: refunded, reported: DayTotals.Sum(), now: one),
      ])
    #expect(Adjustment.between(now, now).isEmpty)
  }
}
