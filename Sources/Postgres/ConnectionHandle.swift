import CLibPQ
import Glibc

/// A statement with its values, ready to be sent.
struct PostponedStatement {
  var sql: String
  var parameters: ParameterList
  /// Where its rows go; nil when nobody wants them.
  var answer: PostponedRows?
}

/// The owner of one `PGconn` and of everything that must live exactly as long.
///
/// A class, so that a stream that is being read keeps the connection alive under it. It is confined to one thread at a
/// time; only its canceller is shared. libpq is used in its non-blocking mode, so that every wait has an end.
@safe
final class ConnectionHandle {
  let pointer: OpaquePointer
  let canceller: StatementCanceller
  private let notices: NoticeReceiver
  /// Whoever the connection works for now.
  private(set) var interruption: Interruption
  /// While a COPY stream is open the connection can do nothing else.
  private(set) var isStreaming = false
  /// The server did not answer in time. It may do so later, when nobody knows what was asked.
  private(set) var isGivenUp = false
  /// How long the running statement may be silent, in slices.
  private var patience: Int?
  /// Slices of waiting without a byte in either direction.
  private var silence = 0
  /// Whether the running statement cleans up after a cancellation.
  private var isShielded = false
  private let silenceLimit: Duration?
  /// How often an answer was waited for.
  private(set) var waits = 0
  /// Statements that wait to be sent with the next one; nil where each is sent at once.
  var postponed: [PostponedStatement]?

  /// How often a wait looks up.
  private static let slice = Duration.milliseconds(250)
  /// How long the server has, after a cancellation, to end the statement, and then to roll back. Together with what else
  /// ends a program they leave it below five seconds.
  private static let graceOfStatements = Duration.seconds(3)
  private static let graceOfRollbacks = Duration.seconds(4)
  /// How long the server has to end a COPY that nobody wants.
  private static let graceOfAbandonment = Duration.seconds(10)

  init(
    parameters: ConnectionParameters, profile: SessionProfile, interruption: Interruption,
    notices: PostgresNoticeHandler?
  ) throws(PostgresError) {
    if interruption.isCancelled { throw PostgresError(.cancelled, "cancelled before connecting") }
    let receiver = NoticeReceiver(
      notices ?? { PostgresNotice.tellListener($0) }, connection: parameters.applicationName)
    let connected = try unsafe ConnectionAttempt.connect(parameters, notices: receiver, interruption: interruption)
    unsafe pointer = unsafe connected
    canceller = unsafe StatementCanceller(connection: connected)
    self.notices = receiver
    self.interruption = interruption
    silenceLimit = profile.silenceLimit
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
    if isGivenUp { throw PostgresError(.connectionLost, "the connection was given up", statement: sql) }
    isShielded = shielded
    waits += 1
    silence = 0
    patience = silenceLimit.map(Self.slices)
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

  /// The connection is busy until `endStreaming`.
  func beginStreaming() { isStreaming = true }

  func endStreaming() {
    isStreaming = false
    endStatement()
  }

  // MARK: - Waiting

  /// Waits until the server has sent something or accepted something, for one slice at most.
  ///
  /// Throws when there is no more hope: `.cancelled` when the server does not react to a cancellation, `.connectionLost`
  /// when it has been silent for too long. The connection is given up then.
  func exchange(_ sql: String) throws(PostgresError) {
    let isUnsent = unsafe PQflush(pointer) == 1
    var descriptor = pollfd(
      fd: unsafe PQsocket(pointer), events: Int16(POLLIN) | (isUnsent ? Int16(POLLOUT) : 0), revents: 0)
    // Without a socket the connection is lost, which `isBad` says.
    if descriptor.fd < 0 { return }
    let ready = unsafe poll(&descriptor, 1, Int32(Self.slice / .milliseconds(1)))
    if ready > 0 {
      silence = 0
      if descriptor.revents & ~Int16(POLLOUT) != 0 { _ = unsafe PQconsumeInput(pointer) }
    } else if ready == 0 {
      silence += 1
    }
    if let cancelledAt = interruption.cancelledAt,
      cancelledAt.duration(to: .now) > (isShielded ? Self.graceOfRollbacks : Self.graceOfStatements)
    {
      giveUp()
      throw PostgresError(
        .cancelled, "cancelled; the server did not react to that, so the connection was given up", statement: sql)
    }
    if let patience, silence > patience {
      giveUp()
      let seconds = Self.slice * patience / .seconds(1)
      throw PostgresError(
        .connectionLost, "the server has said nothing for \(Int(seconds.rounded(.up))) s", statement: sql)
    }
  }

  /// Takes in what the server has said, without waiting; false when the connection is lost.
  ///
  /// Whoever only writes finds nothing out: libpq drops what it cannot send, and leaves it to a reader to notice.
  func hear() -> Bool { unsafe PQconsumeInput(pointer) == 1 && !isBad }

  /// Waits until everything that libpq holds back has been sent.
  func flush(_ sql: String) throws(PostgresError) {
    while unsafe PQflush(pointer) == 1 { try exchange(sql) }
  }

  /// What ends the connection in spite of a server that says nothing: the next reading finds the socket closed.
  private func giveUp() {
    isGivenUp = true
    let socket = unsafe PQsocket(pointer)
    if socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  private static func slices(_ duration: Duration) -> Int { max(1, Int((duration / slice).rounded(.up))) }

  /// Waits for the answer to a statement that was sent: its last result, or the first failure as an error. A COPY that
  /// has begun is an answer.
  ///
  /// `PQexec` and its kin would return the last failure, which for a lost connection is libpq's remark that it is lost
  /// and not the server's reason.
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

  /// Sends what was postponed and one statement more together, and waits for the answers once.
  ///
  /// The server runs them one after the other and none behind one that failed (libpq, chapter "Pipeline Mode").
  /// - Returns: the answer to the last one. Throws the first failure.
  func answerTogether(_ statements: [PostponedStatement]) throws(PostgresError) -> ServerResult {
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
        // What comes behind a failure was not run.
        if result.isSkipped { continue }
        if !result.isSuccess, failure == nil { failure = error(result, statement.sql) }
        statement.answer?.rows = PostgresRows(result)
        answer = consume result
      }
    }
    // The end of it all.
    while let result = try nextResult(last.sql) { if result.isSynchronized { break } }
    if unsafe PQexitPipelineMode(pointer) != 1, failure == nil { failure = connectionError(last.sql) }
    if let failure { throw failure }
    guard let answer else { throw connectionError(last.sql) }
    return answer
  }

  private func nextResult(_ sql: String) throws(PostgresError) -> ServerResult? {
    // Before version 15 libpq stays busy with a connection that it knows to be lost.
    while unsafe PQisBusy(pointer) == 1, !isBad { try exchange(sql) }
    return unsafe ServerResult(PQgetResult(pointer))
  }

  // MARK: - COPY

  /// The next message of a COPY out of a table, which is the caller's to free, and its length in bytes; as
  /// `PQgetCopyData` answers, -1 at the end and -2 for a failure.
  ///
  /// Throws `.connectionLost` when the stream stops in the middle of a message: `PQgetCopyData` would answer "not yet"
  /// for ever then (libpq, chapter "Functions Associated with the COPY Command").
  func copyData(into message: inout UnsafeMutablePointer<CChar>?, _ sql: String) throws(PostgresError) -> Int32 {
    while true {
      let received = unsafe PQgetCopyData(pointer, &message, 1)
      if received != 0 { return received }
      if isBad { throw connectionError(sql) }
      try exchange(sql)
    }
  }

  /// Says that the data of a COPY into a table ends, with `reason` when it must not count.
  func putCopyEnd(_ sql: String, reason: String? = nil) throws(PostgresError) {
    while true {
      switch unsafe PQputCopyEnd(pointer, reason) {
      case 1: return
      case 0: try exchange(sql)
      default: throw connectionError(sql)
      }
    }
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
    if isGivenUp { return }
    canceller.cancelRunningStatement()
    silence = 0
    patience = Self.slices(Self.graceOfAbandonment)
    try? putCopyEnd(sql, reason: "abandoned by the client")
    var message: UnsafeMutablePointer<CChar>?
    while let received = try? unsafe copyData(into: &message, sql), received > 0 { unsafe PQfreemem(message) }
    _ = endOfCopy(sql)
  }

  // MARK: - Errors

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

  private var isBad: Bool { unsafe isGivenUp || PQstatus(pointer) == CONNECTION_BAD }
}
