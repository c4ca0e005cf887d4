/// A connection for asynchronous callers, whose statements run in order on a separate thread. Cancellation of a waiting
/// task interrupts only its own statement. After `isConnectionLost` a new session is needed.
public actor PostgresSession {
  private let executor = BlockingExecutor()
  private var connection: BlockingConnection?

  public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
  private init() {}

  /// Connects as `BlockingConnection.connect`; also throws `.cancelled`.
  public static func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile = .store, notices: PostgresNoticeHandler? = nil
  ) async throws(PostgresError) -> PostgresSession {
    let session = PostgresSession()
    let interruption = Interruption()
    let opened = await withTaskCancellationHandler {
      await session.open { () throws(PostgresError) in
        try .connect(
          conninfo, applicationName: applicationName, profile: profile, interruption: interruption, notices: notices)
      }
    } onCancel: {
      interruption.cancel()
    }
    try opened.get()
    return session
  }

  /// Closes the connection; later calls throw `.usage`.
  public func close() { connection = nil }

  @discardableResult
  public nonisolated func execute(
    _ sql: String, _ parameters: [PostgresValue] = []
  ) async throws(PostgresError) -> PostgresRows {
    try await perform { connection in
      Result { () throws(PostgresError) in try connection.execute(sql, parameters) }
    }.get()
  }

  public nonisolated func executeScript(_ sql: String) async throws(PostgresError) {
    try await perform { connection in Result { () throws(PostgresError) in try connection.executeScript(sql) } }.get()
  }

  /// Runs `body` in a transaction, as `BlockingConnection.transaction`. No statement of another task comes between.
  @discardableResult
  public nonisolated func transaction<R: Sendable>(
    _ mode: TransactionMode = .readWrite, _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    try await withConnection { try $0.transaction(mode, body) }
  }

  @discardableResult
  public nonisolated func pipelinedTransaction<R: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    try await withConnection { try $0.pipelinedTransaction(body) }
  }

  /// Lends the connection to `body`, which runs on the session's thread and may block. Throws `.usage` after `close`.
  @discardableResult
  public nonisolated func withConnection<R: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    try await perform { connection in Result { try body(connection) } }.get()
  }

  private func open(
    _ connect: @Sendable () throws(PostgresError) -> BlockingConnection
  ) -> Result<Void, PostgresError> {
    do throws(PostgresError) {
      connection = try connect()
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  private nonisolated func perform<R: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) -> R
  ) async throws(PostgresError) -> R {
    let interruption = Interruption()
    let result = await withTaskCancellationHandler {
      await run(for: interruption, body)
    } onCancel: {
      interruption.cancel()
    }
    return try result.get()
  }

  private func run<R: Sendable>(
    for interruption: Interruption, _ body: @Sendable (borrowing BlockingConnection) -> R
  ) -> Result<R, PostgresError> {
    guard let open = connection.take() else { return .failure(PostgresError(.usage, "the session is closed")) }
    // A later cancellation of this task must not reach the statement of another task.
    open.handle.serve(interruption)
    let result = body(open)
    connection = consume open
    return .success(result)
  }
}
