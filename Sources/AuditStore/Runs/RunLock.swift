import Postgres
import Reconciliation
import Reporting
import Run

/// An advisory lock that allows one run at a time in a database. It lives as long as its session. It does not work
/// through a connection pooler in transaction mode; the connection must go directly to Postgres.
package struct RunLock: Sendable {
  package struct Locked: RunEndingError, CustomStringConvertible {
    package var exitStatus: ExitStatus { .locked }
    /// The run that has taken the lock.
    package var owner: String

    package var description: String {
      "another night-audit run has taken this database's lock: \(owner); wait until it ends, or check pg_stat_activity"
    }
  }

  /// The session with the lock has ended, and with it the right to publish. Exit status 69.
  package struct Lost: RunEndingError, CustomStringConvertible {
    package var exitStatus: ExitStatus { .databaseUnreachable }
    package var description: String {
      "the database has ended the session that had taken the run's lock, another run may have started, and nothing was "
        + "published; look at the server's log for the reason, and run again"
    }
  }

  /// The server process that has taken the lock, and its start, because process IDs are reused.
  private let backend: Int32
  private let backendStart: Int64

  private static let tries = 10

  /// Takes the lock until the session ends. Throws `Locked`.
  package static func acquire(_ session: PostgresSession) async throws -> RunLock {
    for attempt in 1...tries {
      let got = try await session.execute("SELECT pg_try_advisory_lock(\(Migrator.lockKey.0), 3)").single().bool(0)
      if got {
        let row = try await session.execute(
          "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).single()
        return RunLock(backend: try row.int32(0), backendStart: try row.timestamp(1))
      }
      // Waits because the server takes a moment to notice that a run was killed.
      if attempt < tries { try await Task.sleep(for: .milliseconds(200)) }
    }
    throw Locked(owner: try await owner(session) ?? "it has just ended")
  }

  private static let lockRow = """
    l.locktype = 'advisory' AND l.granted AND l.classid = \(Migrator.lockKey.0) AND l.objid = 3 AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    """

  package static func owner(_ session: PostgresSession) async throws -> String? {
    let rows = try await session.execute(
      """
      SELECT l.pid, a.backend_start, host(a.client_addr), r.host, r.process_id, r.started_at
      FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
      LEFT JOIN LATERAL (
        SELECT host, process_id, started_at FROM night_audit.runs
        WHERE finished_at IS NULL AND (a.backend_start IS NULL OR started_at >= a.backend_start)
        ORDER BY started_at DESC LIMIT 1) r ON true
      WHERE \(lockRow)
      """)
    guard let row = rows.first else { return nil }
    let server = "server process \(try row.int32(0))"
    let start = try row.optionalTimestamp(5) ?? row.optionalTimestamp(1)
    let since = start.map { ", since \(Instant(microseconds: $0).text)" } ?? ""
    if let host = try row.optionalText(3) {
      let process = try row.optionalInt32(4).map { ", process \($0)" } ?? ""
      return "host \(host)\(process)\(since) (\(server))"
    }
    let address = try row.optionalText(2).map { "a client at \($0)" } ?? "a client on the server's own machine"
    return "\(address)\(since) (\(server))"
  }

  /// Checks the lock from any session of the database. Throws `Lost`.
  package func requireStillTaken(on connection: borrowing BlockingConnection) throws {
    let isLocked = try connection.execute(
      """
      SELECT EXISTS (
        SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE \(RunLock.lockRow) AND l.pid = $1::int AND a.backend_start = $2)
      """, [.int(Int64(backend)), .timestamp(backendStart)]
    ).single().bool(0)
    if !isLocked { throw Lost() }
  }
}
