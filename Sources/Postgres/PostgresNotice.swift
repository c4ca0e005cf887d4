import CLibPQ

/// A notice or warning that the server sent beside its answers.
package struct PostgresNotice: Hashable, Sendable {
  /// `WARNING`, `NOTICE`, `INFO`, `LOG` or `DEBUG`, never translated.
  package let severity: String
  /// Five characters, PostgreSQL documentation, appendix A.
  package let sqlState: String
  /// The primary message.
  package let message: String
}

/// Receives a connection's notices on the thread that uses the connection.
package typealias PostgresNoticeHandler = @Sendable (PostgresNotice) -> Void

/// What libpq's C callback gets as its context. The connection keeps it alive.
final class NoticeReceiver: Sendable {
  let handler: PostgresNoticeHandler

  init(_ handler: @escaping PostgresNoticeHandler) { self.handler = handler }

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
            message: unsafe errorField(result, NA_DIAG_MESSAGE) ?? String(cString: PQresultErrorMessage(result))))
      }, context)
  }
}
