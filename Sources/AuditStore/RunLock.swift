import Postgres
import Run

/// One run at a time in a database: an advisory lock that lives with its session.
///
/// It does not survive a connection pooler in transaction mode; the connection must go directly to Postgres.
package enum RunLock {
  /// Somebody else holds the lock. Exit status 75.
  package struct Held: EndsRun, CustomStringConvertible {
    package var exitStatus: ExitStatus { .locked }
    package var description: String {
      "another night-audit run holds this database's lock; wait for it, or look at pg_stat_activity for night-audit"
    }
  }

  /// The server takes a moment to notice that a run was killed.
  private static let tries = 10

  /// Takes the lock for as long as the session lives, or throws `Held` when another run holds it.
  package static func acquire(_ session: PostgresSession) async throws {
    for attempt in 1...tries {
      let got = try await session.execute("SELECT pg_try_advisory_lock(\(Migrator.lockKey.0), 3)").single().bool(0)
      if got { return }
      if attempt < tries { try await Task.sleep(for: .milliseconds(200)) }
    }
    throw Held()
  }
}
