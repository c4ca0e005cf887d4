import CLibPQ
import Synchronization

public struct PostgresNotice: Hashable, Sendable {
  /// `WARNING`, `NOTICE`, `INFO`, `LOG` or `DEBUG`, never translated.
  public let severity: String
  public let sqlState: String
  public let message: String
  public let connection: String

  private static let listener = Mutex<PostgresNoticeHandler?>(nil)

  /// Sets the handler of all new connections without one of their own. A program that keeps a log calls it once.
  public static func listen(_ handler: @escaping PostgresNoticeHandler) { listener.withLock { $0 = handler } }

  static func notifyListener(_ notice: PostgresNotice) {
    let handler = listener.withLock { $0 }
    handler?(notice)
  }
}

/// Receives a connection's notices on the thread that uses the connection.
public typealias PostgresNoticeHandler = @Sendable (PostgresNotice) -> Void

/// The context of libpq's C callback. The connection keeps it alive.
final class NoticeReceiver: Sendable {
  let handler: PostgresNoticeHandler
  let connection: String

  init(_ handler: @escaping PostgresNoticeHandler, connection: String) {
    (self.handler, self.connection) = (handler, connection)
  }

  /// Replaces libpq's own receiver, which writes to standard error.
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

// Copied at once, because the text is freed with the result.
func errorField(_ result: OpaquePointer, _ code: Int32) -> String? {
  unsafe PQresultErrorField(result, code).map { unsafe String(cString: $0) }
}
