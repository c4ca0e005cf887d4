import Synchronization

/// Suspends tasks until the given number of them has arrived.
final class Barrier: Sendable {
  private let state: Mutex<(missing: Int, waiting: [CheckedContinuation<Void, Never>])>

  init(of count: Int) { state = Mutex((count, [])) }

  var hasMet: Bool { state.withLock { $0.missing <= 0 } }

  func come() async {
    await withCheckedContinuation { continuation in
      let met: [CheckedContinuation<Void, Never>] = state.withLock { state in
        state.missing -= 1
        state.waiting.append(continuation)
        if state.missing > 0 { return [] }
        defer { state.waiting = [] }
        return state.waiting
      }
      for one in met { one.resume() }
    }
  }
}
