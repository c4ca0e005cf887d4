/// Exponential backoff with a cap and full jitter, so that failed callers do not retry together.
package struct Backoff: Hashable, Sendable {
  package var base: Duration
  package var cap: Duration

  package init(base: Duration = .milliseconds(500), cap: Duration = .seconds(30)) {
    (self.base, self.cap) = (base, cap)
  }

  /// - Parameters:
  ///   - attempt: the number of the failure, from 1.
  ///   - random: uniformly distributed from 0 up to 1.
  package func delay(attempt: Int, random: Double = .random(in: 0..<1)) -> Duration {
    // 2^40 times any sensible base is far above any cap.
    let doublings = min(max(attempt - 1, 0), 40)
    return min(cap, base * (1 << doublings)) * min(max(random, 0), 1)
  }
}
