import AppStore
import Logging
import Postgres
import Reconciliation
import Run

/// A session that is opened again when it was lost, and whose statements are tried again when others were in the way.
///
/// Which failures that helps against the table of failures says.
package actor OpenSession {
  /// How long a database that is gone is waited for.
  package static let patience = Duration.seconds(60)
  /// How often the same is done in vain while the session lives.
  private static let tries = 6
  private static let backoff = Backoff(base: .milliseconds(50), cap: .seconds(2))

  private let open: @Sendable () async throws -> PostgresSession
  private let patience: Duration
  private let isWaiting: @Sendable (any Error) -> Void
  private var current: PostgresSession?

  /// - Parameters:
  ///   - patience: how long a database that is gone is waited for.
  ///   - isWaiting: called with the error when the wait for a database begins.
  ///   - open: connects, and does what every new session needs.
  package init(
    patience: Duration = OpenSession.patience, isWaiting: @escaping @Sendable (any Error) -> Void = { _ in },
    open: @escaping @Sendable () async throws -> PostgresSession
  ) {
    self.open = open
    self.patience = patience
    self.isWaiting = isWaiting
  }

  /// As above, with a line of the log when the wait for a database begins.
  package init(logger: Logger?, open: @escaping @Sendable () async throws -> PostgresSession) {
    let seconds = Self.patience.components.seconds
    self.init(
      isWaiting: { logger?.warning("the database cannot be reached; it is waited for up to \(seconds) s: \($0)") },
      open: open)
  }

  /// Closes the session.
  package func close() async {
    await current?.close()
    current = nil
  }

  /// Runs `body` on the session, again where that can help.
  ///
  /// - Parameter body: gets the session, and whether an attempt before may have been stored although nobody said so.
  /// - Throws: what `body` throws when trying again does not help, or did not.
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
          if lostSince == nil, patience > .zero { isWaiting(error) }
          lostSince = since
          if .now - since >= patience { throw error }
        case .report, .park, .postpone, .endApp, .endNight: throw error
        }
        // Backs off, because a server that restarts takes a moment.
        try await Task.sleep(for: Self.backoff.delay(attempt: attempt, random: .random(in: 0..<1)))
      }
    }
  }

  /// Runs one statement, as `run`.
  @discardableResult
  package nonisolated func execute(_ sql: String, _ parameters: [PostgresValue] = []) async throws -> PostgresRows {
    try await run { session, _ in try await session.execute(sql, parameters) }
  }

  /// Lends the connection, as `run`.
  @discardableResult
  package nonisolated func withConnection<Value: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) throws -> Value
  ) async throws -> Value {
    try await run { session, _ in try await session.withConnection(body) }
  }

  private func session() async throws -> PostgresSession {
    if let current { return current }
    let opened = try await open()
    // Another task may have been faster.
    if let current {
      await opened.close()
      return current
    }
    current = opened
    return opened
  }

  private func forget(_ session: PostgresSession) async {
    guard current === session else { return }
    current = nil
    await session.close()
  }
}
