import Reconciliation
import Synchronization

/// How long there is to ask: shared by all gates of a run, and set when the asking begins.
package final class NightTime: Sendable {
  private let end = Mutex<Duration?>(nil)

  package init() {}

  /// - Parameters:
  ///   - span: from now.
  ///   - uptime: the gates' clock.
  package func ends(in span: Duration, uptime: Duration = RateGate.Clock.continuous.uptime()) {
    end.withLock { $0 = uptime + span }
  }

  /// nil while no end is set.
  func left(_ uptime: Duration) -> Span? {
    end.withLock { end in
      end.map { end in
        let left = max(end - uptime, .zero).components
        return Span(microseconds: left.seconds * 1_000_000 + left.attoseconds / 1_000_000_000_000)
      }
    }
  }
}

/// The door in front of one host of one app: callers wait here, in the order of their arrival, until they may send.
///
/// Only the first in line sleeps, and what it takes is dated when it leaves. A process that was stopped or starved
/// therefore does not send a crowd of requests that it had planned for the past.
package final class RateGate: Sendable {
  /// Where time comes from and how it is waited for; tests hand in both.
  package struct Clock: Sendable {
    /// Time since a fixed origin, never going backwards.
    package var uptime: @Sendable () -> Duration
    /// Returns after the given time, or throws when the task is cancelled.
    package var sleep: @Sendable (Duration) async throws(CancellationError) -> Void

    package init(
      uptime: @escaping @Sendable () -> Duration,
      sleep: @escaping @Sendable (Duration) async throws(CancellationError) -> Void
    ) {
      self.uptime = uptime
      self.sleep = sleep
    }

    /// The system's monotonic clock.
    package static let continuous: Clock = {
      let origin = ContinuousClock.now
      return Clock(
        uptime: { origin.duration(to: .now) },
        sleep: { span throws(CancellationError) in
          // To the moment, because whatever it is late by is missing from the rate. Task.sleep throws nothing else; only its
          // signature is untyped.
          do { try await Task.sleep(for: span, tolerance: .zero) } catch { throw CancellationError() }
        })
    }()
  }

  /// A rate that several processes keep together: who keeps the count hands out turns, evenly spaced.
  package struct SharedTurns: Sendable {
    /// Takes so many turns, one behind the other; answers how long it is until the first of them. When it throws, the gate
    /// keeps its own pace.
    package var take: @Sendable (_ count: Int) async throws -> Duration
    /// Lets nobody have a turn for that long.
    package var shut: @Sendable (Duration) -> Void

    package init(
      take: @escaping @Sendable (_ count: Int) async throws -> Duration, shut: @escaping @Sendable (Duration) -> Void
    ) {
      self.take = take
      self.shut = shut
    }
  }

  private struct Waiter {
    var ticket: UInt64
    var continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var bucket: TokenBucket
    /// Whether somebody is first in line.
    var isTaken = false
    var waiting: [Waiter] = []
    var tickets: UInt64 = 0
    /// Turns that are taken and not used, the earliest first.
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
  ///   - rate: requests a second; nil, zero or less: as fast as asked.
  ///   - night: how long there is to ask; it bounds what a server in trouble may ask for.
  ///   - shared: who keeps the rate for several processes; nil: it is this gate's own.
  package init(rate: Double?, clock: Clock = .continuous, night: NightTime? = nil, shared: SharedTurns? = nil) {
    let bucket = TokenBucket(rate: rate)
    interval = bucket.interval
    burst = bucket.burst
    state = Mutex(State(bucket: bucket))
    self.clock = clock
    self.night = night
    self.shared = bucket.interval > .zero ? shared : nil
  }

  /// Returns when one request may be sent. Throws when the task is cancelled while it waits, or the request is not wanted any
  /// more; no request is granted then.
  ///
  /// - Parameter isWanted: looked at again and again while it waits; nil: it is wanted until it is cancelled.
  package func admit(while isWanted: (@Sendable () -> Bool)? = nil) async throws(CancellationError) {
    guard await stepToTheFront() else { throw CancellationError() }
    defer { letTheNextOneForward() }
    // Before a turn is taken: those that nobody wants go by at once.
    while isWanted?() ?? true, let wait = await nextWait() {
      try await clock.sleep(isWanted == nil ? wait : min(wait, Self.nap))
    }
    if Task.isCancelled || !(isWanted?() ?? true) { throw CancellationError() }
  }

  /// Short enough that a question which nobody wants any more gives its place away at once, as people see it.
  private static let nap = Duration.milliseconds(250)

  /// Obeys an answer's `Retry-After` as far as it is about more than its question.
  /// - Parameters:
  ///   - span: from the answer until the instant in it.
  ///   - httpStatus: of the answer.
  package func obey(retryAfter span: Span, httpStatus: Int?) {
    shut(for: RetryAfter.hold(span, httpStatus: httpStatus, nightLeft: night?.left(clock.uptime())))
  }

  /// Lets nobody through for that long.
  package func shut(for span: Span) {
    let hold = Duration.microseconds(max(0, span.microseconds))
    let until = clock.uptime() + hold
    state.withLock { state in
      state.bucket.shut(until: until)
      state.shutUntil = max(state.shutUntil, until)
    }
    shared?.shut(hold)
  }

  /// How long to wait before asking again; nil when the request may leave now.
  private func nextWait() async -> Duration? {
    guard let shared else { return own() }
    let now = clock.uptime()
    let ready: Duration?? = state.withLock { state in
      if state.shutUntil > now { return state.shutUntil - now }
      // A turn that was missed by more than a burst's worth belongs to the past: others have theirs now.
      state.turns.removeAll { $0 + Self.longestLate < now }
      guard let turn = state.turns.first else { return nil }
      if turn > now { return turn - now }
      state.turns.removeFirst()
      return .some(nil)
    }
    if let ready { return ready }
    // For as many as wait, so that a crowd asks for its turns once a second; what nobody waits for is left to others.
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

  /// Whether nobody is let through for longer than somebody should stand here: a server has said when to come back, to this
  /// process or to another that shares the rate.
  package var isHeldUp: Bool {
    let now = clock.uptime()
    return state.withLock { state in
      if state.shutUntil - now > Self.shortHold { return true }
      return state.turns.first.map { $0 - now > max(Self.longestTurn, interval * 20) } ?? false
    }
  }

  private static let shortHold = Duration.seconds(1)
  /// Each of several workers takes a second's turns, or one; a first turn that lies further ahead is one behind a shut bucket.
  private static let longestTurn = Duration.seconds(10)

  /// How many callers are behind the first one.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  private func stepToTheFront() async -> Bool {
    let ticket = state.withLock { state in
      state.tickets += 1
      return state.tickets
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // One lock for looking and queueing: the place cannot become free in between, nor a cancellation be missed.
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

  private func letTheNextOneForward() {
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
