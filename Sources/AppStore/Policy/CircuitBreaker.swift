/// Stops calls to a service that is down, and detects its recovery with a few probes. Pure: the caller passes the time
/// of a monotonic clock.
package struct CircuitBreaker: Sendable {
  package struct Policy: Hashable, Sendable {
    package var consecutiveFailures = 20
    package var window = 100
    /// The share of failures in a full window, 0 to 1, that opens the breaker.
    package var failureShare = 0.5
    /// The first pause. It doubles with every failed probe.
    package var firstPause: Duration = .seconds(2)
    package var longestPause: Duration = .seconds(300)
    package var probes = 3

    package init() {}
  }

  package enum CallResult: Hashable, Sendable {
    case success
    case failure
    /// A repeated failure while other calls succeed: counts in the share, but not as a consecutive failure.
    case repeatedFailure
    case abandoned
  }

  package struct Permit: Hashable, Sendable {
    fileprivate var generation: Int
  }

  private enum State: Hashable {
    case closed
    case open(until: Duration)
    case halfOpen(inProgress: Int, succeeded: Int)
  }

  private let policy: Policy
  private var state = State.closed
  /// Counts changes of state, because a result from an earlier state says nothing about this one.
  private var generation = 0
  private var pause: Duration
  private var failuresInARow = 0
  /// True for each recent call that failed.
  private var recent: [Bool] = []

  package init(policy: Policy = Policy()) {
    self.policy = policy
    pause = policy.firstPause
  }

  /// True if only probes may be made.
  package var isOpen: Bool { state != .closed }

  /// Requests permission for one call; nil while the breaker is open. Every permit must be passed to `record`.
  package mutating func admit(now: Duration) -> Permit? {
    if places(now: now) == 0 { return nil }
    switch state {
    case .closed: break
    case .open: enter(.halfOpen(inProgress: 1, succeeded: 0))
    case .halfOpen(let inProgress, let succeeded):
      state = .halfOpen(inProgress: inProgress + 1, succeeded: succeeded)
    }
    return Permit(generation: generation)
  }

  /// The number of calls that may start now.
  package func places(now: Duration) -> Int {
    switch state {
    case .closed: .max
    case .open(let until): now < until ? 0 : max(1, policy.probes)
    case .halfOpen(let inProgress, let succeeded): max(0, max(1, policy.probes) - inProgress - succeeded)
    }
  }

  /// True if the state has not changed since the permit was granted, so that the call may still be made.
  package func stands(_ permit: Permit) -> Bool { permit.generation == generation }

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
    case (.halfOpen(let inProgress, let succeeded), .abandoned),
      (.halfOpen(let inProgress, let succeeded), .repeatedFailure):
      state = .halfOpen(inProgress: inProgress - 1, succeeded: succeeded)
    case (.halfOpen(let inProgress, let succeeded), .success):
      state = .halfOpen(inProgress: inProgress - 1, succeeded: succeeded + 1)
      if succeeded + 1 >= policy.probes { close() }
    case (.halfOpen, .failure):
      pause = min(pause * 2, policy.longestPause)
      open(now: now)
    }
  }

  private var isShareReached: Bool {
    recent.count >= policy.window && Double(recent.count { $0 }) >= policy.failureShare * Double(recent.count)
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
  }

  private mutating func note(failed: Bool) {
    failuresInARow = failed ? failuresInARow + 1 : 0
    noteCall(failed: failed)
  }

  private mutating func noteCall(failed: Bool) {
    recent.append(failed)
    if recent.count > policy.window { recent.removeFirst() }
  }
}
