import CLibPQ
import Glibc

/// A statement with its parameters that waits to be sent.
struct PostponedStatement {
  var sql: String
  var parameters: ParameterList
  var answer: PostponedRows?
}

/// The owner of one `PGconn` and of everything with the same lifetime. It is a class, so that a stream keeps its
/// connection alive. It is used by one thread at a time; only its canceller is shared. libpq runs in non-blocking mode,
/// so that every wait has a limit.
@safe
final class ConnectionHandle {
  let pointer: OpaquePointer
  let canceller: StatementCanceller
  private let notices: NoticeReceiver
  private(set) var interruption: Interruption
  private(set) var isStreaming = false
  /// True after a timeout: a late answer could not be matched to its statement.
  private(set) var isGivenUp = false
  /// The silence limit of the running statement in slices; nil if there is none.
  private var waitLimit: Int?
  /// The slices of waiting without a byte in either direction.
  private var silence = 0
  /// True if the running statement cleans up after a cancellation.
  private var isShielded = false
  private let profile: SessionProfile
  private(set) var waits = 0
  var postponed: [PostponedStatement]?

  // The interval at which a wait checks for cancellation.
  private static let slice = Duration.milliseconds(250)
  // The time for the server to end an abandoned COPY.
  private static let graceOfAbandonment = Duration.seconds(10)

  init(
    parameters: ConnectionParameters, profile: SessionProfile, interruption: Interruption,
    notices: PostgresNoticeHandler?
  ) throws(PostgresError) {
    if interruption.isCancelled { throw PostgresError(.cancelled, "cancelled before connecting") }
    let receiver = NoticeReceiver(
      notices ?? { PostgresNotice.notifyListener($0) }, connection: parameters.applicationName)
    let connected = try unsafe ConnectionAttempt.connect(parameters, notices: receiver, interruption: interruption)
    unsafe pointer = unsafe connected
    canceller = unsafe StatementCanceller(connection: connected)
    (self.notices, self.interruption) = (receiver, interruption)
    self.profile = profile
    interruption.attach(canceller)
  }

  deinit {
    interruption.detach(canceller)
    unsafe PQfinish(pointer)
  }

  func serve(_ next: Interruption) {
    interruption.detach(canceller)
    interruption = next
    next.attach(canceller)
  }

  /// Must precede every statement. A shielded statement cleans up after a cancellation and runs in spite of it.
  func beginStatement(_ sql: String, shielded: Bool = false) throws(PostgresError) {
    if isStreaming { throw PostgresError(.usage, "the connection is busy with a COPY stream", statement: sql) }
    if sql.utf8.contains(0) { throw .nul(in: "an SQL statement") }
    if isGivenUp { throw PostgresError(.connectionLost, "the connection was abandoned", statement: sql) }
    isShielded = shielded
    waits += 1
    silence = 0
    waitLimit = profile.responseTimeout.map(Self.slices)
    if shielded { return }
    canceller.statementBegins()
    if interruption.isCancelled {
      endStatement()
      throw PostgresError(.cancelled, "cancelled before the statement ran", statement: sql)
    }
  }

  func endStatement() {
    if !canceller.statementEnded() { giveUp() }
  }

  func beginStreaming() { isStreaming = true }

  func endStreaming() {
    isStreaming = false
    endStatement()
  }

  // MARK: - Waiting

  /// Waits for the socket, one slice at most. Gives the connection up, and throws, if the server does not react to a
  /// cancellation or was silent too long.
  func exchange(_ sql: String) throws(PostgresError) {
    let isUnsent = unsafe PQflush(pointer) == 1
    var descriptor = pollfd(
      fd: unsafe PQsocket(pointer), events: Int16(POLLIN) | (isUnsent ? Int16(POLLOUT) : 0), revents: 0)
    // Without a socket the connection is lost, which `isBad` detects.
    if descriptor.fd < 0 { return }
    let ready = unsafe poll(&descriptor, 1, Int32(Self.slice / .milliseconds(1)))
    if ready > 0 {
      silence = 0
      if descriptor.revents & ~Int16(POLLOUT) != 0 { _ = unsafe PQconsumeInput(pointer) }
    } else if ready == 0 {
      silence += 1
    }
    if let cancelledAt = interruption.cancelledAt,
      cancelledAt.duration(to: .now) > profile.cancellationGrace + (isShielded ? .seconds(1) : .zero)
    {
      giveUp()
      throw PostgresError(
        .cancelled, "cancelled; the server did not react, so the connection was abandoned", statement: sql)
    }
    if let waitLimit, silence > waitLimit {
      giveUp()
      let seconds = Self.slice * waitLimit / .seconds(1)
      throw PostgresError(
        .connectionLost,
        """
        the server has not answered for \(Int(seconds.rounded(.up))) s; if another session holds a lock, pg_blocking_pids() \
        of this session's pid in pg_stat_activity names it
        """, statement: sql)
    }
  }

  /// Reads available input, or returns false if the connection is lost. libpq reports a failed send only to a reader.
  func hear() -> Bool { unsafe PQconsumeInput(pointer) == 1 && !isBad }

  func flush(_ sql: String) throws(PostgresError) {
    while unsafe PQflush(pointer) == 1 { try exchange(sql) }
  }

  // Without waiting for the server: the next read finds the socket closed.
  private func giveUp() {
    isGivenUp = true
    let socket = unsafe PQsocket(pointer)
    if socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  private static func slices(_ duration: Duration) -> Int { max(1, Int((duration / slice).rounded(.up))) }

  /// Waits for the last result, or throws the first error. The start of a COPY is a result too. `PQexec` would return
  /// the last error, which after a lost connection is libpq's own and not the server's reason.
  func answer(sent: Int32, _ sql: String) throws(PostgresError) -> ServerResult {
    guard sent == 1 else { throw connectionError(sql) }
    var failure: PostgresError?
    var last: ServerResult?
    while let result = try nextResult(sql) {
      if result.isCopy { return result }
      if !result.isSuccess, failure == nil { failure = error(result, sql) }
      last = consume result
    }
    if let failure { throw failure }
    guard let last else { throw connectionError(sql) }
    return last
  }

  /// Sends all statements in one pipeline and returns the last result, or throws the first error. The server skips
  /// statements after a failure (libpq, chapter "Pipeline Mode").
  func receivePipelineResult(_ statements: [PostponedStatement]) throws(PostgresError) -> ServerResult {
    guard let last = statements.last else { throw PostgresError(.usage, "there is nothing to send") }
    guard unsafe PQenterPipelineMode(pointer) == 1 else { throw connectionError(last.sql) }
    var failure: PostgresError?
    for statement in statements where failure == nil {
      if unsafe statement.parameters.send(statement.sql, on: pointer) != 1 { failure = connectionError(statement.sql) }
    }
    if unsafe PQpipelineSync(pointer) != 1, failure == nil { failure = connectionError(last.sql) }
    if let failure { throw failure }
    var answer: ServerResult?
    for statement in statements {
      while let result = try nextResult(statement.sql) {
        if result.isSkipped { continue }
        if !result.isSuccess, failure == nil { failure = error(result, statement.sql) }
        statement.answer?.rows = PostgresRows(result)
        answer = consume result
      }
    }
    while let result = try nextResult(last.sql) { if result.isSynchronized { break } }
    if unsafe PQexitPipelineMode(pointer) != 1, failure == nil { failure = connectionError(last.sql) }
    if let failure { throw failure }
    guard let answer else { throw connectionError(last.sql) }
    return answer
  }

  private func nextResult(_ sql: String) throws(PostgresError) -> ServerResult? {
    // Before version 15 PQisBusy stays 1 on a lost connection.
    while unsafe PQisBusy(pointer) == 1, !isBad { try exchange(sql) }
    return unsafe ServerResult(PQgetResult(pointer))
  }

  // MARK: - COPY

  /// The next message of a COPY TO, which the caller must free. Returns its length, -1 at the end or -2 on failure.
  /// Throws `.connectionLost` if the stream ends within a message, because `PQgetCopyData` would return 0 for ever
  /// (libpq, chapter "Functions Associated with the COPY Command").
  func copyData(into message: inout UnsafeMutablePointer<CChar>?, _ sql: String) throws(PostgresError) -> Int32 {
    while true {
      let received = unsafe PQgetCopyData(pointer, &message, 1)
      if received != 0 { return received }
      if isBad { throw connectionError(sql) }
      try exchange(sql)
    }
  }

  /// Ends the data of a COPY FROM; with a reason, the server discards it.
  func sendCopyEnd(_ sql: String, reason: String? = nil) throws(PostgresError) {
    while true {
      switch unsafe PQputCopyEnd(pointer, reason) {
      case 1: return
      case 0: try exchange(sql)
      default: throw connectionError(sql)
      }
    }
  }

  /// Reads the results after the data of a COPY, and returns the first error.
  func endOfCopy(_ sql: String) -> PostgresError? {
    do throws(PostgresError) {
      _ = try answer(sent: 1, sql)
      return nil
    } catch {
      return error
    }
  }

  /// Ends a COPY in either direction and ignores its result.
  func abandonCopy(_ sql: String) {
    if isGivenUp { return }
    canceller.cancelRunningStatement()
    silence = 0
    waitLimit = Self.slices(Self.graceOfAbandonment)
    try? sendCopyEnd(sql, reason: "abandoned by the client")
    var message: UnsafeMutablePointer<CChar>?
    while let received = try? unsafe copyData(into: &message, sql), received > 0 { unsafe PQfreemem(message) }
    _ = endOfCopy(sql)
  }

  // MARK: - Errors

  // The message is copied before another call overwrites it.
  func connectionError(_ sql: String) -> PostgresError {
    let message = unsafe trimmed(String(cString: PQerrorMessage(pointer)))
    return PostgresError(isFoundLost() ? .connectionLost : .unexpectedData, message, statement: sql)
  }

  private func error(_ result: borrowing ServerResult, _ sql: String) -> PostgresError {
    let isServerError = unsafe errorField(result.pointer, NA_DIAG_SQLSTATE) != nil
    var error = PostgresError(
      result, isConnectionLost: isServerError ? isBad : isFoundLost(), wasInterrupted: interruption.isCancelled,
      statement: sql)
    error.isOfReader = profile.isReader
    // A standby refuses to begin with another SQLSTATE than a server that refuses to write.
    if sql == TransactionMode.readWriteBeginning, error.sqlState == SQLState.featureNotSupported {
      error.sqlState = SQLState.readOnlyTransaction
    }
    return error
  }

  // libpq reports a failed send before it marks the connection as lost; a read makes it detect the loss.
  private func isFoundLost() -> Bool {
    if !isBad { _ = unsafe PQconsumeInput(pointer) }
    return isBad
  }

  private var isBad: Bool { unsafe isGivenUp || PQstatus(pointer) == CONNECTION_BAD }
}
