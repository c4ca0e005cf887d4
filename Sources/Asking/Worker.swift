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

  /// Takes the next number.
  package static func next(_ session: PostgresSession) async throws(PostgresError) -> Worker {
    Worker(number: try await session.execute("SELECT nextval('night_audit.worker_numbers')").single().int64(0))
  }

  package init(number: Int64) { self.number = number }

  /// Makes the session the worker's. A session that was lost may hold the lock for a moment longer.
  package func hold(_ session: PostgresSession) async throws(PostgresError) {
    try await session.execute("SELECT pg_advisory_lock(\(Self.lockClass), $1::int)", [.int(number)])
  }

  /// The numbers of all workers that live, as a query.
  static let living = """
    SELECT l.objid::bigint FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = \(lockClass) AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
    """
}
