import Synchronization

/// A request to long work to stop: no new requests are sent, but outstanding answers are still stored.
package final class StopSignal: Sendable {
  package enum Reason: Int32, Sendable {
    case interrupted = 130
    case terminated = 143
  }

  private let reason = Mutex<Reason?>(nil)

  package init() {}

  package func stop(_ why: Reason) { reason.withLock { $0 = $0 ?? why } }

  package var stopped: Reason? { reason.withLock { $0 } }

  /// The work was ended by a signal, and nothing was published.
  package struct Stopped: Error {
    package var reason: Reason

    package init(reason: Reason) { self.reason = reason }
  }
}
