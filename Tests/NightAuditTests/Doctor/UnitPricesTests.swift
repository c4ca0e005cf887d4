import Reconciliation
import TestSupport
import Testing

@testable import NightAudit

@Suite struct UnitPricesTests {
  private struct Sale {
    var product: String
    var minorUnits: Int64
    var quantity: Int32 = 1
    var currency = "EUR"
  }

  private static let priceList: [(product: String, minorUnits: Int64)] = [
    ("gems.100", 99), ("gems.550", 499), ("gems.1200", 999), ("hero", 799), ("chest", 1_999), ("vip", 499),
  ]
  private static let fifth = Share(millionths: 200_000)

  private static func sales(_ count: Int, _ random: inout SeededGenerator) -> [Sale] {
    (0..<count).map { _ in
      let (product, price) = priceList[Int.random(in: 0..<priceList.count, using: &random)]
      let isYen = Bool.random(using: &random)
      return Sale(product: product, minorUnits: isYen ? price * 8 / 5 : price, currency: isYen ? "JPY" : "EUR")
    }
  }

  private func misplaced(_ sales: [Sale]) throws -> Tally? {
    var prices = UnitPrices()
    for (number, sale) in sales.enumerated() {
      prices.add(
        Order(
          orderId: Identifier("o\(number)"), userId: "u", productId: Identifier(sale.product), quantity: sale.quantity,
          amount: Money(minorUnits: sale.minorUnits, currency: try #require(Currency(code: sale.currency))),
          status: .verified, createdAt: Instant(seconds: 1_795_132_800)))
    }
    return prices.misplaced
  }

  /// Each amount is that of the row before, as after a wrong join.
  @Test(arguments: UInt64(1)...20) func amountsOfOtherOrdersAreMisplaced(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let sales = Self.sales(300, &random)
    let shifted = zip(sales.dropFirst(), sales).map { sale, before in
      Sale(product: sale.product, minorUnits: before.minorUnits, currency: sale.currency)
    }
    let tally = try #require(try misplaced(shifted))
    #expect(tally.holdsNight(Self.fifth) && tally.examples.count == 3)
    #expect(try misplaced(sales)?.odd ?? 0 == 0)
  }

  /// Packs, offers, price changes and countries leave each product with its own prices.
  @Test(arguments: UInt64(1)...20) func honestPriceListsAreNotMisplaced(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    for number in 0..<6 {
      var sales = Self.sales(300, &random)
      for index in sales.indices {
        switch number {
        // Several of a consumable.
        case 0: sales[index].quantity = Int32.random(in: 1...9, using: &random)
        // Half of the sales are at an introductory price.
        case 1: if Bool.random(using: &random) { sales[index].minorUnits /= 2 }
        // All prices are raised in the middle of the lookback.
        case 2: if index > 150 { sales[index].minorUnits *= 2 }
        // Amounts are converted at the rate of each day.
        case 3: sales[index].minorUnits = sales[index].minorUnits * Int64.random(in: 85...115, using: &random) / 100
        // A free trial.
        case 4: if index % 3 == 0 { sales[index].minorUnits = 0 }
        // One price for everything.
        default: sales[index].minorUnits = 499
        }
        if number == 0 { sales[index].minorUnits *= Int64(sales[index].quantity) }
      }
      let tally = try misplaced(sales)
      #expect(tally?.holdsNight(Self.fifth) != true, "\(number)")
    }
  }

  @Test func twoProductsAreNoPriceList() throws {
    let sales = (0..<200).map { number in
      Sale(product: number % 2 == 0 ? "one" : "two", minorUnits: [99, 499, 999, 1_999][number / 2 % 4])
    }
    #expect(try misplaced(sales)?.odd ?? 0 == 0)
  }
}
