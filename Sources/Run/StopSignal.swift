import Synchronization

/// Asks long work to come to a good end: no new requests, answers under way are still taken in and stored.
package final class StopSignal: Sendable {
  /// Why the work ends before its time.
  package enum Reason: Int32, Sendable {
    case interrupted = 130
    case terminated = 143
  }

  private let reason = Mutex<Reason?>(nil)

  package init() {}

  /// The first reason stays.
  package func stop(_ why: Reason) { reason.withLock { $0 = $0 ?? why } }

  /// Why to stop; nil to go on.
  package var stopped: Reason? { reason.withLock { $0 } }

  /// The signal that ended the work. Nothing was published.
  package struct Stopped: Error {
    package var reason: Reason

    package init(reason: Reason) { self.reason = reason }
  }
}
