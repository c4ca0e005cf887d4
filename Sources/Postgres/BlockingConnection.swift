import CLibPQ

/// One connection to Postgres, whose methods block the calling thread until the server has answered.
///
/// It belongs on a thread of its own: `PostgresSession` and `withBlockingThread` provide one. Statements take their
/// values as bound parameters and deliver binary results. When the owner is cancelled the running statement is
/// interrupted and throws `.cancelled`; the connection can be used further. It is closed with its owner's life.
package struct BlockingConnection: ~Copyable {
  let handle: ConnectionHandle

  /// Connects.
  ///
  /// - Parameters:
  ///   - conninfo: a URI or a keyword string as libpq takes them (PostgreSQL documentation, 34.1.1). Empty: libpq's
  ///     defaults. `PG*` variables, service file and `.pgpass` apply as usual.
  ///   - applicationName: shown in `pg_stat_activity` unless the string or the environment names another.
  ///   - notices: gets what the server says beside its answers; nothing is ever printed.
  ///
  /// Throws `.connectionFailed`.
  package static func connect(
    _ conninfo: String, applicationName: String, notices: @escaping PostgresNoticeHandler = { _ in }
  ) throws(PostgresError) -> BlockingConnection {
    try connect(conninfo, applicationName: applicationName, interruption: Interruption(), notices: notices)
  }

  static func connect(
    _ conninfo: String, applicationName: String, interruption: Interruption, notices: @escaping PostgresNoticeHandler
  ) throws(PostgresError) -> BlockingConnection {
    BlockingConnection(
      handle: try ConnectionHandle(
        conninfo: conninfo, applicationName: applicationName, interruption: interruption, notices: notices))
  }

  /// The server's version as libpq counts it: 150020 is 15.20.
  package var serverVersion: Int { unsafe Int(PQserverVersion(handle.pointer)) }

  /// The process that serves the connection, as `pg_stat_activity.pid` and `pg_terminate_backend` know it.
  package var backendProcessId: Int32 { unsafe PQbackendPID(handle.pointer) }

  /// Whether a transaction is open, failed or not.
  package var isInTransaction: Bool {
    switch unsafe PQtransactionStatus(handle.pointer) {
    case PQTRANS_INTRANS, PQTRANS_INERROR, PQTRANS_ACTIVE: true
    default: false
    }
  }

  /// Whether the owner was cancelled; for loops that compute between statements.
  package var isCancelled: Bool { handle.interruption.isCancelled }

  /// Runs one statement and returns all its rows.
  ///
  /// - Parameter parameters: the values of `$1`, `$2`, ...; at most 65,535.
  ///
  /// Throws `PostgresError`.
  @discardableResult
  package func execute(_ sql: String, _ parameters: [PostgresValue] = []) throws(PostgresError) -> PostgresRows {
    let encoded = try ParameterList(parameters)
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result = try unsafe handle.answer(sent: encoded.send(sql, on: handle.pointer), sql)
    try refuseCopy(result, sql)
    return PostgresRows(result)
  }

  /// Runs several statements, separated by semicolons, without parameters: migrations. They are one transaction unless
  /// the script holds transaction commands of its own. Throws `PostgresError`.
  package func executeScript(_ sql: String) throws(PostgresError) {
    try handle.beginStatement(sql)
    defer { handle.endStatement() }
    let result = try unsafe handle.answer(sent: PQsendQuery(handle.pointer, sql), sql)
    try refuseCopy(result, sql)
  }

  /// The columns that `query` would return, without running it. Throws `PostgresError`.
  package func describe(_ query: String) throws(PostgresError) -> [PostgresColumn] {
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
