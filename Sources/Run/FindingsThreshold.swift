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
    if let number = Int(text), number >= 0 {
      count = min(count ?? .max, number)
      return true
    }
    let letters = text.filter(\.isLetter)
    let number = text.filter { !$0.isLetter && $0 != " " }
    guard let currency = Currency(code: letters.uppercased()), text.hasPrefix(letters) || text.hasSuffix(letters),
      let amount = FindingsThreshold.minorUnits(number, digits: Int(currency.digits))
    else { return false }
    amounts[currency] = min(amounts[currency] ?? .max, amount)
    return true
  }

  private static func minorUnits(_ text: String, digits: Int) -> Int64? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), let whole = Int64(parts[0]), whole >= 0, whole < 1_000_000_000_000 else {
      return nil
    }
    let fraction = parts.count == 2 ? String(parts[1]) : ""
    guard fraction.utf8.count <= digits, fraction.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    let padded = fraction + String(repeating: "0", count: digits - fraction.utf8.count)
    let scale = (0..<digits).reduce(Int64(1)) { scale, _ in scale * 10 }
    return whole * scale + (Int64(padded) ?? 0)
  }

  package func isExceeded(critical: Int, atStake: [Currency: Int128]) -> Bool {
    if let count, critical > count { return true }
    return amounts.contains { currency, amount in (atStake[currency] ?? 0) > Int128(amount) }
  }
}
