import CLibPQ
import Dispatch
import Synchronization

/// Lets any thread interrupt the statement that runs on one connection, and no other one.
///
/// `PQcancel` names a backend, not a statement, and a request that arrives before the statement does is ignored by the
/// server. Hence statements are numbered, a request is sent only while its statement runs, the next statement waits until
/// the server has acted on the request, and the request is repeated until its statement has ended. A server that has
/// stalled never acts on it: `statementEnded` then says that the connection is of no more use.
/// https://www.postgresql.org/docs/15/libpq-cancel.html
@safe
final class StatementCanceller: Sendable {
  private struct State {
    var running: UInt64?
    var lastStatement: UInt64 = 0
    /// Entered while a request is under way.
    var request: DispatchGroup?
  }

  /// libpq's copy of the address and key, so that the connection itself is never touched from another thread. Unsafe
  /// only in the eyes of the compiler: libpq never changes it until `deinit` frees it, and `PQcancel` only reads it.
  private nonisolated(unsafe) let request: OpaquePointer?
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "night-audit.postgres.cancel")

  /// How long the next statement waits for a request to be acted on.
  private static let patience = DispatchTimeInterval.seconds(1)

  init(connection: OpaquePointer) { unsafe request = unsafe PQgetCancel(connection) }

  deinit { unsafe PQfreeCancel(request) }

  func statementBegins() {
    state.withLock {
      $0.lastStatement += 1
      $0.running = $0.lastStatement
    }
  }

  /// False when a request to stop the statement is still under way, so that it could hit the next one.
  func statementEnded() -> Bool {
    let underWay = state.withLock { state in
      state.running = nil
      return state.request
    }
    return underWay?.wait(timeout: .now() + Self.patience) != .timedOut
  }

  var runningStatement: UInt64? { state.withLock { $0.running } }

  /// Returns at once; requests follow from a queue of their own until the statement has ended.
  func cancel(_ statement: UInt64) {
    queue.async { self.pursue(statement, pauseMilliseconds: 20) }
  }

  /// For a statement of the calling thread that nobody wants any more.
  func cancelRunningStatement() {
    if let running = runningStatement { cancel(running) }
  }

  private func pursue(_ statement: UInt64, pauseMilliseconds: Int) {
    guard requestCancellation(of: statement) else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(pauseMilliseconds)) {
      self.pursue(statement, pauseMilliseconds: min(pauseMilliseconds * 2, 1_000))
    }
  }

  /// Whether the statement was still running. The queue sends one request at a time.
  private func requestCancellation(of statement: UInt64) -> Bool {
    let underWay = DispatchGroup()
    let isRunning = state.withLock { state in
      guard state.running == statement else { return false }
      underWay.enter()
      state.request = underWay
      return true
    }
    guard isRunning else { return false }
    // The outcome is not used: a request that fails is repeated, and a lost connection ends the statement anyway.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
      _ = unsafe PQcancel(request, message.baseAddress, Int32(message.count))
    }
    state.withLock { $0.request = nil }
    underWay.leave()
    return true
  }
}
