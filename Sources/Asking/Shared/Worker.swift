import AuditStore
import Postgres
import Reconciliation

/// A process that asks: a number, a session that has taken the advisory lock of that number, and a lease. A worker
/// keeps its checks until its session ends or its lease expires. A session ends with its process, so the next worker
/// takes over at once. A stopped process, or one on a sleeping host, keeps its session until the lease expires by the
/// server's clock.
package struct Worker: Sendable {
  /// The class of the workers' locks: one more than that of the program's other locks.
  static let lockClass = Migrator.lockKey.0 + 1

  package let number: Int64
  let lease: Span

  /// A worker that leases nothing. No other worker has its number.
  static let idle = Worker(number: 0, lease: .seconds(0))

  /// Takes the next number. The lease is twice the timeout of a request to Apple.
  package static func next(_ session: PostgresSession, timeout: Span) async throws(PostgresError) -> Worker {
    try await session.execute(
      "DELETE FROM night_audit.workers WHERE leased_until < clock_timestamp() - interval '1 day'")
    let number = try await session.execute("SELECT nextval('night_audit.worker_numbers')").single().int64(0)
    return Worker(number: number, lease: Span(microseconds: timeout.microseconds * 2))
  }

  /// Makes the session the worker's own. A lost session may keep the lock for a moment longer.
  package func own(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      "SELECT pg_advisory_lock(\(Self.lockClass), $1::int) WHERE NOT EXISTS (SELECT \(Self.ownLock))", [.int(number)])
    try await renew(session)
  }

  func renew(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      """
      INSERT INTO night_audit.workers (number, leased_until)
      VALUES ($1, clock_timestamp() + $2 * interval '1 microsecond')
      ON CONFLICT (number) DO UPDATE SET leased_until = excluded.leased_until
      """, [.int(number), .int(lease.microseconds)])
  }

  func retire(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_unlock(\(Self.lockClass), $1::int) \(Self.ownLock)", [.int(number)])
    try connection.execute("DELETE FROM night_audit.workers WHERE number = $1", [.int(number)])
  }

  private static let locks = locks(ofClass: lockClass)

  /// The end of a query over the sessions' advisory locks of a class.
  static func locks(ofClass lockClass: Int64) -> String {
    """
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = \(lockClass) AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
    """
  }

  /// The lock of the worker `$1`, if this session has taken it.
  private static let ownLock = "\(locks) AND l.objid = $1::int::oid AND l.pid = pg_backend_pid()"

  /// A query for the numbers of living workers: a session has taken the lock, and the lease has not expired.
  static let living = """
    SELECT l.objid::bigint \(locks) AND EXISTS (
      SELECT FROM night_audit.workers w WHERE w.number = l.objid::bigint AND w.leased_until > clock_timestamp())
    """

  static let sessions = "SELECT l.pid \(locks) ORDER BY 1"

  /// A condition that another worker than `$1` lives.
  static let otherWorkersLive = "EXISTS (SELECT FROM (\(living)) AS other (number) WHERE other.number <> $1::int)"
}
