import Reconciliation
import TestSupport
import Testing

@testable import TieOut

extension SeededGenerator {
  fileprivate mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
}

struct ComparisonPropertyTests {
  private static let places: [(Identifier, Identifier)] = [("US", "USD"), ("DE", "EUR"), ("FR", "EUR"), ("JP", "JPY")]
  private static let prices = ["0.99", "1.99", "0.985", "120"].map { number($0) }

  private func day(_ offset: Int) -> ReportDay { TieOutTests.day("09-01").advanced(by: offset) }

  private func coverage(_ random: inout SeededGenerator) -> DayCoverage {
    let others: [DayCoverage.Coverage] = [.missing, .young, .partial]
    let states: [DayCoverage.Coverage] = (0..<50).map { _ in random.chance(90) ? .final : others[random.number(0...2)] }
    let printed = day(random.number(0...8))...day(49)
    return DayCoverage(days: day(0)...day(49), compared: printed, printed: printed) {
      states[$0.number - self.day(0).number]
    }
  }

  private func sides(_ random: inout SeededGenerator, coverage: DayCoverage) -> ProductSides {
    var sides = ProductSides(app: "game", productId: "gems", isKnown: random.chance(90))
    for _ in 0..<random.number(0...60) {
      let (country, currency) = Self.places[random.number(0...3)]
      let kind = TieOutClass.allCases[random.number(0...3)]
      let isFree = kind == .free || kind == .restore
      let date = day(random.number(0...49))
      if coverage[date] != .missing {
        let price = isFree ? .zero : Self.prices[random.number(0...3)]
        let units = random.number(1...4) * (kind == .refund ? -1 : 1)
        sides.apple.append(apple(date, units, kind: kind, country: country, currency: currency, price: price))
      }
    }
    for _ in 0..<random.number(0...60) {
      let (country, currency) = Self.places[random.number(0...3)]
      let kind = TieOutClass.allCases[random.number(0...3)]
      let units = random.number(1...4)
      let isKnown = random.chance(85)
      var mine = ours(
        day(random.number(0...49)), kind == .refund ? -units : units, kind: kind,
        country: random.chance(80) ? country : nil, currency: isKnown ? currency : nil,
        price: isKnown ? (kind == .free ? .zero : Self.prices[random.number(0...3)]) : nil)
      mine.isUnclaimedRenewal = random.chance(10)
      mine.mayBeFree = !isKnown && random.chance(30)
      sides.ours.append(mine)
    }
    for _ in 0..<random.number(0...3) { sides.partialRefunds.append(RefundEvidence(day: day(random.number(0...49)))) }
    for _ in 0..<random.number(0...3) { sides.upgrades.append(RefundEvidence(day: day(random.number(0...49)))) }
    for _ in 0..<random.number(0...9) {
      sides.shop.append(ShopUnits(day: day(random.number(0...49)), currency: "USD", units: 1, amount: Self.prices[0]))
    }
    return sides
  }

  @Test(arguments: 0..<400)
  func explanationsAndRemainderSumToTheDifference(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let coverage = coverage(&random)
    let sides = sides(&random, coverage: coverage)
    let comparison = ProductComparison(sides, coverage: coverage)
    for row in comparison.rows {
      guard let comparison = row.comparison else { continue }
      #expect((row.apple ?? .zero) - (row.ours ?? .zero) == comparison.difference, "\(row)")
    }
    for level in [TieOutLevel.units, .country] {
      let rows = comparison.rows.filter { $0.level == level }
      let apple = sides.apple.filter { coverage.printed.contains($0.day) }.map(\.units).reduce(.zero, +)
      let ours = sides.ours.filter { coverage.printed.contains($0.day) }.map { Millionths($0.units) }.reduce(.zero, +)
      #expect(rows.compactMap(\.apple).reduce(.zero, +) == apple && rows.compactMap(\.ours).reduce(.zero, +) == ours)
    }
    // Timing pairs cancel out within the compared days.
    if coverage.printed == coverage.days {
      for explanation in [TieOutExplanation.timing, .refundTiming] {
        let units = comparison.rows.filter { $0.level == .units }
          .compactMap { $0.comparison?.explained[explanation] }.reduce(.zero, +)
        #expect(units == .zero)
      }
    }
  }

  @Test(arguments: 0..<100)
  func vendorSumsAddUpForAnySetOfReports(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let vendors = ["80012345", "80099999"]
    var known: [String: [String: ConnectReportTable.Known]] = [:]
    var sides = ProductSides(app: "game", productId: "gems", isKnown: true)
    for date in (0..<53).map(day) {
      for vendor in vendors where random.chance(80) {
        let isReadable = random.chance(80)
        known[date.description, default: [:]][vendor] = ConnectReportTable.Known(
          isReadable ? .reported : .unreadable, .folder)
        guard isReadable else { continue }
        sides.apple.append(apple(date, random.number(1...4)))
      }
      if random.chance(70) { sides.ours.append(ours(date, random.number(1...6))) }
    }
    let window = ReportWindow(today: day(53), first: day(8), margin: 8, known: known, vendors: vendors)
    let coverage = DayCoverage(days: window.days, compared: window.compared, printed: window.printed) {
      window.coverage($0, isYoung: $0 >= self.day(51))
    }
    var totals = TieOutTotals()
    for row in ProductComparison(sides, coverage: coverage).rows {
      totals.add(row)
      let isReported = known[row.day.description]?.values.contains { $0.state == .reported } ?? false
      #expect((row.apple != nil) == isReported, "\(row)")
      #expect((row.apple ?? .zero) - (row.ours ?? .zero) == row.comparison?.difference, "\(row)")
    }
    let printed = sides.apple.filter { coverage.printed.contains($0.day) }.map(\.units).reduce(.zero, +)
    #expect(totals.apple == printed && totals.apple == totals.ours + totals.explained.sum + totals.unexplained)
  }

  @Test(arguments: 0..<100)
  func inputOrderDoesNotChangeTheComparison(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let coverage = coverage(&random)
    let sides = sides(&random, coverage: coverage)
    var shuffled = sides
    (shuffled.apple, shuffled.ours) = (sides.apple.shuffled(using: &random), sides.ours.shuffled(using: &random))
    shuffled.partialRefunds.shuffle(using: &random)
    shuffled.upgrades.shuffle(using: &random)
    shuffled.shop.shuffle(using: &random)
    #expect(ProductComparison(shuffled, coverage: coverage).rows == ProductComparison(sides, coverage: coverage).rows)
  }

  /// The shop has all sales but the lost ones. Apple reports sales up to three days late, and refunds on their day.
  @Test(arguments: 0..<200)
  func exactlyTheLostOrdersAreUnexplained(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let days = day(0)...day(49)
    let coverage = DayCoverage(days: days, compared: days, printed: days) { $0 >= self.day(48) ? .young : .final }
    var sides = ProductSides(app: "game", productId: "gems", isKnown: true)
    var lost = 0
    // Lost orders are far from late sales, because a sale and a loss within days of each other cannot be distinguished.
    for week in 0..<5 {
      let start = week * 9
      for _ in 0..<random.number(0...12) {
        let sold = start + random.number(0...1)
        let counted = random.chance(30) ? sold + random.number(0...2) : sold
        let units = random.number(1...3)
        sides.ours.append(ours(day(sold), units))
        sides.apple.append(apple(day(counted), units))
        if random.chance(20) {
          sides.ours.append(ours(day(counted), -units, kind: .refund))
          sides.apple.append(apple(day(counted), -units, kind: .refund))
        }
      }
      if random.chance(60) {
        let units = random.number(1...4)
        lost += units
        sides.apple.append(apple(day(start + 6), units))
      }
    }
    let rows = ProductComparison(sides, coverage: coverage).rows
    for level in [TieOutLevel.units, .country] {
      let unexplained = rows.filter { $0.level == level }.compactMap { $0.comparison?.unexplained }
      #expect(unexplained.reduce(.zero, +) == Millionths(lost) && unexplained.allSatisfy { $0 >= .zero })
    }
    let amount = rows.filter { $0.level == .amount }.compactMap { $0.comparison?.unexplained }.reduce(.zero, +)
    #expect(amount == number("0.99").times(Millionths(lost)))
  }
}
