import AuditStore
import Postgres

/// Somebody who asks: a number, and a session that holds the advisory lock of that number for as long as it lives.
///
/// What a worker has taken of the queue is its own while the lock is held. A session ends with its process, however that
/// ends, and with it the lock: no clock decides, and the next worker takes over at once.
package struct Worker: Sendable {
  /// The class of the workers' locks: one more than that of the program's other locks.
  static let lockClass = Migrator.lockKey.0 + 1

  package let number: Int64

  /// Who takes nothing: a number that no worker gets.
  static let nobody = Worker(number: 0)

  /// Takes the next number.
  package static func next(_ session: PostgresSession) async throws(PostgresError) -> Worker {
    Worker(number: try await session.execute("SELECT nextval('night_audit.worker_numbers')").single().int64(0))
  }

  package init(number: Int64) { self.number = number }

  /// Makes the session the worker's, if it is not. A session that was lost may hold the lock for a moment longer.
  package func hold(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute(
      "SELECT pg_advisory_lock(\(Self.lockClass), $1::int) WHERE NOT EXISTS (SELECT \(Self.held))", [.int(number)])
  }

  /// Ends the worker, or lets it rest: it asks no more. What it had taken is anybody's.
  func retire(_ connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_unlock(\(Self.lockClass), $1::int) \(Self.held)", [.int(number)])
  }

  /// The locks of workers, aliased `l`.
  private static let locks = """
    FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = \(lockClass) AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
    """
  /// The lock of the worker `$1` that the session holds.
  private static let held = "\(locks) AND l.objid = $1::int::oid AND l.pid = pg_backend_pid()"

  /// The numbers of all workers that live, as a query.
  static let living = "SELECT l.objid::bigint \(locks)"

  /// The sessions of all workers that live, as the server knows them.
  static let sessions = "SELECT l.pid \(locks) ORDER BY 1"

  /// Whether any other worker lives, with `$1` the number of this one.
  static let othersLive = "EXISTS (SELECT FROM (\(living)) AS other (number) WHERE other.number <> $1::int)"
}
