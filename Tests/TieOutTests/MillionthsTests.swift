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
  @Test func aMillionTenthsAreExact() throws {
    let (tenth, fifth) = (try #require(Millionths("0.1")), try #require(Millionths("0.2")))
    var sum = Millionths.zero
    for _ in 0..<1_000_000 { sum += tenth + fifth }
    #expect(sum == Millionths(300_000))
  }

  @Test func productsAreExactOrNil() throws {
    #expect(Millionths(-2).times(try #require(Millionths("0.99"))) == Millionths("-1.98"))
    #expect(try #require(Millionths("0.001")).times(try #require(Millionths("0.0001"))) == nil)
  }

  @Test func textsHaveAtLeastTheRequestedDigits() throws {
    #expect(try #require(Millionths("45.54")).text(digits: 2) == "45.54")
    #expect(try #require(Millionths("0.005")).text(digits: 2) == "0.005")
    #expect(Millionths(120).text(digits: 0) == "120")
    #expect(Millionths(-3).text(digits: 3) == "-3.000")
  }
}
