import CLibPQ
import Dispatch
import Synchronization

/// Cancels the running statement of one connection, from any thread. `PQcancel` addresses a backend and not a
/// statement, and the server ignores a request that arrives before the statement. So statements are numbered, a request
/// is sent only while its statement runs and is repeated until it ends. The next statement waits until the server has
/// acted on it. https://www.postgresql.org/docs/15/libpq-cancel.html
@safe
final class StatementCanceller: Sendable {
  private struct State {
    var running: UInt64?
    var lastStatement: UInt64 = 0
    var request: DispatchGroup?
  }

  /// libpq's copy of address and key, so that no other thread touches the connection. nonisolated(unsafe) is sound,
  /// because the copy does not change until `deinit` and `PQcancel` only reads it.
  private nonisolated(unsafe) let request: OpaquePointer?
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "night-audit.postgres.cancel")

  // How long the next statement waits for a request to be acted on.
  private static let waitLimit = DispatchTimeInterval.seconds(1)

  init(connection: OpaquePointer) { unsafe request = unsafe PQgetCancel(connection) }

  deinit { unsafe PQfreeCancel(request) }

  func statementBegins() {
    state.withLock {
      $0.lastStatement += 1
      $0.running = $0.lastStatement
    }
  }

  /// Returns false if a cancel request is still in progress and could hit the next statement.
  func statementEnded() -> Bool {
    let inProgress = state.withLock { state in
      state.running = nil
      return state.request
    }
    return inProgress?.wait(timeout: .now() + Self.waitLimit) != .timedOut
  }

  func cancelRunningStatement() {
    guard let running = state.withLock({ $0.running }) else { return }
    queue.async { self.pursue(running, pauseMilliseconds: 20) }
  }

  private func pursue(_ statement: UInt64, pauseMilliseconds: Int) {
    guard requestCancellation(of: statement) else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(pauseMilliseconds)) {
      self.pursue(statement, pauseMilliseconds: min(pauseMilliseconds * 2, 1_000))
    }
  }

  // Returns true if the statement was still running. The queue sends one request at a time.
  private func requestCancellation(of statement: UInt64) -> Bool {
    let inProgress = DispatchGroup()
    let isRunning = state.withLock { state in
      guard state.running == statement else { return false }
      inProgress.enter()
      state.request = inProgress
      return true
    }
    guard isRunning else { return false }
    // The result is ignored: a failed request is repeated, and a lost connection ends the statement anyway.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = unsafe PQcancel(request, message.baseAddress, Int32(message.count))
    }
    state.withLock { $0.request = nil }
    inProgress.leave()
    return true
  }
}
