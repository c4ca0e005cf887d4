/// How long to wait before the same thing is tried again within a run: exponential, capped, with full jitter, so that
/// many callers that failed together do not come back together.
package struct Backoff: Hashable, Sendable {
  /// The longest wait after the first failure.
  package var base: Duration
  /// The longest wait after any failure.
  package var cap: Duration

  package init(base: Duration = .milliseconds(500), cap: Duration = .seconds(30)) {
    self.base = base
    self.cap = cap
  }

  /// The wait after the given failure.
  /// - Parameters:
  ///   - attempt: which failure this was, from 1.
  ///   - random: uniformly distributed from 0 up to 1.
  package func delay(attempt: Int, random: Double) -> Duration {
    // 2^40 times any base that makes sense is far above any cap.
    let doublings = min(max(attempt - 1, 0), 40)
    return min(cap, base * (1 << doublings)) * min(max(random, 0), 1)
  }
}
