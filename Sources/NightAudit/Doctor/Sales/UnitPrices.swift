import Foundation
import Reconciliation

/// The unit prices of orders by currency and product. Shows amounts of other orders where Apple states no price.
struct UnitPrices {
  private struct Price {
    var minorUnits: Int64
    var orders = 0
    /// The first order at the price, for examples.
    var first: Identifier
  }

  private var products: [Currency: [Identifier: [Int64: Price]]] = [:]

  /// Fewer orders of a product have no usual price.
  private static let fewestOrders = 5
  /// Fewer products of a currency, or fewer price levels, are no price list.
  private static let (fewestProducts, fewestLevels) = (3, 4)
  /// The share of the variance of prices that products explain at least. Price changes, sales at half price and rates of
  /// exchange leave more than four fifths; amounts of other orders leave none.
  private static let leastExplained = 0.25

  mutating func add<ID: FieldText, Text: FieldText>(_ order: OrderFields<ID, Text>) {
    let price = order.amount.minorUnits / Int64(order.quantity)
    guard price > 0 else { return }
    products[order.amount.currency, default: [:]][order.productId.id, default: [:]][
      price, default: Price(minorUnits: price, first: order.orderId.id)
    ].orders += 1
  }

  /// The orders that are far from the median price of their product, among the compared ones.
  /// nil if the products explain the prices, or there is no price list to compare with.
  var misplaced: Tally? {
    var tally = Tally()
    var (within, whole) = (Spread(), Spread())
    for (currency, sold) in products.sorted(by: { $0.key < $1.key }) {
      let compared = sold.sorted { $0.key < $1.key }.map { product, prices in
        (product: product, prices: prices.values.sorted { $0.minorUnits < $1.minorUnits })
      }.filter { Self.orders($0.prices) >= Self.fewestOrders }
      let all = compared.flatMap(\.prices).sorted { ($0.minorUnits, $0.first) < ($1.minorUnits, $1.first) }
      guard compared.count >= Self.fewestProducts, Self.levels(all) >= Self.fewestLevels else { continue }
      tally.all += Self.orders(all)
      whole.add(all)
      for (product, prices) in compared {
        within.add(prices)
        let usual = Self.median(prices)
        // Half as much again, or two thirds.
        let far = prices.filter { $0.minorUnits > usual + usual / 2 || $0.minorUnits < usual - usual / 3 }
        tally.odd += Self.orders(far)
        guard tally.examples.count < 3, let example = far.min(by: { $0.first < $1.first }) else { continue }
        tally.examples.append(
          "order \(example.first): \(Money(minorUnits: example.minorUnits, currency: currency).text) for one \(product), "
            + "usually \(Money(minorUnits: usual, currency: currency).text)")
      }
    }
    return whole.variance > 0 && 1 - within.variance / whole.variance < Self.leastExplained ? tally : nil
  }

  /// The variance of logarithms of prices around the mean of each group.
  private struct Spread {
    private var squares = 0.0
    private var freedom = 0

    var variance: Double { freedom > 0 ? squares / Double(freedom) : 0 }

    mutating func add(_ prices: [Price]) {
      let count = UnitPrices.orders(prices)
      let mean = prices.reduce(0) { $0 + Double($1.orders) * log(Double($1.minorUnits)) } / Double(count)
      squares += prices.reduce(0) { sum, price in
        let distance = log(Double(price.minorUnits)) - mean
        return sum + Double(price.orders) * distance * distance
      }
      freedom += count - 1
    }
  }

  private static func orders(_ prices: [Price]) -> Int { prices.reduce(0) { $0 + $1.orders } }

  private static func median(_ prices: [Price]) -> Int64 {
    var rest = orders(prices) / 2
    for price in prices {
      rest -= price.orders
      if rest < 0 { return price.minorUnits }
    }
    return 0
  }

  /// The number of groups of near prices that have a twentieth of the orders each.
  private static func levels(_ prices: [Price]) -> Int {
    let least = max(1, orders(prices) / 20)
    var (levels, start, count) = (0, Int64(0), 0)
    for price in prices {
      if price.minorUnits > start + start / 2 {
        levels += count >= least ? 1 : 0
        (start, count) = (price.minorUnits, 0)
      }
      count += price.orders
    }
    return levels + (count >= least ? 1 : 0)
  }
}
