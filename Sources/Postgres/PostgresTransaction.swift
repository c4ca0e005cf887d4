import CLibPQ

/// What a transaction may do and what it sees.
public enum TransactionMode: Hashable, Sendable {
  /// Reads and writes; each statement sees what was committed before it.
  case readWrite
  /// Only reads; all statements see the same moment (REPEATABLE READ).
  case snapshot
  /// Only reads what another open transaction sees, by the name that `pg_export_snapshot()` gave it there.
  case importedSnapshot(String)

  fileprivate static let readWriteBeginning = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
}

extension BlockingConnection {
  /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
  ///
  /// Throws what `body` throws, or the `PostgresError` of BEGIN or COMMIT. A body that swallowed the error of a
  /// statement makes the server roll back, which throws too.
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

  /// As `transaction`, for what changes a schema: one at a time, however long that takes.
  ///
  /// For a table that others are at it waits for three seconds at most, and throws 55P03: whoever wants the table meanwhile,
  /// a shop's customers perhaps, waits behind it.
  ///
  /// - Parameter lock: two numbers that no other program of the database is likely to use as an advisory lock.
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

  /// As `transaction`, and statements that are postponed travel with the next one, so that a transaction of many of them
  /// waits for the server a few times only: the first ones with the beginning, the last ones with the commit.
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

  /// Opens a transaction that lasts until `commit`, `rollback` or the end of the connection. Throws `PostgresError`.
  public func begin(_ mode: TransactionMode) throws(PostgresError) {
    if isInTransaction { throw PostgresError(.usage, "a transaction is already open") }
    switch mode {
    case .readWrite:
      try executeScript(TransactionMode.readWriteBeginning)
    case .snapshot:
      try executeScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    case .importedSnapshot(let name):
      try executeScript("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
      do {
        try executeScript("SET TRANSACTION SNAPSHOT \(PostgresLiteral.text(name))")
      } catch {
        rollback()
        throw error
      }
    }
  }

  /// Ends the transaction and keeps its changes. Throws `PostgresError`; then nothing was kept, unless the connection
  /// was lost, when nobody knows.
  public func commit() throws(PostgresError) {
    let sql = "COMMIT"
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result: ServerResult
    if let waiting = takePostponed() {
      result = try handle.answerTogether(waiting + [PostponedStatement(sql: sql, parameters: ParameterList([]))])
    } else {
      result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
    }
    // The server answers COMMIT of a failed transaction with success and another tag.
    if result.commandTag != sql {
      throw PostgresError(.server, "the transaction had failed and was rolled back", statement: sql)
    }
  }

  /// Ends the transaction and forgets its changes, also when the owner was cancelled. Without a transaction it does
  /// nothing. It has no error to report: where it fails the connection is lost, and the server rolls back by itself.
  public func rollback() {
    guard isInTransaction, (try? handle.beginStatement("ROLLBACK", shielded: true)) != nil else { return }
    _ = try? unsafe handle.answer(sent: PQsendQuery(handle.pointer, "ROLLBACK"), "ROLLBACK")
  }
}
