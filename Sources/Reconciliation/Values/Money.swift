/// An amount in minor units of one currency: 1.99 USD is 199, 300 JPY is 300, 1.250 KWD is 1250.
public struct Money: Hashable, Sendable {
  public var minorUnits: Int64
  public var currency: Currency

  public init(minorUnits: Int64, currency: Currency) {
    self.minorUnits = minorUnits
    self.currency = currency
  }

  /// Converts Apple's milliunits, thousandths of the major unit (`JWSTransactionDecodedPayload.price`).
  /// nil: no whole number of minor units, which is a finding and is never rounded.
  public init?(milliunits: Int64, currency: Currency) {
    switch currency.digits {
    case 0, 1, 2:
      let divisor = Money.powersOfTen[3 - Int(currency.digits)]
      guard milliunits % divisor == 0 else { return nil }
      self.init(minorUnits: milliunits / divisor, currency: currency)
    case let digits:
      let (value, overflow) = milliunits.multipliedReportingOverflow(by: Money.powersOfTen[Int(digits) - 3])
      guard !overflow else { return nil }
      self.init(minorUnits: value, currency: currency)
    }
  }

  public func share(milliPercent: Int32) -> Money { share(Int64(milliPercent), of: 100_000) }

  /// `part / whole` of the amount, rounded half away from zero. `whole` is above zero.
  public func share(_ part: Int64, of whole: Int64) -> Money {
    let units = (Int128(minorUnits) * Int128(part)).rounded(dividingBy: Int128(whole))
    return Money(minorUnits: Int64(clamping: units), currency: currency)
  }

  static func sum(_ amounts: [Money]) -> Money? {
    guard let currency = amounts.first?.currency, amounts.allSatisfy({ $0.currency == currency }),
      let minorUnits = Int64(exactly: amounts.reduce(Int128(0)) { $0 + Int128($1.minorUnits) })
    else { return nil }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  /// Major units with the digits of the currency: `1.99`, `300`, `-0.500`.
  public var decimalText: String { Money.decimalText(Int128(minorUnits), digits: currency.digits) }

  public static func decimalText(_ minorUnits: Int128, digits: UInt8) -> String {
    var text = String(minorUnits.magnitude)
    if digits > 0 {
      let wanted = Int(digits) + 1
      if text.utf8.count < wanted { text = String(repeating: "0", count: wanted - text.utf8.count) + text }
      text.insert(".", at: text.index(text.endIndex, offsetBy: -Int(digits)))
    }
    return minorUnits < 0 ? "-" + text : text
  }

  /// The amount for people, with grouped thousands and the currency: `21,900 JPY`.
  public var text: String { "\(currency.text(Int128(minorUnits))) \(currency)" }

  /// A decimal number for people: `-1234.50` becomes `−1,234.50`. Other text stays as it is.
  public static func grouped(_ decimalText: String) -> String {
    let isNegative = decimalText.utf8.first == UInt8(ascii: "-")
    var text = isNegative ? String(decimalText.dropFirst()) : decimalText
    let whole = text.prefix { $0 != "." }.utf8
    guard !whole.isEmpty, whole.allSatisfy({ (48...57).contains($0) }) else { return decimalText }
    for offset in stride(from: whole.count - 3, to: 0, by: -3) {
      text.insert(",", at: text.index(text.startIndex, offsetBy: offset))
    }
    return isNegative ? "−" + text : text
  }

  /// Apple's price in thousandths for people, with the digits of its currency where that is exact: `1.99 USD`.
  public static func text(price: String, currency: String) -> String {
    var text = price[...]
    let digits = Int(Currency(code: currency)?.digits ?? 3)
    while text.last == "0", let point = text.firstIndex(of: "."), text[point...].count > digits + 1 {
      text.removeLast()
    }
    return "\(grouped(String(text.last == "." ? text.dropLast() : text))) \(currency)"
  }

  public static let powersOfTen: [Int64] = [
    1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000,
  ]
}

extension Currency {
  /// An amount for people, with grouped thousands and without the code: `21,900`.
  public func text(_ minorUnits: Int128) -> String { Money.grouped(Money.decimalText(minorUnits, digits: digits)) }
}

/// A sum of money per currency, in 128 bits against overflow.
public struct MoneyByCurrency: Equatable, Sendable {
  private var sums = ByCurrency<Int128>()

  public var sorted: [(currency: Currency, minorUnits: Int128)] {
    sums.sorted.map { (currency: $0.currency, minorUnits: $0.value) }
  }

  public init() {}

  public init(_ minorUnits: [Currency: Int128]) { for (currency, amount) in minorUnits { add(amount, of: currency) } }

  public var minorUnits: [Currency: Int128] { sums.dictionary }

  public mutating func add(_ money: Money) { add(Int128(money.minorUnits), of: money.currency) }

  public mutating func add(_ other: MoneyByCurrency) {
    for line in other.sums.sorted { add(line.value, of: line.currency) }
  }

  private mutating func add(_ amount: Int128, of currency: Currency) {
    sums[currency, default: 0] += amount
  }
}

extension FixedWidthInteger {
  /// Parses decimal digits alone. Swift's initializers accept a sign, too: `+1`, `-0`.
  public init?(digits text: some StringProtocol) {
    guard text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    self.init(text, radix: 10)
  }
}

extension Int128 {
  /// The quotient, rounded half away from zero. `divisor` is above zero.
  fileprivate func rounded(dividingBy divisor: Int128) -> Int128 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return quotient + (remainder * 2 >= divisor ? 1 : (remainder * 2 <= -divisor ? -1 : 0))
  }

  /// The share of `whole` in thousandths, rounded half away from zero; 0 if `whole` is not above zero.
  public func permille(of whole: Int128) -> Int128 { whole > 0 ? (self * 1_000).rounded(dividingBy: whole) : 0 }
}

extension Int64 {
  /// Parses a decimal number without a sign, in units of its last digit: `1.9` with two digits is 190.
  /// nil for more digits after the point, for none before it, and for other text.
  public init?(decimalText text: String, digits: Int) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = parts.count > 1 ? parts[1] : ""
    guard !parts[0].isEmpty, fraction.utf8.count <= digits else { return nil }
    self.init(digits: "\(parts[0])\(fraction)" + String(repeating: "0", count: digits - fraction.utf8.count))
  }
}

extension Money {
  /// For example 10,000 for USD.
  public static func millionthsPerMinorUnit(_ currency: Currency) -> Int64 {
    powersOfTen[max(0, 6 - Int(currency.digits))]
  }
}
