/// A currency that the sample shop sells in, with the decimal digits of its minor unit (ISO 4217).
enum SampleCurrency: Int, CaseIterable {
  case usd, eur, jpy, kwd, cny

  var code: String {
    switch self {
    case .usd: "USD"
    case .eur: "EUR"
    case .jpy: "JPY"
    case .kwd: "KWD"
    case .cny: "CNY"
    }
  }

  var digits: Int {
    switch self {
    case .jpy: 0
    case .usd, .eur, .cny: 2
    case .kwd: 3
    }
  }

  /// Minor units as a decimal number of major units: `1.99`, `300`, `-0.500`.
  func text(minorUnits: Int64) -> String {
    var digits = String(minorUnits.magnitude)
    guard self.digits > 0 else { return minorUnits < 0 ? "-" + digits : digits }
    digits = String(repeating: "0", count: max(0, self.digits + 1 - digits.count)) + digits
    digits.insert(".", at: digits.index(digits.endIndex, offsetBy: -self.digits))
    return minorUnits < 0 ? "-" + digits : digits
  }

  /// Minor units in Apple's thousandths of the major unit.
  func milliunits(minorUnits: Int64) -> Int64 {
    (digits..<3).reduce(minorUnits) { amount, _ in amount * 10 }
  }
}

/// Something the sample shop sells.
struct SampleProduct {
  /// Apple's product types, in Apple's words.
  enum Kind: String, Encodable {
    case consumable = "Consumable"
    case nonConsumable = "Non-Consumable"
    case autoRenewable = "Auto-Renewable Subscription"
    case nonRenewing = "Non-Renewing Subscription"
  }

  var productId: String
  var kind: Kind
  /// Of one unit, in minor units, by currency in the order of `SampleCurrency`.
  var prices: [Int64]

  func price(_ currency: SampleCurrency) -> Int64 { prices[currency.rawValue] }
}

/// The products of the sample game.
enum Catalogue {
  static let bundleId = "com.example.game"
  static let appAppleId: Int64 = 1_234_567_890
  /// Another app, whose receipts have no business here.
  static let foreignBundleId = "com.example.cards"

  static let gems = [
    SampleProduct(productId: "gems.100", kind: .consumable, prices: [99, 109, 160, 300, 600]),
    SampleProduct(productId: "gems.550", kind: .consumable, prices: [499, 549, 800, 1_500, 3_000]),
    SampleProduct(productId: "gems.1200", kind: .consumable, prices: [999, 1_099, 1_600, 3_000, 6_800]),
    SampleProduct(productId: "gems.6500", kind: .consumable, prices: [4_999, 5_499, 8_000, 15_000, 32_800]),
  ]
  static let heroes = [
    SampleProduct(productId: "hero.valkyrie", kind: .nonConsumable, prices: [799, 899, 1_200, 2_400, 5_000]),
    SampleProduct(productId: "hero.samurai", kind: .nonConsumable, prices: [799, 899, 1_200, 2_400, 5_000]),
    SampleProduct(productId: "map.atlantis", kind: .nonConsumable, prices: [299, 349, 480, 900, 1_800]),
    SampleProduct(productId: "ads.none", kind: .nonConsumable, prices: [199, 229, 320, 600, 1_200]),
  ]
  static let seasonPass = SampleProduct(
    productId: "pass.season", kind: .nonRenewing, prices: [1_499, 1_699, 2_400, 4_500, 9_800])
  static let vip = SampleProduct(
    productId: "vip.monthly", kind: .autoRenewable, prices: [499, 549, 800, 1_500, 3_000])

  /// How long one period of the subscription lasts, in milliseconds.
  static let vipPeriod: Int64 = 30 * Timeline.day
}
