import AppStore
import AuditStore
import Postgres
import Reconciliation

/// Stores facts that come with no proof of ours, together with the progress of the reading.
package struct SweptFacts: Sendable {
  private let session: OpenSession
  private let asOf: Instant
  private let runId: String

  package init(session: OpenSession, asOf: Instant, runId: String) {
    self.session = session
    self.asOf = asOf
    self.runId = runId
  }

  /// A type of notification of an app, or the history of a customer, as in `night_audit.answers`.
  package struct Reading: Sendable {
    var kind: String
    var id: String
    /// The instant up to which it is read from now on; nil if that does not change.
    var readUntil: Instant?

    static func sweep(of bundleId: String, _ cursor: SweepCursor, after stored: SweepCursor) -> Reading {
      Reading(
        kind: "sweep", id: "\(bundleId)/\(cursor.type.rawValue)",
        readUntil: cursor.sweptUntil == stored.sweptUntil ? nil : cursor.sweptUntil)
    }

    static func history(of customer: CustomerHistories.Customer, readUntil: Instant?) -> Reading {
      Reading(kind: "history", id: "\(customer.bundleId)/\(customer.transactionId)", readUntil: readUntil)
    }
  }

  /// Stores a page and its cursor in one transaction. Returns the number of new facts.
  @discardableResult
  package func store(
    _ facts: [TransactionFact], of reading: Reading,
    moving move: @Sendable (borrowing BlockingConnection) throws -> Void
  ) async throws -> Int {
    let (asOf, runId) = (asOf, runId)
    return try await session.run { session, _ in
      try await session.pipelinedTransaction { connection in
        // One writer at a time, because folding reads rows that other writers may be adding.
        try connection.postpone("SELECT pg_advisory_xact_lock(\(Migrator.lockKey.0), 2)")
        let unknown = try EvidenceTable.unknown(among: facts.map(\.storable), on: connection)
        try EvidenceTable.append(unknown.map { (subject: nil, fact: $0) }, runId: runId, asOf: asOf, on: connection)
        // The fold reads facts that an answer covers alone.
        try move(connection)
        try record(reading, facts: unknown.count, on: connection)
        let records = try EvidenceTable.fold(unknown, on: connection)
        try TransactionTable.upsert(records, checkedAt: asOf, on: connection)
        return unknown.count
      }
    }
  }

  /// Records the answer and the progress after it. Only with it do facts count and cursors hold.
  private func record(
    _ reading: Reading, facts: Int, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.postpone(
      """
      INSERT INTO night_audit.answers
        (run_id, as_of, subject_kind, subject_id, channel, outcome, environment, facts, read_until, evidence_through,
          progress)
      VALUES ($1::uuid, $2, $3, $4, '\(EvidenceChannel.notification.rawValue)', 'verified', \
        '\(SweepTable.environment.rawValue)', $5::int, $6,
        CASE WHEN $5::int > 0 THEN \(EvidenceTable.newest) END, night_audit.progress_digest($3, $4))
      """,
      [
        .text(runId), .timestamp(asOf.microseconds), .text(reading.kind), .text(reading.id), .int(Int64(facts)),
        .timestamp(reading.readUntil?.microseconds),
      ])
  }

  /// Stores notifications that do not verify, each once. Returns true if this run is the first to move past one.
  func keep(
    _ unverifiable: [NotificationAnswer.UnverifiableNotification], of bundleId: String, _ type: SweptType,
    isMarkedSkipped: Bool
  ) async throws -> Bool {
    if unverifiable.isEmpty { return false }
    let (asOf, runId) = (asOf, runId)
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
  package static func unknown(
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
    var unknown: [TransactionFact] = []
    for row in rows { unknown.append(facts[Int(try row.int64(0)) - 1]) }
    return unknown
  }
}
