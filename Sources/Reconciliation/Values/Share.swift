/// A share from 0 to 1, exact to the millionth instead of a binary fraction.
public struct Share: Hashable, Sendable, CustomStringConvertible {
  public static let whole = Share(millionths: 1_000_000)

  public let millionths: Int64

  public init(millionths: Int64) { self.millionths = millionths }

  /// nil: no decimal number from 0 to 1 with at most six digits after the point.
  public init?(_ text: String) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = parts.count > 1 ? String(parts[1]) : ""
    let digits = parts[0] + fraction + String(repeating: "0", count: max(0, 6 - fraction.utf8.count))
    guard !(parts[0].isEmpty && fraction.isEmpty), fraction.utf8.count <= 6,
      digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let millionths = Int64(digits), millionths <= Share.whole.millionths
    else { return nil }
    self.init(millionths: millionths)
  }

  public func isExceeded(by count: Int, of all: Int) -> Bool {
    Int128(count) * Int128(Share.whole.millionths) > Int128(millionths) * Int128(all)
  }

  public var description: String {
    var text = Money.decimalText(Int128(millionths), digits: 6)
    while text.hasSuffix("0"), !text.hasSuffix(".0") { text.removeLast() }
    return text
  }
}
