import AppStore
import Reconciliation
import Testing

struct RetryTimesTests {
  @Test(arguments: [
    (1, Duration.seconds(2)), (2, .seconds(4)), (3, .seconds(8)), (4, .seconds(16)), (5, .seconds(20)),
    (6, .seconds(20)), (1_000_000, .seconds(20)), (0, .seconds(2)), (-7, .seconds(2)),
  ])
  func backoffDoublesUpToItsCap(attempt: Int, longest: Duration) {
    let backoff = Backoff(base: .seconds(2), cap: .seconds(20))
    #expect(backoff.delay(attempt: attempt, random: 0) == .zero)
    #expect(backoff.delay(attempt: attempt, random: 0.5) == longest / 2)
    #expect(backoff.delay(attempt: attempt, random: 1) == longest)
    #expect(backoff.delay(attempt: attempt, random: 7) == longest)
    #expect(backoff.delay(attempt: attempt, random: -1) == .zero)
  }
}
