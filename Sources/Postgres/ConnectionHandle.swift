import CLibPQ

/// The owner of one `PGconn` and of everything that must live exactly as long.
///
/// A class, so that a stream that is being read keeps the connection alive under it. It is confined to one thread at a
/// time; only its canceller is shared.
@safe
final class ConnectionHandle {
  let pointer: OpaquePointer
  let canceller: StatementCanceller
  private let notices: NoticeReceiver
  /// Whoever the connection works for now.
  private(set) var interruption: Interruption
  /// While a COPY stream is open the connection can do nothing else.
  private(set) var isStreaming = false

  init(
    conninfo: String, applicationName: String, interruption: Interruption, notices: @escaping PostgresNoticeHandler
  ) throws(PostgresError) {
    if interruption.isCancelled { throw PostgresError(.cancelled, "cancelled before connecting") }
    let parameters = try ConnectionParameters(conninfo: conninfo, applicationName: applicationName)
    let started = unsafe withCStrings(parameters.keywords) { keywords in
      unsafe withCStrings(parameters.values) { values in unsafe PQconnectStartParams(keywords, values, 1) }
    }
    guard let started = unsafe started else { throw PostgresError(.connectionFailed, "out of memory") }
    let receiver = NoticeReceiver(notices)
    unsafe receiver.install(on: started)
    // The server can send warnings while a connection is made, and only a connection that has been started can have a
    // receiver. PQreset then connects as PQconnectdb does: one host after the other, each within connect_timeout.
    if unsafe PQstatus(started) != CONNECTION_BAD { unsafe PQreset(started) }
    guard unsafe PQstatus(started) == CONNECTION_OK else {
      let message = unsafe trimmed(String(cString: PQerrorMessage(started)))
      unsafe PQfinish(started)
      throw PostgresError(.connectionFailed, message)
    }
    unsafe pointer = unsafe started
    canceller = unsafe StatementCanceller(connection: started)
    self.notices = receiver
    self.interruption = interruption
    interruption.attach(canceller)
  }

  deinit {
    interruption.detach(canceller)
    unsafe PQfinish(pointer)
  }

  /// From now on the connection works for another task.
  func serve(_ next: Interruption) {
    interruption.detach(canceller)
    interruption = next
    next.attach(canceller)
  }

  /// Every statement starts here. `shielded` ones, which clean up after a cancellation, run all the same.
  func beginStatement(_ sql: String, shielded: Bool = false) throws(PostgresError) {
    if isStreaming {
      throw PostgresError(.usage, "the connection is busy with a COPY stream", statement: sql)
    }
    if sql.utf8.contains(0) { throw .nul(in: "an SQL statement") }
    if shielded { return }
    canceller.statementBegins()
    if interruption.isCancelled {
      canceller.statementEnded()
      throw PostgresError(.cancelled, "cancelled before the statement ran", statement: sql)
    }
  }

  func endStatement() { canceller.statementEnded() }

  /// The connection is busy until `endStreaming`.
  func beginStreaming() { isStreaming = true }

  func endStreaming() {
    isStreaming = false
    endStatement()
  }

  /// Waits for the answer to a statement that was sent: its last result, or the first failure as an error. A COPY that
  /// has begun is an answer.
  ///
  /// `PQexec` and its kin would return the last failure, which for a lost connection is libpq's remark that it is lost
  /// and not the server's reason.
  func answer(sent: Int32, _ sql: String) throws(PostgresError) -> ServerResult {
    guard sent == 1 else { throw connectionError(sql) }
    var failure: PostgresError?
    var last: ServerResult?
    while let result = unsafe ServerResult(PQgetResult(pointer)) {
      if result.isCopy { return result }
      if !result.isSuccess, failure == nil { failure = error(result, sql) }
      last = consume result
    }
    if let failure { throw failure }
    guard let last else { throw connectionError(sql) }
    return last
  }

  /// Reads what is left after the data of a COPY, and returns the first failure.
  func endOfCopy(_ sql: String) -> PostgresError? {
    do throws(PostgresError) {
      _ = try answer(sent: 1, sql)
      return nil
    } catch {
      return error
    }
  }

  /// Ends a COPY that nobody wants, in either direction, and forgets its outcome.
  func abandonCopy(_ sql: String) {
    canceller.cancelRunningStatement()
    _ = unsafe PQputCopyEnd(pointer, "abandoned by the client")
    var message: UnsafeMutablePointer<CChar>?
    while unsafe PQgetCopyData(pointer, &message, 0) > 0 { unsafe PQfreemem(message) }
    _ = endOfCopy(sql)
  }

  /// For calls that answer with a flag instead of a result. The text is copied before another call overwrites it.
  func connectionError(_ sql: String) -> PostgresError {
    let message = unsafe trimmed(String(cString: PQerrorMessage(pointer)))
    return PostgresError(isFoundLost() ? .connectionLost : .unexpectedData, message, statement: sql)
  }

  private func error(_ result: borrowing ServerResult, _ sql: String) -> PostgresError {
    let wasSaidByServer = unsafe errorField(result.pointer, NA_DIAG_SQLSTATE) != nil
    return PostgresError(
      result, isConnectionLost: wasSaidByServer ? isBad : isFoundLost(), wasInterrupted: interruption.isCancelled,
      statement: sql)
  }

  /// When sending fails libpq reports it before it takes the connection for lost. Reading makes it find out.
  private func isFoundLost() -> Bool {
    if !isBad { _ = unsafe PQconsumeInput(pointer) }
    return isBad
  }

  private var isBad: Bool { unsafe PQstatus(pointer) == CONNECTION_BAD }
}
