/// A share from 0 to 1, exact to the millionth instead of a binary fraction.
public struct Share: Hashable, Sendable, CustomStringConvertible {
  public static let whole = Share(millionths: 1_000_000)

  public let millionths: Int64

  public init(millionths: Int64) { self.millionths = millionths }

  /// nil: no decimal number from 0 to 1 with at most six digits after the point.
  public init?(_ text: String) {
    // A share may begin with the point, as in `.5`.
    let decimalText = text.hasPrefix(".") ? "0\(text)" : text
    guard text != ".", let millionths = Int64(decimalText: decimalText, digits: 6),
      millionths <= Share.whole.millionths
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
