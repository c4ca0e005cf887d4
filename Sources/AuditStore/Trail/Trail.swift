import Postgres
import Reconciliation

/// The trail: a chain of entries, each of which covers the one before it, the rows that were appended since, and a run as
/// it was left. Entries are only written by functions of the schema, in the transaction of what they tell of.
package enum Trail {
  /// What an entry is about.
  package enum Kind: String, Sendable, Codable {
    /// The trail begins with what there is, and each run of before it.
    case start, found
    /// A run began; Apple's answers to it are stored; it is committed; its report appeared, or never did; it is held;
    /// it ended without a report; it was forgotten.
    case began, asked, completed, published, notPublished = "not_published", held, ended, forgotten
    /// A month was let go, all of it having been covered before.
    case beforeRelease = "before_release", released
    /// Report folders had their time.
    case removed
    /// The report folders of runs that only another database knows were taken over.
    case adopted
  }

  /// Whoever writes to `finding_events` or `run_events` shares it; whoever covers them holds it alone.
  private static let peopleLock = "\(Migrator.lockKey.0), 5"
  /// Whoever decides about findings holds it alone.
  private static let decisionLock = "\(Migrator.lockKey.0), 7"

  /// Waits for people who are recording something, and makes others wait until the transaction ends.
  package static func holdPeople(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_xact_lock(\(peopleLock))")
  }

  /// Waits for a night that is being recorded, and for others who are deciding, and makes both wait until the transaction
  /// ends. What a decision is made by is read after it.
  package static func announcePeople(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_xact_lock_shared(\(peopleLock))")
    try connection.execute("SELECT pg_advisory_xact_lock(\(decisionLock))")
  }

  /// The hash of the newest entry.
  static func newestHash(on connection: borrowing BlockingConnection) throws(PostgresError) -> String {
    try connection.execute("SELECT hash FROM night_audit.trail ORDER BY entry_id DESC LIMIT 1").single().text(0)
  }

  /// Covers what Apple has said in a run, while others may go on asking.
  package static func appendAnswers(
    run: String, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.execute("SELECT night_audit.cover_answers($1::uuid)", [.text(run)])
  }

  /// Records that the report folders of runs of another database belong to this one from now on.
  static func appendAdopted(_ runs: [String], on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute(
      "SELECT night_audit.record_adopted($1::text[]::uuid[])", [.textArray(runs.map { $0 })])
  }

  /// Tells of report folders that are about to be removed because they have had their time.
  ///
  /// - Parameter folders: their paths below the report directory.
  package static func appendRemoved(_ folders: [String], _ session: PostgresSession) async throws {
    if folders.isEmpty { return }
    try await session.execute(
      "SELECT night_audit.record_removed($1::text[])", [.textArray(folders.sorted().map { $0 })])
  }
}
