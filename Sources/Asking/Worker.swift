import AuditStore
import Postgres
import Reconciliation

/// A process that asks: a number, a session that holds the advisory lock of that number, and a lease.
///
/// The checks that a worker has taken are its own until its session ends, or until it has not renewed its lease in time. A
/// session ends with its process, and with it the lock: the next worker takes over at once. A process that was stopped, or
/// whose host sleeps, keeps its session; its lease runs out by the server's clock.
package struct Worker: Sendable {
  /// The class of the workers' locks: one more than that of the program's other locks.
  static let lockClass = Migrator.lockKey.0 + 1

  package let number: Int64
  /// How long what it has taken is its own without a renewal.
  let lease: Span

  /// A worker that takes nothing: its number is no other worker's.
  static let nobody = Worker(number: 0, lease: .seconds(0))

  /// Takes the next number.
  ///
  /// - Parameter timeout: of a request to Apple. The lease is twice as long.
  package static func next(_ session: PostgresSession, timeout: Span) async throws(PostgresError) -> Worker {
    // Rows that killed workers have left.
    try await session.execute(
      "DELETE FROM night_audit.workers WHERE leased_until < clock_timestamp() - interval '1 day'")
    let number = try await session.execute("SELECT nextval('night_audit.worker_numbers')").single().int64(0)
    return Worker(number: number, lease: Span(microseconds: timeout.microseconds * 2))
  }

  package init(number: Int64, lease: Span) {
    self.number = number
    self.lease = lease
  }

  /// Makes the session the worker's, if it is not. A session that was lost may hold the lock for a moment longer.
  package func hold(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      "SELECT pg_advisory_lock(\(Self.lockClass), $1::int) WHERE NOT EXISTS (SELECT \(Self.held))", [.int(number)])
    try await renew(session)
  }

  /// Renews the lease from now on.
  func renew(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      """
      INSERT INTO night_audit.workers (number, leased_until)
      VALUES ($1, clock_timestamp() + $2 * interval '1 microsecond')
      ON CONFLICT (number) DO UPDATE SET leased_until = excluded.leased_until
      """, [.int(number), .int(lease.microseconds)])
  }

  /// Ends the worker, or lets it rest: it asks no more. What it had taken is anybody's.
  func retire(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_unlock(\(Self.lockClass), $1::int) \(Self.held)", [.int(number)])
    try connection.execute("DELETE FROM night_audit.workers WHERE number = $1", [.int(number)])
  }

  /// The locks of workers, aliased `l`.
  private static let locks = """
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = \(lockClass) AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
    """
  /// The lock of the worker `$1` that the session holds.
  private static let held = "\(locks) AND l.objid = $1::int::oid AND l.pid = pg_backend_pid()"

  /// The numbers of all workers that live, as a query: a session holds their lock, and their lease has not run out.
  static let living = """
    SELECT l.objid::bigint \(locks) AND EXISTS (
      SELECT FROM night_audit.workers w WHERE w.number = l.objid::bigint AND w.leased_until > clock_timestamp())
    """

  /// The sessions of all workers that live, as the server knows them.
  static let sessions = "SELECT l.pid \(locks) ORDER BY 1"

  /// Whether any other worker lives, with `$1` the number of this one.
  static let othersLive = "EXISTS (SELECT FROM (\(living)) AS other (number) WHERE other.number <> $1::int)"
}
