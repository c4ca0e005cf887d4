import Synchronization

/// A memory limit for all responses being read. One response may exceed it, so that reading always progresses. A caller
/// must not wait for one response while it holds another.
package final class ReplyBudget: Sendable {
  private struct Waiter {
    var share: ObjectIdentifier
    var bytes: Int
    var isGranted: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var used = 0
    var most = 0
    /// The share that may exceed the limit.
    var ahead: ObjectIdentifier?
    var waiters: [Waiter] = []

    mutating func use(_ bytes: Int) {
      used += bytes
      most = max(most, used)
    }
  }

  private let limit: Int
  private let state = Mutex(State())

  package init(limit: Int) { self.limit = limit }

  /// The peak usage in bytes.
  package var most: Int { state.withLock { $0.most } }

  /// The memory of one response, released when the last reference goes.
  package final class Share: Sendable {
    private let budget: ReplyBudget
    private let bytes = Mutex(0)

    package init(of budget: ReplyBudget) { self.budget = budget }

    /// Waits until there is room for more. Throws if the task is cancelled.
    package func grow(by bytes: Int) async throws(CancellationError) {
      guard await budget.take(bytes, for: ObjectIdentifier(self)) else { throw CancellationError() }
      self.bytes.withLock { $0 += bytes }
    }

    deinit { budget.releaseBytes(bytes.withLock { $0 }, of: ObjectIdentifier(self)) }
  }

  private func take(_ bytes: Int, for share: ObjectIdentifier) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { (isGranted: CheckedContinuation<Bool, Never>) in
        let decided = state.withLock { state -> Bool? in
          // Cancelled before it was in the list of waiters.
          if Task.isCancelled { return false }
          let hasRoom = state.waiters.isEmpty && state.used + bytes <= limit
          guard hasRoom || state.ahead == share || state.ahead == nil else {
            state.waiters.append(Waiter(share: share, bytes: bytes, isGranted: isGranted))
            return nil
          }
          if !hasRoom { state.ahead = share }
          state.use(bytes)
          return true
        }
        if let decided { isGranted.resume(returning: decided) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.waiters.firstIndex { $0.share == share }.map { state.waiters.remove(at: $0) }
      }
      waiter?.isGranted.resume(returning: false)
    }
  }

  private func releaseBytes(_ bytes: Int, of share: ObjectIdentifier) {
    let granted = state.withLock { state in
      state.used -= bytes
      if state.ahead == share { state.ahead = nil }
      var granted: [Waiter] = []
      while let next = state.waiters.first {
        if state.used + next.bytes > limit {
          guard state.ahead == nil else { break }
          state.ahead = next.share
        }
        state.use(next.bytes)
        granted.append(state.waiters.removeFirst())
      }
      return granted
    }
    for waiter in granted { waiter.isGranted.resume(returning: true) }
  }
}
