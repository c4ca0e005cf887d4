import Synchronization

/// A wish to stop, shared by a task and the connections that work for it.
final class Interruption: Sendable {
  private struct State {
    var cancelledAt: ContinuousClock.Instant?
    var cancellers: [StatementCanceller] = []
  }

  private let state = Mutex(State())

  var isCancelled: Bool { cancelledAt != nil }

  /// When the wish was made.
  var cancelledAt: ContinuousClock.Instant? { state.withLock { $0.cancelledAt } }

  /// From now on `cancel` stops the statements of this connection.
  func attach(_ canceller: StatementCanceller) {
    state.withLock { $0.cancellers.append(canceller) }
  }

  /// From now on `cancel` leaves the connection alone: it works for somebody else, or is closed.
  func detach(_ canceller: StatementCanceller) {
    state.withLock { $0.cancellers.removeAll { $0 === canceller } }
  }

  /// Stops every running statement, and every later one before it starts.
  ///
  /// A statement is marked as running before it asks `isCancelled`, so one of the two sides always sees the other.
  func cancel() {
    state.withLock { state in
      state.cancelledAt = state.cancelledAt ?? .now
      for canceller in state.cancellers {
        if let running = canceller.runningStatement { canceller.cancel(running) }
      }
    }
  }
}
