import Reconciliation
import Synchronization

/// The time left for questions, shared by all gates of a run.
package final class NightTime: Sendable {
  private let end = Mutex<Duration?>(nil)

  package init() {}

  /// Sets the end to `span` from now, on the gates' clock.
  package func ends(in span: Duration, uptime: Duration = RateGate.Clock.continuous.uptime()) {
    end.withLock { $0 = uptime + span }
  }

  func left(_ uptime: Duration) -> Span? {
    end.withLock { $0 }.map { Span(max($0 - uptime, .zero)) }
  }
}

extension Span {
  /// A duration in whole microseconds, rounded towards zero.
  package init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(microseconds: seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
  }
}

/// The rate limiter of one host and app; callers wait in order of arrival. Only the first waiter sleeps, and a grant is
/// dated when it leaves. A process that was stopped or starved then sends no burst of requests planned for the past.
package final class RateGate: Sendable {
  /// The source of time and of waiting, which tests replace.
  package struct Clock: Sendable {
    /// Time since a fixed origin; never decreases.
    package var uptime: @Sendable () -> Duration
    package var sleep: @Sendable (Duration) async throws(CancellationError) -> Void

    package static let continuous: Clock = {
      let origin = ContinuousClock.now
      return Clock(
        uptime: { origin.duration(to: .now) },
        sleep: { span throws(CancellationError) in
          // Zero tolerance because every delay lowers the rate. Task.sleep throws only CancellationError.
          do { try await Task.sleep(for: span, tolerance: .zero) } catch { throw CancellationError() }
        })
    }()
  }

  /// A rate shared by several processes: a central counter reserves evenly spaced turns.
  package struct SharedTurns: Sendable {
    /// Reserves turns and returns the time until the first. If it throws, the gate keeps its own pace.
    package var take: @Sendable (_ count: Int) async throws -> Duration
    package var shut: @Sendable (Duration) -> Void

    package init(
      take: @escaping @Sendable (_ count: Int) async throws -> Duration, shut: @escaping @Sendable (Duration) -> Void
    ) {
      (self.take, self.shut) = (take, shut)
    }
  }

  private struct Waiter {
    var ticket: UInt64
    var continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var bucket: TokenBucket
    var isTaken = false
    var waiting: [Waiter] = []
    var tickets: UInt64 = 0
    /// Reserved and unused turns, the earliest first.
    var turns: [Duration] = []
    var shutUntil = Duration.zero
  }

  private let state: Mutex<State>
  private let clock: Clock
  private let night: NightTime?
  private let shared: SharedTurns?
  private let interval: Duration
  private let burst: Int

  /// - Parameters:
  ///   - rate: requests per second; nil or at most zero: unlimited.
  ///   - night: limits the `Retry-After` of a server error.
  package init(rate: Double?, clock: Clock = .continuous, night: NightTime? = nil, shared: SharedTurns? = nil) {
    let bucket = TokenBucket(rate: rate)
    interval = bucket.interval
    burst = bucket.burst
    state = Mutex(State(bucket: bucket))
    (self.clock, self.night) = (clock, night)
    self.shared = bucket.interval > .zero ? shared : nil
  }

  /// Waits until one request may be sent. Throws if the task is cancelled or the request is no longer wanted.
  /// - Parameter isWanted: polled during the wait; nil: wanted until cancelled.
  package func admit(while isWanted: (@Sendable () -> Bool)? = nil) async throws(CancellationError) {
    guard await waitUntilFirst() else { throw CancellationError() }
    defer { admitNextRequest() }
    // Checked before a turn is taken, so that unwanted requests cost no turn.
    while isWanted?() ?? true, let wait = await nextWait() {
      try await clock.sleep(isWanted == nil ? wait : min(wait, Self.pollInterval))
    }
    if Task.isCancelled || !(isWanted?() ?? true) { throw CancellationError() }
  }

  /// Short enough that an unwanted request leaves the line at once, as people see it.
  private static let pollInterval = Duration.milliseconds(250)

  /// Obeys a `Retry-After` as far as it concerns more than its own question. `span` is relative to the answer.
  package func obey(retryAfter span: Span, httpStatus: Int?) {
    shut(for: RetryAfter.pause(span, httpStatus: httpStatus, remainingNight: night?.left(clock.uptime())))
  }

  package func shut(for span: Span) {
    let pause = Duration.microseconds(max(0, span.microseconds))
    let until = clock.uptime() + pause
    state.withLock { state in
      state.bucket.shut(until: until)
      state.shutUntil = max(state.shutUntil, until)
    }
    shared?.shut(pause)
  }

  // Returns nil when the request may leave now.
  private func nextWait() async -> Duration? {
    guard let shared else { return own() }
    let now = clock.uptime()
    let ready: Duration?? = state.withLock { state in
      if state.shutUntil > now { return state.shutUntil - now }
      // A turn that was missed by more than a burst is dropped, because other processes have theirs now.
      state.turns.removeAll { $0 + Self.longestLate < now }
      guard let turn = state.turns.first else { return nil }
      if turn > now { return turn - now }
      state.turns.removeFirst()
      return .some(nil)
    }
    if let ready { return ready }
    // Reserve for all waiters, so that many waiters reserve once a second; turns without a waiter are left to others.
    let count = max(burst, min(waitingCount + 1, turnsASecond))
    guard let wait = try? await shared.take(count) else { return Task.isCancelled ? nil : own() }
    let first = clock.uptime() + max(wait, .zero)
    state.withLock { state in state.turns = (0..<count).map { first + interval * $0 } }
    return wait > .zero ? wait : await nextWait()
  }

  private var turnsASecond: Int { max(1, Int(Duration.seconds(1) / interval)) }

  private static let longestLate = Duration.milliseconds(100)

  private func own() -> Duration? {
    let wait = state.withLock { $0.bucket.take(now: clock.uptime()) }
    return wait > .zero ? wait : nil
  }

  /// True if a `Retry-After` to this process or another one blocks the gate for long.
  package var isRateLimited: Bool {
    let now = clock.uptime()
    return state.withLock { state in
      if state.shutUntil - now > Self.shortPause { return true }
      return state.turns.first.map { $0 - now > max(Self.longestTurn, interval * 20) } ?? false
    }
  }

  private static let shortPause = Duration.seconds(1)
  // Each worker reserves at most one second's turns, so a first turn further ahead lies behind a shut bucket.
  private static let longestTurn = Duration.seconds(10)

  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  private func waitUntilFirst() async -> Bool {
    let ticket = state.withLock { state in
      state.tickets += 1
      return state.tickets
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // One lock, so that between check and append no place becomes free and no cancellation is missed.
        let decided: Bool? = state.withLock { state in
          if Task.isCancelled { return false }
          if !state.isTaken {
            state.isTaken = true
            return true
          }
          state.waiting.append(Waiter(ticket: ticket, continuation: continuation))
          return nil
        }
        if let decided { continuation.resume(returning: decided) }
      }
    } onCancel: {
      let waiter: Waiter? = state.withLock { state in
        state.waiting.firstIndex { $0.ticket == ticket }.map { state.waiting.remove(at: $0) }
      }
      waiter?.continuation.resume(returning: false)
    }
  }

  private func admitNextRequest() {
    let next: Waiter? = state.withLock { state in
      if state.waiting.isEmpty {
        state.isTaken = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.continuation.resume(returning: true)
  }
}
