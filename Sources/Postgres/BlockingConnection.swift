import CLibPQ

/// What a statement answers that was postponed.
public final class PostponedRows {
  var rows: PostgresRows?

  /// Throws `.usage` before the statement was sent with another one.
  public func get() throws(PostgresError) -> PostgresRows {
    guard let rows else { throw PostgresError(.usage, "the statement is still postponed") }
    return rows
  }
}

/// One connection to Postgres, whose methods block the calling thread until the server has answered.
///
/// It belongs on a thread of its own: `PostgresSession` and `withBlockingThread` provide one. Statements take their
/// values as bound parameters and deliver binary results. When the owner is cancelled the running statement is
/// interrupted and throws `.cancelled`; the connection can be used further. It is closed with its owner's life.
public struct BlockingConnection: ~Copyable {
  let handle: ConnectionHandle

  /// Connects, and makes the session what `profile` says.
  ///
  /// - Parameters:
  ///   - conninfo: a URI or a keyword string as libpq takes them (PostgreSQL documentation, 34.1.1). Empty: libpq's
  ///     defaults. `PG*` variables, service file and `.pgpass` apply as usual.
  ///   - applicationName: shown in `pg_stat_activity` unless the string or the environment names another.
  ///   - profile: what the connection is for.
  ///   - notices: gets what the server says beside its answers; nil: whoever listens to all connections.
  ///
  /// Throws `.connectionFailed`, or `.misconfigured` for a string that nobody can understand and for a pooler that gives
  /// each transaction another session.
  public static func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile = .store,
    notices: PostgresNoticeHandler? = nil
  ) throws(PostgresError) -> BlockingConnection {
    try connect(
      conninfo, applicationName: applicationName, profile: profile, interruption: Interruption(), notices: notices)
  }

  static func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile, interruption: Interruption,
    notices: PostgresNoticeHandler?
  ) throws(PostgresError) -> BlockingConnection {
    let parameters = try ConnectionParameters(conninfo: conninfo, applicationName: applicationName)
    let connection = BlockingConnection(
      handle: try ConnectionHandle(
        parameters: parameters, profile: profile, interruption: interruption, notices: notices))
    // Before anything is set: behind such a pooler a setting would stay with a session that others get.
    try connection.refuseTransactionPooler(parameters)
    try connection.assume(profile)
    return connection
  }

  /// Makes the session what `profile` says.
  private func assume(_ profile: SessionProfile) throws(PostgresError) {
    // By itself, so that it is as short as can be.
    try outlastingTimeouts { () throws(PostgresError) in try executeScript("SET statement_timeout TO 0") }
    let encoding = unsafe PQparameterStatus(handle.pointer, "server_encoding").map { unsafe String(cString: $0) }
    try executeScript(profile.script(serverVersion: serverVersion, isEncoded: encoding != "SQL_ASCII"))
    guard serverVersion >= 140_000 else { return }
    do {
      // Notices within seconds that we are gone, also in the middle of a long statement. Some systems cannot.
      try executeScript("SET client_connection_check_interval TO '10s'")
    } catch  where error.sqlState == SQLState.invalidParameterValue {}
  }

  /// Tries again what a statement timeout ended: a role's own limit may be a millisecond, and a busy server may take as
  /// long for anything. To be used where no timeout has been lifted yet.
  func outlastingTimeouts<Result>(_ body: () throws(PostgresError) -> Result) throws(PostgresError) -> Result {
    var attempts = 0
    while true {
      do throws(PostgresError) { return try body() } catch {
        attempts += 1
        guard error.sqlState == SQLState.queryCanceled, attempts < 10 else { throw error }
      }
    }
  }

  /// The server's version as libpq counts it: 150020 is 15.20.
  public var serverVersion: Int { unsafe Int(PQserverVersion(handle.pointer)) }

  /// The process that serves the connection, as `pg_stat_activity.pid` and `pg_terminate_backend` know it.
  public var backendProcessId: Int32 { unsafe PQbackendPID(handle.pointer) }

  /// How often the connection has waited for the server so far.
  public var waits: Int { handle.waits }

  /// What the connection was made with under one of libpq's keywords, such as `sslmode`; nil where it is not set.
  public func option(_ keyword: String) -> String? {
    guard let options = unsafe PQconninfo(handle.pointer) else { return nil }
    defer { unsafe PQconninfoFree(options) }
    var option = unsafe options
    while let name = unsafe option.pointee.keyword {
      if unsafe String(cString: name) == keyword { return unsafe option.pointee.val.map { unsafe String(cString: $0) } }
      unsafe option += 1
    }
    return nil
  }

  /// Whether a transaction is open, failed or not.
  public var isInTransaction: Bool {
    if handle.isGivenUp { return false }
    return switch unsafe PQtransactionStatus(handle.pointer) {
    case PQTRANS_INTRANS, PQTRANS_INERROR, PQTRANS_ACTIVE: true
    default: false
    }
  }

  /// Whether the owner was cancelled; for loops that compute between statements.
  public var isCancelled: Bool { handle.interruption.isCancelled }

  /// Runs one statement and returns all its rows.
  ///
  /// - Parameter parameters: the values of `$1`, `$2`, ...; at most 65,535.
  ///
  /// Throws `PostgresError`.
  @discardableResult
  public func execute(_ sql: String, _ parameters: [PostgresValue] = []) throws(PostgresError) -> PostgresRows {
    let encoded = try ParameterList(parameters)
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    if let waiting = takePostponed() {
      return PostgresRows(try handle.answerTogether(waiting + [PostponedStatement(sql: sql, parameters: encoded)]))
    }
    let result = try unsafe handle.answer(sent: encoded.send(sql, on: handle.pointer), sql)
    try refuseCopy(result, sql)
    return PostgresRows(result)
  }

  /// Runs a statement whose answer is not waited for: with the next one where the transaction's statements travel together,
  /// else at once. What it fails with, the next one or the commit throws.
  ///
  /// - Returns: what it answers, to be looked at after the next statement.
  ///
  /// Throws `PostgresError`.
  @discardableResult
  public func postpone(
    _ sql: String, _ parameters: [PostgresValue] = []
  ) throws(PostgresError) -> PostponedRows {
    let answer = PostponedRows()
    if handle.postponed == nil {
      answer.rows = try execute(sql, parameters)
      return answer
    }
    if sql.utf8.contains(0) { throw .nul(in: "an SQL statement") }
    handle.postponed?.append(
      PostponedStatement(sql: sql, parameters: try ParameterList(parameters), answer: answer))
    return answer
  }

  /// What waits to be sent; nil when nothing does.
  func takePostponed() -> [PostponedStatement]? {
    guard let waiting = handle.postponed, !waiting.isEmpty else { return nil }
    handle.postponed = []
    return waiting
  }

  /// Sends what was postponed before something that cannot travel with it.
  private func sendPostponed() throws(PostgresError) {
    guard let waiting = takePostponed() else { return }
    try handle.beginStatement(waiting[0].sql)
    defer { handle.endStatement() }
    _ = try handle.answerTogether(waiting)
  }

  /// Runs several statements, separated by semicolons, without parameters: migrations. They are one transaction unless
  /// the script holds transaction commands of its own. Throws `PostgresError`.
  public func executeScript(_ sql: String) throws(PostgresError) {
    try sendPostponed()
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
    try refuseCopy(result, sql)
  }

  /// The columns that `query` would return, without running it. Throws `PostgresError`.
  public func describe(_ query: String) throws(PostgresError) -> [PostgresColumn] {
    try sendPostponed()
    try handle.beginStatement(query)
    defer { handle.endStatement() }
    _ = try unsafe handle.answer(sent: PQsendPrepare(handle.pointer, "", query, 0, nil), query)
    return try unsafe handle.answer(sent: PQsendDescribePrepared(handle.pointer, ""), query).columns
  }

  /// COPY has methods of its own.
  private func refuseCopy(_ result: borrowing ServerResult, _ sql: String) throws(PostgresError) {
    guard result.isCopy else { return }
    handle.abandonCopy(sql)
    throw PostgresError(.usage, "COPY is run by copyOut and copyIn", statement: sql)
  }

  /// Starts a COPY. The connection is busy until `endStreaming`.
  func beginCopy(_ sql: String) throws(PostgresError) {
    try sendPostponed()
    try handle.beginStatement(sql)
    do throws(PostgresError) {
      let result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
      if !result.isCopy { throw PostgresError(.unexpectedData, "COPY was answered otherwise", statement: sql) }
    } catch {
      handle.endStatement()
      throw error
    }
    handle.beginStreaming()
  }
}
