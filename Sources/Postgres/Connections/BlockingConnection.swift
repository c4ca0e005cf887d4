import CLibPQ

public final class PostponedRows {
  var rows: PostgresRows?

  /// Throws `.usage` if the statement has not been sent yet.
  public func get() throws(PostgresError) -> PostgresRows {
    guard let rows else { throw PostgresError(.usage, "the statement is still postponed") }
    return rows
  }
}

/// A connection to Postgres whose methods block the calling thread until the server has answered. It needs a thread of
/// its own: `PostgresSession` and `withBlockingThread` provide one. Cancellation of the owner interrupts the running
/// statement, which throws `.cancelled`; the connection stays usable.
public struct BlockingConnection: ~Copyable {
  let handle: ConnectionHandle

  /// Connects and applies `profile`. Throws `.connectionFailed`, or `.misconfigured`, also behind a transaction pooler.
  /// - Parameters:
  ///   - conninfo: a libpq string or URI; `PG*` variables, service file and `.pgpass` apply (PostgreSQL documentation,
  ///     34.1.1).
  ///   - notices: nil for the handler of `PostgresNotice.listen`.
  public static func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile = .store, notices: PostgresNoticeHandler? = nil
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
    // Before any setting, because behind such a pooler a setting would stay with a session of other clients.
    try connection.refuseTransactionPooler(parameters)
    try connection.assume(profile)
    return connection
  }

  private func assume(_ profile: SessionProfile) throws(PostgresError) {
    // A statement of its own, to be as short as possible.
    try retryingTimeouts { () throws(PostgresError) in try executeScript("SET statement_timeout TO 0") }
    let encoding = unsafe PQparameterStatus(handle.pointer, "server_encoding").map { unsafe String(cString: $0) }
    try executeScript(profile.script(serverVersion: serverVersion, isEncoded: encoding != "SQL_ASCII"))
    guard serverVersion >= 140_000 else { return }
    do {
      // The server then detects a lost client within seconds. Some systems do not support it.
      try executeScript("SET client_connection_check_interval TO '10s'")
    } catch  where error.sqlState == SQLState.invalidParameterValue {}
  }

  /// Retries after a statement timeout, which a role may have set to a millisecond. Needed only until it is lifted.
  func retryingTimeouts<Result>(_ body: () throws(PostgresError) -> Result) throws(PostgresError) -> Result {
    var attempts = 0
    while true {
      do throws(PostgresError) { return try body() } catch {
        attempts += 1
        guard error.sqlState == SQLState.queryCanceled, attempts < 10 else { throw error }
      }
    }
  }

  /// The server's version in libpq's format: 150020 is 15.20.
  public var serverVersion: Int { unsafe Int(PQserverVersion(handle.pointer)) }

  /// The process ID in `pg_stat_activity` and for `pg_terminate_backend`.
  public var backendProcessId: Int32 { unsafe PQbackendPID(handle.pointer) }
  public var waits: Int { handle.waits }

  /// The value of a libpq connection option such as `sslmode`; nil if it is not set.
  public func option(_ keyword: String) -> String? {
    guard let options = unsafe PQconninfo(handle.pointer) else { return nil }
    let settings = unsafe ConnectionParameters.settings(of: options)
    return settings.first { $0.keyword == keyword }?.value
  }

  public var isInTransaction: Bool {
    if handle.isGivenUp { return false }
    return switch unsafe PQtransactionStatus(handle.pointer) {
    case PQTRANS_INTRANS, PQTRANS_INERROR, PQTRANS_ACTIVE: true
    default: false
    }
  }

  public var isCancelled: Bool { handle.interruption.isCancelled }

  /// Runs one statement with the values of `$1`, `$2`, …, at most 65,535, and returns all its rows.
  @discardableResult
  public func execute(_ sql: String, _ parameters: [PostgresValue] = []) throws(PostgresError) -> PostgresRows {
    let encoded = try ParameterList(parameters)
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    if let waiting = takePostponed() {
      return PostgresRows(
        try handle.receivePipelineResult(waiting + [PostponedStatement(sql: sql, parameters: encoded)]))
    }
    let result = try unsafe handle.answer(sent: encoded.send(sql, on: handle.pointer), sql)
    try refuseCopy(result, sql)
    return PostgresRows(result)
  }

  /// Runs a statement without waiting for its result. It is sent in a pipelined transaction together with the next
  /// statement, otherwise at once. The next statement or the commit throws its error.
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
    handle.postponed?.append(PostponedStatement(sql: sql, parameters: try ParameterList(parameters), answer: answer))
    return answer
  }

  func takePostponed() -> [PostponedStatement]? {
    guard let waiting = handle.postponed, !waiting.isEmpty else { return nil }
    handle.postponed = []
    return waiting
  }

  private func sendPostponed() throws(PostgresError) {
    guard let waiting = takePostponed() else { return }
    try handle.beginStatement(waiting[0].sql)
    defer { handle.endStatement() }
    _ = try handle.receivePipelineResult(waiting)
  }

  /// Runs several statements without parameters. They are one transaction unless the script has transaction commands.
  public func executeScript(_ sql: String) throws(PostgresError) {
    try sendPostponed()
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
    try refuseCopy(result, sql)
  }

  /// Returns the columns of a query without running it.
  public func describe(_ query: String) throws(PostgresError) -> [PostgresColumn] {
    try sendPostponed()
    try handle.beginStatement(query)
    defer { handle.endStatement() }
    _ = try unsafe handle.answer(sent: PQsendPrepare(handle.pointer, "", query, 0, nil), query)
    return try unsafe handle.answer(sent: PQsendDescribePrepared(handle.pointer, ""), query).columns
  }

  private func refuseCopy(_ result: borrowing ServerResult, _ sql: String) throws(PostgresError) {
    guard result.isCopy else { return }
    handle.abandonCopy(sql)
    throw PostgresError(.usage, "COPY is run by copyOut and copyIn", statement: sql)
  }

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
