import Reconciliation
import Testing

@Suite struct FeedCoverageTests {
  private static let asOf = Instant(seconds: 1_795_143_600)
  private static let start = asOf - .days(120)

  /// Known sales, reported sales, the share, and whether the share is insufficient.
  @Test(arguments: [
    (300, 0, 0, true), (20, 0, 0, true), (19, 0, 0, false), (300, 149, 0.4966, true), (300, 150, 0.5, false),
    (3, 2, 0.6666, false), (300, 300, 1, false), (1_000_000, 499_999, 0.4999, true),
  ])
  func lessThanHalfOfTwentySalesIsInsufficient(_ sales: Int, _ reported: Int, _ share: Double, _ isInsufficient: Bool) {
    let coverage = FeedCoverage(sales: sales, reported: reported)
    #expect(coverage?.share == share)
    #expect(
      coverage?.unseenKinds == (isInsufficient ? [.orphanPayment, .unclaimedRedemption, .renewalWithoutOrder] : []))
  }

  @Test func withoutSalesThereIsNoCoverage() { #expect(FeedCoverage(sales: 0, reported: 0) == nil) }

  /// Cursors, and the span from the end of the window to the as-of; nil: no window.
  @Test(
    arguments: [
      ([asOf, asOf], .hours(1)), ([asOf + .days(9), asOf], .hours(1)), ([asOf, asOf - .days(2)], .hours(49)),
      ([asOf, nil], nil), ([start + .hours(1)], nil), ([start + .hours(2)], .hours(120 * 24 - 1)),
    ] as [([Instant?], Span?)])
  func theWindowEndsAnHourBeforeTheEarliestCursor(_ cursors: [Instant?], _ end: Span?) {
    let window = FeedCoverage.window(from: Self.start, asOf: Self.asOf, sweptUntil: cursors)
    #expect(window == end.map { Self.start..<Self.asOf - $0 })
  }
}
