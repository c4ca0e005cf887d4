import CLibPQ
import Synchronization

/// A notice or warning that the server sent beside its answers.
public struct PostgresNotice: Hashable, Sendable {
  /// `WARNING`, `NOTICE`, `INFO`, `LOG` or `DEBUG`, never translated.
  public let severity: String
  /// Five characters, PostgreSQL documentation, appendix A.
  public let sqlState: String
  /// The primary message.
  public let message: String
  /// What the connection is for, as `pg_stat_activity` shows it.
  public let connection: String

  private static let listener = Mutex<PostgresNoticeHandler?>(nil)

  /// From now on `handler` gets the notices of all new connections that have no handler of their own. Called once, by a
  /// program that keeps a log.
  public static func listen(_ handler: @escaping PostgresNoticeHandler) { listener.withLock { $0 = handler } }

  /// Passes a notice to whoever listens.
  static func tellListener(_ notice: PostgresNotice) {
    let handler = listener.withLock { $0 }
    handler?(notice)
  }
}

/// Receives a connection's notices on the thread that uses the connection.
public typealias PostgresNoticeHandler = @Sendable (PostgresNotice) -> Void

/// What libpq's C callback gets as its context. The connection keeps it alive.
final class NoticeReceiver: Sendable {
  let handler: PostgresNoticeHandler
  let connection: String

  /// - Parameter connection: what the connection is for.
  init(_ handler: @escaping PostgresNoticeHandler, connection: String) {
    self.handler = handler
    self.connection = connection
  }

  /// Takes the place of libpq's own receiver, which writes to the standard error stream.
  func install(on connection: OpaquePointer) {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    _ = unsafe PQsetNoticeReceiver(
      connection,
      { context, result in
        guard let context = unsafe context, let result = unsafe result else { return }
        let receiver = unsafe Unmanaged<NoticeReceiver>.fromOpaque(context).takeUnretainedValue()
        receiver.handler(
          PostgresNotice(
            severity: unsafe errorField(result, NA_DIAG_SEVERITY) ?? "NOTICE",
            sqlState: unsafe errorField(result, NA_DIAG_SQLSTATE) ?? "00000",
            message: unsafe errorField(result, NA_DIAG_MESSAGE) ?? String(cString: PQresultErrorMessage(result)),
            connection: receiver.connection))
      }, context)
  }
}
