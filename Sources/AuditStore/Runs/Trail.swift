import Postgres
import Reconciliation

/// The hash chain of entries. Each covers the previous entry, the rows appended since, and the state of a run. Only
/// functions of the schema write entries, in the transaction that they record.
package enum Trail {
  package enum Kind: String, Sendable, Codable {
    /// The first entry, and one for each run from before it.
    case start, found
    /// Begun, answers stored, committed, published or never, held, ended without report, undone.
    case began, asked, completed, published, notPublished = "not_published", held, ended, forgotten
    /// A month is about to be released, and was released.
    case beforeRelease = "before_release", released
    /// Report folders were removed after their retention.
    case removed
    /// Report folders of another database's runs were taken over.
    case adopted
    /// Apple's sales and finance reports were compared.
    case tiedOut = "tied_out"
  }

  /// Shared by writers of `finding_events` and `run_events`; exclusive for the entry that covers them.
  private static let peopleLock = "\(Migrator.lockKey.0), 5"
  /// Exclusive for a decision about findings.
  private static let decisionLock = "\(Migrator.lockKey.0), 7"

  /// Waits for people who are recording, and makes others wait until the transaction ends.
  package static func lockDecisions(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_xact_lock(\(peopleLock))")
  }

  /// Waits for a recording night and for other decisions, and blocks both until the transaction ends. Rows that a
  /// decision rests on must be read afterwards.
  package static func lockForDecision(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT pg_advisory_xact_lock_shared(\(peopleLock))")
    try connection.execute("SELECT pg_advisory_xact_lock(\(decisionLock))")
  }

  /// Covers Apple's answers of a run; other workers may go on asking.
  package static func appendAnswers(run: String, on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT night_audit.cover_answers($1::uuid)", [.text(run)])
  }

  /// Covers the results of tie-outs, in the transaction that wrote some of them.
  package static func appendTieOuts(on connection: borrowing BlockingConnection) throws(PostgresError) {
    try connection.execute("SELECT night_audit.cover_tie_outs()")
  }

  /// Records report folders that are about to be removed, and returns them. Folders within the retention that the owner
  /// of the schema recorded are left out. Paths are below the report directory.
  package static func appendRemoved(_ folders: [String], _ session: PostgresSession) async throws -> Set<String> {
    if folders.isEmpty { return [] }
    let recorded = try await session.execute(
      "SELECT night_audit.record_removed($1::text[])", [.textArray(folders.sorted().map { $0 })]
    ).single().textArray(0)
    return Set(recorded.compactMap { $0 })
  }
}
