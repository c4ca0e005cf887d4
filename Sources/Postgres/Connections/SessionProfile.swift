/// The settings of a connection, so that results do not depend on the server's configuration. Names resolve in
/// `pg_catalog` alone, because a function in another schema of the search path would run with this program's rights.
/// Texts and dates have one format, and no timeout of the server's configuration ends a night.
public struct SessionProfile: Hashable, Sendable {
  /// Read only. Fails with 42501 if row-level security would hide rows.
  public var isReader = false
  /// The limit of silence while a statement runs; nil: none. A server that sorts or builds an index is silent too.
  public var responseTimeout: Duration? = .seconds(1_800)
  /// The time after which the server ends a session that waits in a transaction, with its locks; nil: for ever.
  public var idleInTransactionTimeout: Duration?
  /// The time to end a statement after a cancellation; a rollback gets a second more. The program must end within five
  /// seconds.
  public var cancellationGrace: Duration = .seconds(3)

  /// For the schema `night_audit`.
  public static let store = SessionProfile()
  /// For the shop's relations, which are only read.
  public static let salesReader = SessionProfile(isReader: true)
  /// For `BlockingConnection.migration`, which may take any time once it has its locks.
  public static let migration = SessionProfile(responseTimeout: nil)

  func script(serverVersion: Int, isEncoded: Bool) -> String {
    // The parameter is a 32-bit integer; 0 is no limit.
    let idleMilliseconds = Int(min((idleInTransactionTimeout ?? .zero) / .milliseconds(1), Double(Int32.max)))
    var settings = [
      // First, because it quotes the names in the search path, too.
      ("quote_all_identifiers", "off"), ("search_path", "pg_catalog, pg_temp"), ("DateStyle", "'ISO, YMD'"),
      ("IntervalStyle", "'postgres'"),
      ("TimeZone", "'UTC'"), ("bytea_output", "'hex'"), ("extra_float_digits", "1"),
      ("standard_conforming_strings", "on"), ("array_nulls", "on"), ("transform_null_equals", "off"),
      ("default_transaction_isolation", "'read committed'"), ("default_transaction_deferrable", "off"),
      ("client_min_messages", "'notice'"), ("lock_timeout", "0"),
      ("idle_in_transaction_session_timeout", "\(idleMilliseconds)"),
      // The server then detects that the client is gone, and releases its locks.
      ("tcp_keepalives_idle", "30"), ("tcp_keepalives_interval", "10"), ("tcp_keepalives_count", "6"),
      // A server without an encoding refuses to convert invalid UTF-8. It is read unchanged and checked here.
      ("client_encoding", isEncoded ? "'UTF8'" : "'SQL_ASCII'"),
    ]
    if serverVersion >= 140_000 { settings.append(("idle_session_timeout", "0")) }
    if serverVersion >= 170_000 { settings.append(("transaction_timeout", "0")) }
    if isReader { settings += [("row_security", "off"), ("default_transaction_read_only", "on")] }
    return settings.map { "SET \($0) TO \($1)" }.joined(separator: "; ")
  }
}
