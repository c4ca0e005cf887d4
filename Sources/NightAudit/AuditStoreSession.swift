import AuditStore
import Postgres
import Settings

extension Settings {
  /// Opens a session on our own database for `body`, and closes it. Throws `PostgresError`, `SchemaError`.
  func withStore<Result: Sendable>(
    _ applicationName: String, _ body: (PostgresSession) async throws -> Result
  ) async throws -> Result {
    try await PostgresSession.connect(databaseURL, applicationName: applicationName).closing { session in
      try await session.withConnection { try Migrator.requireCurrent($0) }
      return try await body(session)
    }
  }
}

extension PostgresSession {
  nonisolated func closing<Result: Sendable>(_ body: (PostgresSession) async throws -> Result) async throws -> Result {
    try await finally({ await self.close() }) { try await body(self) }
  }
}

/// Runs `body`, and then `close`, also after an error.
func finally<Result: Sendable>(
  _ close: () async -> Void, after body: () async throws -> Result
) async throws -> Result {
  do {
    let result = try await body()
    await close()
    return result
  } catch {
    await close()
    throw error
  }
}
