import Synchronization

/// A request to long work to stop: no new requests are sent, but outstanding answers are still stored.
package final class StopSignal: Sendable {
  package enum Reason: Int32, Sendable {
    case interrupted = 130
    case terminated = 143
  }

  private struct State {
    var reason: Reason?
    var listeners: [AsyncStream<Reason>.Continuation] = []
  }

  private let state = Mutex(State())

  package init() {}

  package func stop(_ why: Reason) {
    let listeners = state.withLock { state in
      state.reason = state.reason ?? why
      defer { state.listeners = [] }
      return state.listeners
    }
    for listener in listeners { listener.finish() }
  }

  package var stopped: Reason? { state.withLock { $0.reason } }

  package func check() throws(Stopped) {
    if let reason = stopped { throw Stopped(reason: reason) }
  }

  /// Suspends until the work is to stop. Throws if the task is cancelled first.
  package func wait() async throws(CancellationError) {
    let (signals, listener) = AsyncStream.makeStream(of: Reason.self)
    let isStopped = state.withLock { state in
      if state.reason == nil { state.listeners.append(listener) }
      return state.reason != nil
    }
    if !isStopped { for await _ in signals {} }
    if Task.isCancelled { throw CancellationError() }
  }

  /// The work was ended by a signal, and nothing was published.
  package struct Stopped: Error, CustomStringConvertible {
    package var reason: Reason

    package var description: String { "stopped by a signal before a report was published" }
  }
}
