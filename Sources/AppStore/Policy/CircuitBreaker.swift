/// Stops asking a service that is down, and finds out with a few probes when it is back.
///
/// It decides only whether to ask. What is not asked stays unanswered; no verdict follows from an open breaker.
/// Pure: the caller hands in the time, as the duration since a fixed origin on a monotonic clock.
package struct CircuitBreaker: Sendable {
  /// When to open and how to close again.
  package struct Policy: Hashable, Sendable {
    /// So many failures in a row open it.
    package var consecutiveFailures = 20
    /// How many recent calls are looked at for the share of failures.
    package var window = 100
    /// At this share of failures in a full window it opens, 0 to 1.
    package var failureShare = 0.5
    /// The first time that nothing is asked. Doubles with every probe that fails.
    package var firstPause: Duration = .seconds(2)
    /// The longest time that nothing is asked.
    package var longestPause: Duration = .seconds(300)
    /// So many probes must succeed to close it.
    package var probes = 3
    /// How long to wait while the probes are under way.
    package var probeWait: Duration = .seconds(1)

    package init() {}
  }

  /// What a call came to, seen from the service's health.
  package enum CallResult: Hashable, Sendable {
    case success
    case failure
    /// A question failed that has failed before, while others are answered: one call more that fails, but no further sign that
    /// nobody is answered.
    case repeatedFailure
    /// The call was given up before it could tell anything.
    case abandoned
  }

  /// The right to make one call; its result is reported with it.
  package struct Permit: Hashable, Sendable {
    fileprivate var generation: Int
  }

  /// The answer to a wish to call.
  package enum Admission: Hashable, Sendable {
    case granted(Permit)
    /// Do not call; ask again after that time.
    case refused(wait: Duration)
  }

  private enum State: Hashable {
    case closed
    case open(until: Duration)
    case halfOpen(underWay: Int, succeeded: Int)
  }

  private let policy: Policy
  private var state = State.closed
  /// Counts changes of state: a result that was asked for in an earlier state says nothing about this one.
  private var generation = 0
  private var pause: Duration
  private var failuresInARow = 0
  /// Whether each of the recent calls failed; `oldest` is where the next one overwrites.
  private var recent: [Bool] = []
  private var oldest = 0
  private var recentFailures = 0

  package init(policy: Policy = Policy()) {
    self.policy = policy
    pause = policy.firstPause
  }

  /// Whether calls are held back now, probes apart.
  package var isOpen: Bool { state != .closed }

  /// Asks for the right to make one call. Every permit must come back with `record`.
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

  /// How many calls would be permitted now.
  package func places(now: Duration) -> Int {
    switch state {
    case .closed: .max
    case .open(let until): now < until ? 0 : max(1, policy.probes)
    case .halfOpen(let underWay, let succeeded): max(0, max(1, policy.probes) - underWay - succeeded)
    }
  }

  /// Whether a call that was permitted may still be made: the state is the one that it was permitted in.
  package func stands(_ permit: Permit) -> Bool { permit.generation == generation }

  /// Takes in what came of a call.
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
