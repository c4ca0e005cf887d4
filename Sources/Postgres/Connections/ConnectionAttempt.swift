import CLibPQ
import Dispatch
import Synchronization

/// Connects on a separate thread that can be abandoned, because name resolution and authentication block inside libpq.
final class ConnectionAttempt: Sendable {
  // Unchecked: the connection passes from one thread to another, and exactly one of them uses it at a time.
  @safe
  private struct ConnectionHandover: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  private enum State {
    case pending
    case ended(ConnectionHandover?)
    case abandoned
  }

  private let state = Mutex(State.pending)
  private let ended = DispatchSemaphore(value: 0)
  private let parameters: ConnectionParameters
  private let notices: NoticeReceiver

  // Longer than any sensible connect_timeout; name resolution has no limit of its own.
  private static let limit = Duration.seconds(120)

  private init(_ parameters: ConnectionParameters, _ notices: NoticeReceiver) {
    (self.parameters, self.notices) = (parameters, notices)
  }

  static func connect(
    _ parameters: ConnectionParameters, notices: NoticeReceiver, interruption: Interruption
  ) throws(PostgresError) -> OpaquePointer {
    let attempt = ConnectionAttempt(parameters, notices)
    DispatchQueue(label: "night-audit.postgres.connect").async { attempt.run() }
    let connection = try unsafe attempt.outcome(interruption)
    guard let connection = unsafe connection else { throw PostgresError(.connectionFailed, "out of memory") }
    guard unsafe PQstatus(connection) == CONNECTION_OK, unsafe PQsetnonblocking(connection, 1) == 0 else {
      let refusal = ConnectionRefusal(unsafe trimmed(String(cString: PQerrorMessage(connection))))
      unsafe PQfinish(connection)
      var error = PostgresError(.connectionFailed, parameters.redacted(refusal.message))
      error.sqlState = refusal.sqlState
      throw error
    }
    _ = unsafe PQsetErrorVerbosity(connection, PQERRORS_DEFAULT)
    return unsafe connection
  }

  private func run() {
    let started = unsafe withCStrings(parameters.keywords) { keywords in
      unsafe withCStrings(parameters.values) { values in unsafe PQconnectStartParams(keywords, values, 1) }
    }
    if let started = unsafe started {
      unsafe notices.install(on: started)
      _ = unsafe PQsetErrorVerbosity(started, PQERRORS_VERBOSE)
      // The server can send warnings while a connection is made, and a notice receiver needs a started connection.
      // PQreset then connects as PQconnectdb does: one host after the other, each within connect_timeout.
      if unsafe PQstatus(started) != CONNECTION_BAD { unsafe PQreset(started) }
    }
    let handover = unsafe started.map { unsafe ConnectionHandover(pointer: $0) }
    let isWanted = state.withLock { state in
      if case .abandoned = state { return false }
      state = .ended(handover)
      return true
    }
    if !isWanted, let handover { unsafe PQfinish(handover.pointer) }
    ended.signal()
  }

  private func outcome(_ interruption: Interruption) throws(PostgresError) -> OpaquePointer? {
    let began = ContinuousClock.now
    var refusal: PostgresError?
    while ended.wait(timeout: .now() + .milliseconds(100)) == .timedOut, refusal == nil {
      if interruption.isCancelled { refusal = PostgresError(.cancelled, "cancelled while connecting") }
      if began.duration(to: .now) > Self.limit {
        refusal = PostgresError(.connectionFailed, "no answer for \(Self.limit.components.seconds) seconds")
      }
    }
    let handover = state.withLock { state -> ConnectionHandover? in
      guard case .ended(let handover) = state else {
        state = .abandoned
        return nil
      }
      return handover
    }
    if let handover { return unsafe handover.pointer }
    if let refusal { throw refusal }
    return nil
  }
}
