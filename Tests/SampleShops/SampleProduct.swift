import Reconciliation

package struct SampleProduct: Sendable {
  package let productId: Identifier
  package let type: ProductType
  /// For one unit, in minor units, in the order of `currencies`.
  private let prices: [Int64]

  /// With zero, two and three decimals.
  package static let currencies = ["USD", "EUR", "JPY", "KWD", "CNY"]

  package static func currency(_ random: inout SampleRandom) -> String {
    let draw = random.fraction()
    return zip(currencies, [0.4, 0.65, 0.82, 0.9, 1]).first { draw < $0.1 }?.0 ?? "USD"
  }

  package init(_ productId: Identifier, _ type: ProductType, _ prices: [Int64]) {
    (self.productId, self.type, self.prices) = (productId, type, prices)
  }

  package func price(_ currency: String) -> Money {
    .of(prices[SampleProduct.currencies.firstIndex(of: currency) ?? 0], currency)
  }

  package static let gems = [
    SampleProduct("gems.100", .consumable, [99, 109, 160, 300, 600]),
    SampleProduct("gems.550", .consumable, [499, 549, 800, 1_500, 3_000]),
    SampleProduct("gems.1200", .consumable, [999, 1_099, 1_600, 3_000, 6_800]),
  ]
  package static let chest = SampleProduct("gems.6500", .consumable, [4_999, 5_499, 8_000, 15_000, 32_800])
  package static let heroes = [
    SampleProduct("hero.valkyrie", .nonConsumable, [799, 899, 1_200, 2_400, 5_000]),
    SampleProduct("hero.samurai", .nonConsumable, [799, 899, 1_200, 2_400, 5_000]),
    SampleProduct("map.atlantis", .nonConsumable, [299, 349, 480, 900, 1_800]),
    SampleProduct("ads.none", .nonConsumable, [199, 229, 320, 600, 1_200]),
  ]
  package static let seasonPass = SampleProduct("pass.season", .nonRenewing, [1_499, 1_699, 2_400, 4_500, 9_800])
  package static let vip = SampleProduct("vip.monthly", .autoRenewable, [499, 549, 800, 1_500, 3_000])

  package static let vipGold = SampleProduct("vip.gold.monthly", .autoRenewable, [999, 1_099, 1_600, 3_000, 6_800])

  package static let all = gems + [chest] + heroes + [seasonPass, vip, vipGold]
}

extension Money {
  package static func of(_ minorUnits: Int64, _ code: String = "USD") -> Money {
    guard let currency = Currency(code: code) else { preconditionFailure("no currency \(code)") }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  /// Apple's price format: thousandths of the major unit in every currency.
  package var milliunits: Int64 { (currency.digits..<3).reduce(minorUnits) { amount, _ in amount * 10 } }
}
