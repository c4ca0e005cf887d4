import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import Settings
import Synchronization

/// Reads notifications of apps, or purchase histories of customers, and stores every page with its progress. One value
/// reads one of them once.
package struct FeedStage: Sendable {
  let apps: [SweptApp]
  let asOf: Instant
  let settings: Settings
  let gate: AskingGate
  let session: OpenSession
  let runId: String
  let logger: Logger
  let stop: StopSignal
  let progress: WorkProgress
  let deadline: ContinuousClock.Instant
  /// How long a missing page is requested while Apple answers other requests, at most a sixth of the time left. In an
  /// outage, only the deadline ends the requests.
  let waitLimit: Duration
  /// The time for pages under way to be stored after a signal.
  private let drainPeriod: Duration
  let now: @Sendable () -> Instant
  let shared = Shared()

  final class Shared: Sendable {
    struct Values {
      var summary = SweepSummary()
      var warned: Set<String> = []
      var answered: Set<String> = []
      /// Types with missing pages, by app.
      var failing: [String: Set<SweptType>] = [:]
      /// Apps with a page on which no notification verifies, with the remedy.
      var unverifiable: [String: String] = [:]
    }
    let values = Mutex(Values())
  }

  package init(
    apps: [SweptApp], asOf: Instant, settings: Settings, gate: AskingGate, session: OpenSession, runId: String,
    logger: Logger, stop: StopSignal, progress: WorkProgress, deadline: ContinuousClock.Instant,
    waitLimit: Duration = .seconds(600), drainPeriod: Duration = .milliseconds(2_500),
    now: @escaping @Sendable () -> Instant = { .now }
  ) {
    (self.apps, self.asOf, self.settings, self.gate, self.session) = (apps, asOf, settings, gate, session)
    (self.runId, self.logger, self.stop, self.progress) = (runId, logger, stop, progress)
    (self.deadline, self.drainPeriod) = (deadline, drainPeriod)
    self.waitLimit = min(waitLimit, max((deadline - .now) / 6, .zero))
    self.now = now
  }

  // MARK: - Time

  /// Reads all apps in parallel, and cancels the requests some time after the deadline or a signal. Returns false if it
  /// cancelled them: what was under way has recorded nothing then.
  func forEachApp(_ read: @escaping @Sendable (SweptApp) async throws -> Void) async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await withThrowingTaskGroup(of: Void.self) { reading in
          for app in apps { reading.addTask { try await read(app) } }
          try await reading.waitForAll()
        }
        return true
      }
      group.addTask {
        // A reading that begins after the deadline has this time too, to find and record what remains unread.
        try await Task.sleep(until: max(deadline, .now) + .seconds(10), clock: .continuous)
        return false
      }
      group.addTask {
        try await stop.wait()
        // Lets pages under way be stored. Afterwards they are requests that Apple does not answer.
        try await Task.sleep(for: drainPeriod)
        return false
      }
      let isWhole = try await group.next() ?? true
      group.cancelAll()
      return isWhole
    }
  }

  func isOver(for app: SweptApp) -> Bool {
    stop.stopped != nil || ContinuousClock.now >= deadline || Task.isCancelled || gate.faults[app.name] != nil
  }

  /// Sleeps until `end`, in short steps. The requests of the app must end within a moment of a signal, the deadline, or
  /// a fault that another page has met, which is no event.
  func pause(until end: ContinuousClock.Instant, for app: SweptApp) async {
    while !isOver(for: app), .now < end { try? await Task.sleep(for: min(end - .now, .milliseconds(250))) }
  }

  func note(_ trail: ServerAPITrail, of app: SweptApp) {
    let news = shared.values.withLock { values -> [String] in
      values.summary.note(trail)
      return trail.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app.name)"]) }
  }

  // MARK: - Facts without a proof of ours

  /// Stores a page and its progress in one transaction. `kind` and `id` are those of the answer, without which facts do
  /// not count and cursors do not hold. `readUntil` is how far the feed is read from now on; nil if that does not change.
  func store(
    _ facts: [TransactionFact], of kind: String, _ id: String, readUntil: Instant?,
    moving move: @Sendable (borrowing BlockingConnection) throws -> Void
  ) async throws {
    let count: Int = try await session.run { session, _ in
      try await session.pipelinedTransaction { connection in
        try EvidenceTable.lock(on: connection)
        let unknown = try EvidenceTable.unknown(among: facts.map(\.storable), on: connection)
        try EvidenceTable.append(unknown.map { (subject: nil, fact: $0) }, runId: runId, asOf: asOf, on: connection)
        // The fold reads facts that an answer covers alone.
        try move(connection)
        try connection.postpone(
          """
          INSERT INTO night_audit.answers
            (run_id, as_of, subject_kind, subject_id, channel, outcome, environment, facts, read_until,
              evidence_through, progress)
          VALUES ($1::uuid, $2, $3, $4, '\(EvidenceChannel.notification.rawValue)', 'verified', \
            '\(SweepTable.environment.rawValue)', $5::int, $6,
            CASE WHEN $5::int > 0 THEN \(EvidenceTable.newest) END, night_audit.progress_digest($3, $4))
          """,
          [
            .text(runId), .timestamp(asOf.microseconds), .text(kind), .text(id), .int(Int64(unknown.count)),
            .timestamp(readUntil?.microseconds),
          ])
        let records = try EvidenceTable.fold(unknown, on: connection)
        try TransactionTable.upsert(records, checkedAt: asOf, on: connection)
        return unknown.count
      }
    }
    shared.values.withLock { $0.summary.facts += count }
  }

  /// Stores notifications that do not verify, each once. Returns true if this run is the first to move past one.
  func keep(
    _ unverifiable: [NotificationAnswer.UnverifiableNotification], of bundleId: String, _ type: SweptType,
    isMarkedSkipped: Bool
  ) async throws -> Bool {
    if unverifiable.isEmpty { return false }
    return try await session.run { session, _ in
      try await session.transaction { connection in
        let new = try connection.execute(
          """
          INSERT INTO night_audit.disbelieved_notifications AS known
            (bundle_id, notification_type, digest, as_of, reason, payload, passed_over_at)
          SELECT DISTINCT ON (\(SQLDigest.of("payload"))) $1, $2, \(SQLDigest.of("payload")), $3, reason, payload,
            CASE WHEN $6 THEN \(PublishedReport.noted("$3::timestamptz")) END
          FROM unnest($4::text[], $5::text[]) AS came (reason, payload)
          ON CONFLICT (bundle_id, notification_type, digest) DO UPDATE SET passed_over_at = excluded.passed_over_at
          WHERE coalesce(known.passed_over_at, excluded.passed_over_at) = excluded.passed_over_at
          """,
          [
            .text(bundleId), .text(type.rawValue), .timestamp(asOf.microseconds),
            .textArray(unverifiable.map(\.reason.storable)), .textArray(unverifiable.map(\.jws.storable)),
            .bool(isMarkedSkipped),
          ]
        ).affectedRows
        if new > 0 {
          try InterNightState.note("sweep", "\(bundleId)/\(type.rawValue)", runId: runId, asOf: asOf, on: connection)
        }
        return isMarkedSkipped && new > 0
      }
    }
  }
}

extension EvidenceTable {
  /// The facts that are not stored yet. Windows overlap and notifications repeat, but Apple makes only one statement
  /// about a transaction at one instant. So no second record of notifications is needed.
  fileprivate static func unknown(
    among facts: [TransactionFact], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [TransactionFact] {
    if facts.isEmpty { return [] }
    let rows = try connection.execute(
      """
      SELECT DISTINCT ON (transaction_id, environment, channel, signed_at) position
      FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) WITH ORDINALITY
        AS swept (transaction_id, environment, channel, signed_at, position)
      WHERE NOT EXISTS (
        SELECT 1 FROM night_audit.evidence e
        WHERE e.transaction_id = swept.transaction_id AND e.environment = swept.environment
          AND e.channel = swept.channel AND e.signed_at = swept.signed_at)
      """,
      [
        .textArray(facts.map(\.transactionId)), .textArray(facts.map(\.environment.rawValue)),
        .textArray(facts.map(\.channel.rawValue)), .timestampArray(facts.map(\.signedDate.microseconds)),
      ])
    return try rows.map { row throws(PostgresError) in facts[Int(try row.int64(0)) - 1] }
  }
}
