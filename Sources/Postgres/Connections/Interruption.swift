import Synchronization

/// A cancellation shared by a task and its connections.
final class Interruption: Sendable {
  private struct State {
    var cancelledAt: ContinuousClock.Instant?
    var cancellers: [StatementCanceller] = []
  }

  private let state = Mutex(State())

  var isCancelled: Bool { cancelledAt != nil }
  var cancelledAt: ContinuousClock.Instant? { state.withLock { $0.cancelledAt } }
  func attach(_ canceller: StatementCanceller) { state.withLock { $0.cancellers.append(canceller) } }
  func detach(_ canceller: StatementCanceller) { state.withLock { $0.cancellers.removeAll { $0 === canceller } } }

  /// Cancels running and later statements. A statement is marked as running before it checks `isCancelled`.
  func cancel() {
    state.withLock { state in
      state.cancelledAt = state.cancelledAt ?? .now
      for canceller in state.cancellers { canceller.cancelRunningStatement() }
    }
  }
}
