import Dispatch

/// How often a transaction is tried in all.
private let attempts = 6

extension BlockingConnection {
  /// As `transaction`, but what others' work has spoilt (a serialization failure, a deadlock) is tried again, up to six
  /// times in all. `body` must therefore change nothing but the database.
  @discardableResult
  public func retrying<R>(
    _ mode: TransactionMode = .readWrite, _ body: (borrowing BlockingConnection) throws -> R
  ) throws -> R {
    for attempt in 1..<attempts {
      do { return try transaction(mode, body) } catch let error as PostgresError where error.retry == .transaction {
        if isCancelled { throw error }
        pause(after: attempt)
      }
    }
    return try transaction(mode, body)
  }

  /// Whom a deadlock has hit once meets the same rival again unless one of the two waits: up to 20 ms, 40 ms, 80 ms, ...,
  /// at random. This thread is ours to block.
  private func pause(after attempt: Int) {
    let limit = 20 << attempt
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(Int.random(in: 1...limit)))
  }
}

extension PostgresSession {
  /// As `BlockingConnection.retrying`. No other task's statement comes between.
  @discardableResult
  public nonisolated func retrying<R: Sendable>(
    _ mode: TransactionMode = .readWrite, _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    try await withConnection { try $0.retrying(mode, body) }
  }
}
