import AppStore
import Reconciliation
import Testing

struct RetryAfterTests {
  /// 2026-11-20T22:00:00Z
  private static let now = Instant(seconds: 1_795_212_000)

  @Test(arguments: [
    ("1795212030000", 30), ("1795212030", 30), ("30", 30), (" 30 ", 30), ("0", 0), ("3600", 3_600),
    ("Fri, 20 Nov 2026 22:05:00 GMT", 300), ("Friday, 20-Nov-26 22:05:00 GMT", 300), ("Fri Nov 20 22:05:00 2026", 300),
  ])
  func everyFormOfRetryAfterIsUnderstood(header: String, seconds: Int64) {
    #expect(RetryAfter.parse(header, now: Self.now) == Self.now + .seconds(seconds))
  }

  @Test(arguments: [
    "1795299999000", "1795299999", "86400", "999999999999999999999999", "Sat, 21 Nov 2026 22:05:00 GMT",
  ])
  func retryAfterIsLimitedToAnHour(header: String) {
    #expect(RetryAfter.parse(header, now: Self.now) == Self.now + .hours(1))
  }

  @Test(arguments: ["1795211999000", "1795211000", "Thu, 19 Nov 2026 22:05:00 GMT"])
  func aPastRetryAfterMeansNow(header: String) {
    #expect(RetryAfter.parse(header, now: Self.now) == Self.now)
  }

  @Test(arguments: ["", " ", "-5", "+5", "1.5", "1e9", "soon", "Fri, 20 Nov", "１２"])
  func invalidRetryAfterHeadersAreNil(header: String) {
    #expect(RetryAfter.parse(header, now: Self.now) == nil)
  }
}
