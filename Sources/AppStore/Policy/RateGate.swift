import Reconciliation
import Synchronization

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
  }

  private let state: Mutex<State>
  private let clock: Clock

  /// - Parameter rate: requests a second; nil, zero or less: as fast as asked.
  package init(rate: Double?, clock: Clock = .continuous) {
    state = Mutex(State(bucket: TokenBucket(rate: rate)))
    self.clock = clock
  }

  /// Returns when one request may be sent. Throws when the task is cancelled while it waits; no request is granted then.
  package func admit() async throws(CancellationError) {
    guard await stepToTheFront() else { throw CancellationError() }
    defer { letTheNextOneForward() }
    while true {
      let wait = state.withLock { $0.bucket.take(now: clock.uptime()) }
      guard wait > .zero else { return }
      try await clock.sleep(wait)
    }
  }

  /// Lets nobody through for that long: what a server asked for with `Retry-After`.
  package func shut(for span: Span) {
    let until = clock.uptime() + .microseconds(max(0, span.microseconds))
    state.withLock { $0.bucket.shut(until: until) }
  }

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
