import Postgres
import TestSupport
import Testing

/// Runs `body` with a new connection to the shared cluster. Tests use only temporary tables.
func onConnection<R: Sendable>(_ body: @Sendable (borrowing BlockingConnection) throws -> R) async throws -> R {
  let conninfo = try await sharedConninfo()
  return try await withBlockingThread { scope in
    try body(try scope.connect(conninfo, applicationName: "postgres-tests"))
  }
}

func openSession() async throws -> PostgresSession {
  try await .connect(try await sharedConninfo(), applicationName: "postgres-tests")
}

func sharedConninfo() async throws -> String { try await PrivatePostgres.shared().conninfo(database: "postgres") }

extension PostgresSession {
  func processId() async throws -> Int64 { try await execute("SELECT pg_backend_pid()").single().int64(0) }

  func waitUntilActive(_ processIds: [Int64]) async throws {
    let sql = """
      SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND state = 'active'
      """
    while try await execute(sql, [.intArray(processIds)]).single().int64(0) < Int64(processIds.count) {
      try Task.checkCancellation()
    }
  }
}

/// Returns the `PostgresError` that `body` throws; fails the test if there is none.
func postgresError(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async throws -> PostgresError {
  try #require(
    await #expect(throws: PostgresError.self, sourceLocation: sourceLocation) { try await body() },
    sourceLocation: sourceLocation)
}

func postgresError(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) throws -> PostgresError {
  try #require(
    #expect(throws: PostgresError.self, sourceLocation: sourceLocation) { try body() }, sourceLocation: sourceLocation)
}

/// A value of a row that is copied in.
enum CopiedValue {
  case text(String?)
  case int(Int64?)
  case bool(Bool?)
  case timestamp(Int64?)
  case numeric(PostgresNumeric?)
}

extension CopyWriter {
  /// Writes a row of these values.
  mutating func write(_ values: CopiedValue...) throws(PostgresError) {
    try row { row throws(PostgresError) in
      for value in values {
        switch value {
        case .text(let text): try row.text(text)
        case .int(let number): try row.int(number)
        case .bool(let flag): try row.bool(flag)
        case .timestamp(let microseconds): try row.timestamp(microseconds)
        case .numeric(let number): try row.numeric(number)
        }
      }
    }
  }
}
