import AppStore
import Logging
import Postgres
import Reconciliation
import Run

/// A database session that reopens when it is lost, and retries statements after conflicts. `Failure.remedy` decides
/// which errors are retried.
package actor OpenSession {
  /// The attempts of one statement while the session lives.
  private static let tries = 6
  private static let backoff = Backoff(base: .milliseconds(50), cap: .seconds(2))

  private let open: @Sendable () async throws -> PostgresSession
  private let waitLimit: Duration
  private let logger: Logger?
  private var current: PostgresSession?

  /// - Parameter waitLimit: how long an unreachable database is waited for.
  package init(
    waitLimit: Duration = .seconds(60), logger: Logger? = nil,
    open: @escaping @Sendable () async throws -> PostgresSession
  ) {
    (self.open, self.waitLimit, self.logger) = (open, waitLimit, logger)
  }

  package func close() async {
    await current?.close()
    current = nil
  }

  /// Runs `body` on the session, and again after an error that a retry can mend. `body` gets true if an earlier attempt
  /// may be stored although no reply came.
  package nonisolated func run<Value: Sendable>(
    _ body: @Sendable (_ session: PostgresSession, _ mayBeStored: Bool) async throws -> Value
  ) async throws -> Value {
    var attempt = 0
    var lostSince: ContinuousClock.Instant?
    while true {
      attempt += 1
      do {
        let session = try await session()
        do {
          return try await body(session, lostSince != nil)
        } catch {
          if Failure(error).remedy == .reopen { await forget(session) }
          throw error
        }
      } catch {
        switch Failure(error).remedy {
        case .again: if attempt >= Self.tries { throw error }
        case .reopen:
          let since = lostSince ?? .now
          if lostSince == nil, waitLimit > .zero {
            logger?.warning("the database cannot be reached; waiting up to \(waitLimit.components.seconds) s: \(error)")
          }
          lostSince = since
          if .now - since >= waitLimit { throw error }
        case .report, .park, .postpone, .endApp, .endNight: throw error
        }
        // Backs off, because a server that restarts takes a moment.
        try await Task.sleep(for: Self.backoff.delay(attempt: attempt))
      }
    }
  }

  @discardableResult
  package nonisolated func execute(_ sql: String, _ parameters: [PostgresValue] = []) async throws -> PostgresRows {
    try await run { session, _ in try await session.execute(sql, parameters) }
  }

  @discardableResult
  package nonisolated func withConnection<Value: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) throws -> Value
  ) async throws -> Value {
    try await run { session, _ in try await session.withConnection(body) }
  }

  private func session() async throws -> PostgresSession {
    if let current { return current }
    let opened = try await open()
    // Another task may have opened a session meanwhile.
    if let current {
      await opened.close()
      return current
    }
    current = opened
    return opened
  }

  /// Leaves a lost session. It closes with the last task that uses it, which then finds it lost, too.
  private func forget(_ session: PostgresSession) { if current === session { current = nil } }
}
