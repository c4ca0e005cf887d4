import CLibPQ

/// A connection pooler that hands every transaction to another session of the server (PgBouncer in transaction mode) takes
/// away what a night stands on: its locks, its snapshots and its settings, which other programs would get instead.
extension BlockingConnection {
  /// Throws `.misconfigured` behind such a pooler.
  ///
  /// A pooler is found out because the process it says it is (libpq was told an invented one) is not the process that
  /// answers. In session mode a session keeps its process to itself. In transaction mode the process goes back to the pool
  /// when a statement has ended: then either somebody else gets it, or the next statement gets another one.
  func refuseTransactionPooler(_ parameters: ConnectionParameters) throws(PostgresError) {
    let process = try outlastingTimeouts { () throws(PostgresError) in try servingProcess() }
    if process == backendProcessId { return }
    guard try isShared(process, parameters) else { return }
    throw PostgresError(
      .misconfigured,
      """
      a connection pooler gives each transaction another session, which loses locks and settings; connect to \
      PostgreSQL directly, or to a pool with pool_mode = session
      """)
  }

  /// Whether another connection gets the process that has just served this one, or this one another process now.
  private func isShared(_ process: Int32, _ parameters: ConnectionParameters) throws(PostgresError) -> Bool {
    var profile = SessionProfile.store
    profile.silenceLimit = .seconds(5)
    // In session mode a pool can be used up by ourselves; then there is nobody to compare with.
    guard
      let other = try? BlockingConnection(
        handle: ConnectionHandle(
          parameters: parameters, profile: profile, interruption: handle.interruption, notices: { _ in }))
    else { return false }
    do {
      try other.executeScript("BEGIN READ ONLY")
      if try other.servingProcess() == process { return true }
    } catch {
      // Silence says that the pool is used up. An answer says that the pool allows no transaction at all.
      return error.sqlState != nil
    }
    return try servingProcess() != process
  }

  private func servingProcess() throws(PostgresError) -> Int32 {
    try execute("SELECT pg_catalog.pg_backend_pid()").single().int32(0)
  }
}
