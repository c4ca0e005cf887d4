import Postgres
import Run
import Settings

extension Settings {
  /// Opens a session on our own database for `body`, and closes it. Throws `PostgresError`, `SchemaError`.
  package func withStore<Result: Sendable>(
    _ applicationName: String, _ body: (PostgresSession) async throws -> Result
  ) async throws -> Result {
    try await PostgresSession.connect(databaseURL, applicationName: applicationName).closing { session in
      try await session.withConnection { try Migrator.requireCurrent($0) }
      return try await body(session)
    }
  }

  /// Runs `body` in one transaction on our own database.
  package func withStore<Result: Sendable>(
    _ applicationName: String, _ mode: TransactionMode,
    _ body: @Sendable (borrowing BlockingConnection) throws -> Result
  ) async throws -> Result {
    try await withStore(applicationName) { try await $0.transaction(mode, body) }
  }
}

extension PostgresSession {
  package nonisolated func closing<Result: Sendable>(
    _ body: (PostgresSession) async throws -> Result
  ) async throws -> Result {
    try await finally({ await self.close() }) { try await body(self) }
  }
}
