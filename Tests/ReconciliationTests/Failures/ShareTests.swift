import Reconciliation
import Testing

@Suite struct ShareTests {
  @Test(
    arguments: [
      ("0", 0), ("0.29", 290_000), (".5", 500_000), ("1.", 1_000_000), ("1", 1_000_000), ("0.000001", 1),
      ("1.000001", nil), ("0.0000001", nil), ("25", nil), ("-0.1", nil), ("+0.1", nil), ("0.-1", nil), ("0,5", nil),
      ("1e-1", nil), (".", nil), ("", nil), ("0.1.2", nil),
    ] as [(String, Int64?)])
  func sharesAreParsedExactly(_ text: String, _ millionths: Int64?) { #expect(Share(text)?.millionths == millionths) }

  @Test func onlyAGreaterShareExceedsAShare() {
    for (percent, all) in [(29, 100), (57, 1_000), (1, Int.max / 100 * 100)] {
      let share = Share(millionths: Int64(percent) * 10_000)
      let part = all / 100 * percent
      #expect(!share.isExceeded(by: part, of: all))
      #expect(share.isExceeded(by: part + 1, of: all))
    }
    #expect(!Share.whole.isExceeded(by: .max, of: .max))
    #expect(!Share(millionths: 0).isExceeded(by: 0, of: 0))
  }

  @Test(arguments: [("0.250", "0.25"), ("1", "1.0"), ("0", "0.0"), ("0.000010", "0.00001")])
  func hasTheShortestDescription(_ text: String, as told: String) { #expect(Share(text)?.description == told) }
}
