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
}

extension PostgresSession {
  package nonisolated func closing<Result: Sendable>(
    _ body: (PostgresSession) async throws -> Result
  ) async throws -> Result {
    try await finally({ await self.close() }) { try await body(self) }
  }
}
