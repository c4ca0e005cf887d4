import CLibPQ

public enum TransactionMode: Hashable, Sendable {
  /// Each statement sees what was committed before it (READ COMMITTED).
  case readWrite
  /// Read only; all statements see the same snapshot (REPEATABLE READ).
  case snapshot
  /// Read only, in the snapshot of another open transaction, by its name from `pg_export_snapshot()`.
  case importedSnapshot(String)

  static let readWriteBeginning = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
}

extension BlockingConnection {
  /// Commits when `body` returns and rolls back when it throws. A body that ignores the error of a statement makes the
  /// server roll back, which throws too.
  @discardableResult
  public func transaction<R>(
    _ mode: TransactionMode = .readWrite, _ body: (borrowing BlockingConnection) throws -> R
  ) throws -> R {
    try begin(mode)
    do {
      let result = try body(self)
      try commit()
      return result
    } catch {
      rollback()
      throw error
    }
  }

  /// As `transaction`, for schema changes, one at a time by an advisory lock of two unusual numbers. Waits three
  /// seconds at most for a table lock, then throws 55P03, because other users of the table queue behind the request.
  @discardableResult
  public func migration<R>(
    under lock: (Int64, Int64), _ body: (borrowing BlockingConnection) throws -> R
  ) throws -> R {
    try transaction { connection in
      try connection.execute("SELECT pg_advisory_xact_lock(\(lock.0), \(lock.1))")
      try connection.executeScript("SET LOCAL lock_timeout TO '3s'")
      return try body(connection)
    }
  }

  /// As `transaction`, in pipeline mode: postponed statements are sent with the next one, BEGIN and COMMIT too.
  @discardableResult
  public func pipelinedTransaction<R>(_ body: (borrowing BlockingConnection) throws -> R) throws -> R {
    if isInTransaction { throw PostgresError(.usage, "a transaction is already open") }
    handle.postponed = []
    defer { handle.postponed = nil }
    do {
      try postpone(TransactionMode.readWriteBeginning)
      let result = try body(self)
      try commit()
      return result
    } catch {
      handle.postponed = nil
      rollback()
      throw error
    }
  }

  public func begin(_ mode: TransactionMode) throws(PostgresError) {
    if isInTransaction { throw PostgresError(.usage, "a transaction is already open") }
    switch mode {
    case .readWrite: try executeScript(TransactionMode.readWriteBeginning)
    case .snapshot: try executeScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    case .importedSnapshot(let name):
      try executeScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
      do { try executeScript("SET TRANSACTION SNAPSHOT \(PostgresLiteral.text(name))") } catch {
        rollback()
        throw error
      }
    }
  }

  /// Commits. After an error nothing was kept, unless the connection was lost: then the result is unknown.
  public func commit() throws(PostgresError) {
    let sql = "COMMIT"
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result: ServerResult
    if let waiting = takePostponed() {
      result = try handle.receivePipelineResult(waiting + [PostponedStatement(sql: sql, parameters: ParameterList([]))])
    } else {
      result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
    }
    // The server answers the COMMIT of a failed transaction with success and another command tag.
    if result.commandTag != sql {
      throw PostgresError(.server, "the transaction had failed and was rolled back", statement: sql)
    }
  }

  /// Rolls back, also after a cancellation. After a failure the connection is lost, and the server rolls back by itself.
  public func rollback() {
    guard isInTransaction, (try? handle.beginStatement("ROLLBACK", shielded: true)) != nil else { return }
    _ = try? unsafe handle.answer(sent: PQsendQuery(handle.pointer, "ROLLBACK"), "ROLLBACK")
  }
}
