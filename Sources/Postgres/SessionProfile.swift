/// What a connection is set to before its first statement, whatever the role, the database or the server's file says.
///
/// The result of a statement must not depend on who configured the server. So names resolve in `pg_catalog` alone (a
/// function that somebody else created in a schema of the search path would run with our rights), texts and dates have
/// one form, and no timeout ends a night in the middle. Names of other schemas are always written out.
public struct SessionProfile: Hashable, Sendable {
  /// Only reads, and fails (42501) instead of silently reading less where row-level security would hide rows.
  public var isReader = false
  /// After this long without a byte from the server, while a statement runs, the connection counts as lost. nil waits
  /// for ever. A server that sorts or builds an index is silent, too.
  public var silenceLimit: Duration? = .seconds(1_800)

  /// For the schema that is ours.
  public static let store = SessionProfile()
  /// For the shop's relations, which are only ever read.
  public static let salesReader = SessionProfile(isReader: true)
  /// For `BlockingConnection.migration`: once it has its locks it may take its time.
  public static let migration = SessionProfile(silenceLimit: nil)

  /// The statements that make a session so.
  ///
  /// - Parameters:
  ///   - serverVersion: as libpq counts it: 150020 is 15.20.
  ///   - isEncoded: whether the server knows what its texts are encoded in, which one in `SQL_ASCII` does not.
  func script(serverVersion: Int, isEncoded: Bool) -> String {
    var settings = [
      ("search_path", "pg_catalog, pg_temp"), ("DateStyle", "'ISO, YMD'"), ("IntervalStyle", "'postgres'"),
      ("TimeZone", "'UTC'"), ("bytea_output", "'hex'"), ("extra_float_digits", "1"),
      ("standard_conforming_strings", "on"), ("array_nulls", "on"), ("transform_null_equals", "off"),
      ("default_transaction_isolation", "'read committed'"), ("default_transaction_deferrable", "off"),
      ("client_min_messages", "'notice'"), ("idle_in_transaction_session_timeout", "0"),
      ("lock_timeout", "0"),
      // How soon the server notices that we are gone, and ends what we held.
      ("tcp_keepalives_idle", "30"), ("tcp_keepalives_interval", "10"), ("tcp_keepalives_count", "6"),
      // A server without an encoding refuses to send a text that is not UTF-8. It is read as it is and judged by us.
      ("client_encoding", isEncoded ? "'UTF8'" : "'SQL_ASCII'"),
    ]
    if serverVersion >= 140_000 { settings.append(("idle_session_timeout", "0")) }
    if serverVersion >= 170_000 { settings.append(("transaction_timeout", "0")) }
    if isReader { settings += [("row_security", "off"), ("default_transaction_read_only", "on")] }
    return settings.map { "SET \($0) TO \($1)" }.joined(separator: "; ")
  }
}
