import Reconciliation
import Testing

@testable import TieOut

struct MillionthsTests {
  @Test(arguments: [
    ("0.99", 990_000), ("-2", -2_000_000), ("1200", 1_200_000_000), ("0.000001", 1), ("-0.990", -990_000),
    ("84", 84_000_000), ("007.50", 7_500_000),
  ])
  func applesNumbersAreRead(text: String, count: Int) {
    #expect(Millionths(text)?.count == Int128(count))
  }

  @Test(arguments: [
    "", " ", "-", "+1", "1,200", "1.", ".5", "1e3", "1.0000001", "0x1", "1.2.3", "١", "--1", "1234567890123456789",
  ])
  func nothingElseIsANumber(text: String) { #expect(Millionths(text) == nil) }

  /// With binary fractions, errors of 0.1 + 0.2 would show after a million rows.
  @Test func aMillionTenthsAreExact() {
    let both = number("0.1") + number("0.2")
    var sum = Millionths.zero
    for _ in 0..<1_000_000 { sum += both }
    #expect(sum == Millionths(300_000))
  }

  @Test func productsAreExactOrNil() {
    #expect(Millionths(-2).times(number("0.99")) == number("-1.98"))
    #expect(number("0.001").times(number("0.0001")) == nil)
  }

  @Test(arguments: [("45.54", 2, "45.54"), ("0.005", 2, "0.005"), ("120", 0, "120"), ("-3", 3, "-3.000")])
  func textsHaveAtLeastTheRequestedDigits(text: String, digits: Int, shown: String) {
    #expect(number(text).text(digits: digits) == shown)
  }
}
