import CLibPQ
import Dispatch
import Synchronization

/// Lets any thread interrupt the statement that runs on one connection, and no other one.
///
/// `PQcancel` names a backend, not a statement, and a request that arrives before the statement does is ignored by the
/// server. Hence statements are numbered, a request is sent only while its statement runs (the lock is held until the
/// server has acted on it), and it is repeated until that statement has ended.
/// https://www.postgresql.org/docs/15/libpq-cancel.html
@safe
final class StatementCanceller: Sendable {
  private struct State {
    var running: UInt64?
    var lastStatement: UInt64 = 0
  }

  /// libpq's copy of the address and key, so that the connection itself is never touched from another thread. Unsafe
  /// only in the eyes of the compiler: libpq never changes it until `deinit` frees it, and `PQcancel` only reads it.
  private nonisolated(unsafe) let request: OpaquePointer?
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "night-audit.postgres.cancel")

  init(connection: OpaquePointer) { unsafe request = unsafe PQgetCancel(connection) }

  deinit { unsafe PQfreeCancel(request) }

  func statementBegins() {
    state.withLock {
      $0.lastStatement += 1
      $0.running = $0.lastStatement
    }
  }

  func statementEnded() { state.withLock { $0.running = nil } }

  var runningStatement: UInt64? { state.withLock { $0.running } }

  /// Returns at once; requests follow from a queue of their own until the statement has ended.
  func cancel(_ statement: UInt64) {
    queue.async { self.pursue(statement, pauseMilliseconds: 20) }
  }

  private func pursue(_ statement: UInt64, pauseMilliseconds: Int) {
    guard requestCancellation(of: statement) else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(pauseMilliseconds)) {
      self.pursue(statement, pauseMilliseconds: min(pauseMilliseconds * 2, 1_000))
    }
  }

  /// Whether the statement was still running.
  private func requestCancellation(of statement: UInt64) -> Bool {
    state.withLock { state in
      guard state.running == statement else { return false }
      // The outcome is not used: a request that fails is repeated, and a lost connection ends the statement anyway.
      unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { message in
        _ = unsafe PQcancel(request, message.baseAddress, Int32(message.count))
      }
      return true
    }
  }

  /// For a statement of the calling thread that nobody wants any more.
  func cancelRunningStatement() {
    if let running = runningStatement { _ = requestCancellation(of: running) }
  }
}

/// A wish to stop, shared by a task and the connections that work for it.
final class Interruption: Sendable {
  private struct State {
    var isCancelled = false
    var cancellers: [StatementCanceller] = []
  }

  private let state = Mutex(State())

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

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
      state.isCancelled = true
      for canceller in state.cancellers {
        if let running = canceller.runningStatement { canceller.cancel(running) }
      }
    }
  }
}
