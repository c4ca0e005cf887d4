import Reconciliation

/// The limits of `--fail-on-findings` and `--fail-above`. Above them a complete night ends with status 2.
package struct FindingsThreshold: Hashable, Sendable {
  /// The maximum number of open critical findings; nil: unlimited.
  package var count: Int?
  /// The maximum amount at risk per currency, in minor units.
  package var amounts: [Currency: Int64] = [:]

  package init(count: Int? = nil) { self.count = count }

  package static let any = FindingsThreshold(count: 0)

  /// Adds one `--fail-above`, such as `25` or `500 USD`; the smaller of two counts. Returns false if it is invalid.
  package mutating func add(_ text: String) -> Bool {
    if let number = Int(digits: text) {
      count = min(count ?? .max, number)
      return true
    }
    let letters = text.filter(\.isLetter)
    let number = text.filter { !$0.isLetter && $0 != " " }
    guard let currency = Currency(code: letters.uppercased()), text.hasPrefix(letters) || text.hasSuffix(letters),
      let amount = Int64(decimalText: number, digits: Int(currency.digits)),
      amount < 1_000_000_000_000 * Money.powersOfTen[Int(currency.digits)]
    else { return false }
    amounts[currency] = min(amounts[currency] ?? .max, amount)
    return true
  }

  package func isExceeded(critical: Int, atStake: [Currency: Int128]) -> Bool {
    if let count, critical > count { return true }
    return amounts.contains { currency, amount in (atStake[currency] ?? 0) > Int128(amount) }
  }
}
