/// Stops calls to a service that is down, and detects its recovery with a few probes.
///
/// It decides only whether to call; an open breaker leaves questions unanswered and leads to no verdict. Pure: the
/// caller passes the time since a fixed origin of a monotonic clock.
package struct CircuitBreaker: Sendable {
  /// Thresholds and pauses.
  package struct Policy: Hashable, Sendable {
    /// The number of consecutive failures that opens the breaker.
    package var consecutiveFailures = 20
    /// The number of recent calls from which the share of failures is computed.
    package var window = 100
    /// The share of failures in a full window, 0 to 1, that opens the breaker.
    package var failureShare = 0.5
    /// The first pause. It doubles with every failed probe.
    package var firstPause: Duration = .seconds(2)
    package var longestPause: Duration = .seconds(300)
    /// The number of successful probes that closes the breaker.
    package var probes = 3
    /// The wait of other callers while probes are in flight.
    package var probeWait: Duration = .seconds(1)

    package init() {}
  }

  /// The result of a call as a sign of the service's health.
  package enum CallResult: Hashable, Sendable {
    case success
    case failure
    /// A question failed again while others are answered. It counts in the share of failures but not as a consecutive
    /// one, because it is no further sign that the service is down.
    case repeatedFailure
    /// The call was cancelled before it had a result.
    case abandoned
  }

  /// Permission for one call; its result is recorded with it.
  package struct Permit: Hashable, Sendable {
    fileprivate var generation: Int
  }

  package enum Admission: Hashable, Sendable {
    case granted(Permit)
    /// The caller must not call, and may ask again after the wait.
    case refused(wait: Duration)
  }

  private enum State: Hashable {
    case closed
    case open(until: Duration)
    case halfOpen(underWay: Int, succeeded: Int)
  }

  private let policy: Policy
  private var state = State.closed
  /// Counts changes of state, because a result from an earlier state says nothing about this one.
  private var generation = 0
  private var pause: Duration
  private var failuresInARow = 0
  /// Ring buffer: true for each recent call that failed; `oldest` is overwritten next.
  private var recent: [Bool] = []
  private var oldest = 0
  private var recentFailures = 0

  package init(policy: Policy = Policy()) {
    self.policy = policy
    pause = policy.firstPause
  }

  /// True if calls are held back, except for probes.
  package var isOpen: Bool { state != .closed }

  /// Requests permission for one call. Every permit must be passed to `record`.
  package mutating func admit(now: Duration) -> Admission {
    switch state {
    case .closed: return .granted(Permit(generation: generation))
    case .open(let until):
      if now < until { return .refused(wait: until - now) }
      enter(.halfOpen(underWay: 1, succeeded: 0))
      return .granted(Permit(generation: generation))
    case .halfOpen(let underWay, let succeeded):
      guard underWay + succeeded < max(1, policy.probes) else { return .refused(wait: policy.probeWait) }
      state = .halfOpen(underWay: underWay + 1, succeeded: succeeded)
      return .granted(Permit(generation: generation))
    }
  }

  /// The number of calls that would be permitted now.
  package func places(now: Duration) -> Int {
    switch state {
    case .closed: .max
    case .open(let until): now < until ? 0 : max(1, policy.probes)
    case .halfOpen(let underWay, let succeeded): max(0, max(1, policy.probes) - underWay - succeeded)
    }
  }

  /// True if the state has not changed since the permit was granted, so that the call may still be made.
  package func stands(_ permit: Permit) -> Bool { permit.generation == generation }

  /// Records the result of a call.
  package mutating func record(_ result: CallResult, permit: Permit, now: Duration) {
    guard stands(permit) else { return }
    switch (state, result) {
    case (.open, _), (.closed, .abandoned): break
    case (.closed, .success): note(failed: false)
    case (.closed, .failure):
      note(failed: true)
      if failuresInARow >= policy.consecutiveFailures || isShareReached { open(now: now) }
    case (.closed, .repeatedFailure):
      noteCall(failed: true)
      if isShareReached { open(now: now) }
    case (.halfOpen(let underWay, let succeeded), .abandoned),
      (.halfOpen(let underWay, let succeeded), .repeatedFailure):
      state = .halfOpen(underWay: underWay - 1, succeeded: succeeded)
    case (.halfOpen(let underWay, let succeeded), .success):
      state = .halfOpen(underWay: underWay - 1, succeeded: succeeded + 1)
      if succeeded + 1 >= policy.probes { close() }
    case (.halfOpen, .failure):
      pause = min(pause * 2, policy.longestPause)
      open(now: now)
    }
  }

  private var isShareReached: Bool {
    recent.count >= policy.window && Double(recentFailures) >= policy.failureShare * Double(recent.count)
  }

  private mutating func enter(_ next: State) {
    state = next
    generation += 1
  }

  private mutating func open(now: Duration) {
    enter(.open(until: now + pause))
    forget()
  }

  private mutating func close() {
    enter(.closed)
    pause = policy.firstPause
    forget()
  }

  private mutating func forget() {
    failuresInARow = 0
    recent.removeAll(keepingCapacity: true)
    oldest = 0
    recentFailures = 0
  }

  private mutating func note(failed: Bool) {
    failuresInARow = failed ? failuresInARow + 1 : 0
    noteCall(failed: failed)
  }

  private mutating func noteCall(failed: Bool) {
    recentFailures += failed ? 1 : 0
    if recent.count < policy.window {
      recent.append(failed)
    } else if !recent.isEmpty {
      recentFailures -= recent[oldest] ? 1 : 0
      recent[oldest] = failed
      oldest = (oldest + 1) % recent.count
    }
  }
}
