import CLibPQ

// A pooler in transaction mode loses the night's locks, snapshots and settings, and gives them to other programs.
extension BlockingConnection {
  /// Throws `.misconfigured` behind a transaction pooler. A pooler is detected because it invents a process ID. In
  /// session mode a session keeps its server process. In transaction mode the process returns to the pool after a
  /// statement: another connection gets it, or the next statement gets another one.
  func refuseTransactionPooler(_ parameters: ConnectionParameters) throws(PostgresError) {
    let process = try retryingTimeouts { () throws(PostgresError) in try servingProcess() }
    if process == backendProcessId { return }
    guard try isShared(process, parameters) else { return }
    throw PostgresError(
      .misconfigured,
      """
      a connection pooler gives each transaction another session, which loses locks and settings; connect to \
      PostgreSQL directly, or to a pool with pool_mode = session
      """)
  }

  private func isShared(_ process: Int32, _ parameters: ConnectionParameters) throws(PostgresError) -> Bool {
    var profile = SessionProfile.store
    profile.responseTimeout = .seconds(5)
    // In session mode our own connections may use up the pool; then no comparison is possible.
    guard
      let other = try? BlockingConnection(
        handle: ConnectionHandle(
          parameters: parameters, profile: profile, interruption: handle.interruption, notices: { _ in }))
    else { return false }
    do {
      try other.executeScript("BEGIN READ ONLY")
      if try other.servingProcess() == process { return true }
    } catch {
      // No answer means that the pool is used up; an error means that the pool allows no transaction.
      return error.sqlState != nil
    }
    return try servingProcess() != process
  }

  private func servingProcess() throws(PostgresError) -> Int32 {
    try execute("SELECT pg_catalog.pg_backend_pid()").single().int32(0)
  }
}
