/// The limit of an accepted finding: a day, an amount at risk, or both.
public struct Acceptance: Hashable, Sendable {
  public var until: String?
  /// The largest amount at risk, as decimal text in major units of the finding's currency.
  public var amount: String?

  public init?(until: String?, amount: String?) {
    if until == nil, amount == nil { return nil }
    (self.until, self.amount) = (until, amount)
  }

  /// Parses the stored text: `until 2026-12-31 amount 50.00`.
  public init?(text: String) {
    let words = text.split(separator: " ").map(String.init)
    func word(after name: String) -> String? {
      words.firstIndex(of: name).flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
    }
    self.init(until: word(after: "until"), amount: word(after: "amount"))
  }

  public var text: String {
    [until.map { "until \($0)" }, amount.map { "amount \($0)" }].compactMap(\.self).joined(separator: " ")
  }

  /// True if the day is over, or the amount at risk is larger or unknown.
  /// - Parameter today: the as-of's day in the report's time zone.
  public func isExceeded(by finding: Finding, today: String) -> Bool {
    if let until, today > until { return true }
    guard let amount else { return false }
    if finding.isAmountAtRiskUnknown { return true }
    guard let atStake = finding.atStake else { return false }
    // 128 bits hold both sides, as the text has at most 18 characters (`longestAmount`).
    let parts = amount.split(separator: ".", omittingEmptySubsequences: false)
    let fraction = parts.count > 1 ? parts[1].count : 0
    guard let limit = Int128(parts.joined()) else { return true }
    return Int128(atStake.minorUnits) * Acceptance.power(fraction)
      > limit * Acceptance.power(Int(atStake.currency.digits))
  }

  /// False if the amount has more decimals than the currency. Zeros at its end do not count.
  public func isExpressible(in currency: Currency) -> Bool {
    let fraction = amount?.split(separator: ".", omittingEmptySubsequences: false).dropFirst().first ?? ""
    return fraction.reversed().drop { $0 == "0" }.count <= Int(currency.digits)
  }

  private static func power(_ digits: Int) -> Int128 { (0..<digits).reduce(1) { power, _ in power * 10 } }

  public static let longestAmount = 18
}
