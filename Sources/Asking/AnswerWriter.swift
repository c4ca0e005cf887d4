import AppStore
import AuditStore
import Postgres
import Reconciliation

/// Stores answers as they come: evidence, the fold of it, and when to ask again, in one transaction a batch.
///
/// While one batch is being written the next one gathers, so an answer waits for one commit at most.
package struct AnswerWriter: Sendable {
  private let session: PostgresSession
  private let asOf: Instant
  private let runId: String

  package init(session: PostgresSession, asOf: Instant, runId: String) {
    self.session = session
    self.asOf = asOf
    self.runId = runId
  }

  /// Stores a batch: all of it or nothing.
  package func write(_ results: [CheckResult]) async throws {
    if results.isEmpty { return }
    try await session.transaction { connection in
      // Folding reads what others may be adding: one writer at a time.
      try connection.execute("SELECT pg_advisory_xact_lock(\(Migrator.lockKey.0), 2)")
      try store(results, on: connection)
    }
  }

  private func store(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws {
    var facts: [(subject: CheckSubject?, fact: TransactionFact)] = []
    var links: [TransactionLink] = []
    for result in results {
      for fact in result.facts.map(\.storable) {
        facts.append((result.subject, fact))
        let key = TransactionKey(environment: fact.environment, transactionId: Identifier(fact.transactionId))
        links.append(TransactionLink(subject: result.subject, key: key))
      }
    }
    try EvidenceTable.append(facts, runId: runId, asOf: asOf, on: connection)
    let records = try EvidenceTable.fold(Set(links.map(\.key)), on: connection)
    try TransactionTable.upsert(records, checkedAt: asOf, on: connection)
    try TransactionLink.write(links, on: connection)
    try noteFacts(results.filter { $0.outcome == .pending }, on: connection)
    let answered = results.filter { $0.outcome != .pending }
    try recordAnswers(answered, on: connection)
    try updateChecks(answered, on: connection)
  }

  private func recordAnswers(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws {
    if results.isEmpty { return }
    try connection.execute(
      """
      INSERT INTO night_audit.answers
        (run_id, as_of, subject_kind, subject_id, channel, outcome, reason, environment, apple_status, facts)
      SELECT $1::uuid, $2, * FROM unnest(
        $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int[])
      """,
      [
        .text(runId), .timestamp(asOf.microseconds), .textArray(results.map(\.subject.kind.rawValue)),
        .textArray(results.map(\.subject.id.text)), .textArray(results.map(\.channel.rawValue)),
        .textArray(results.map(\.outcome.rawValue)), .textArray(results.map { $0.reason?.rawValue }),
        .textArray(results.map { $0.environment?.rawValue }), .intArray(results.map { $0.appleStatus.map(Int64.init) }),
        .intArray(results.map { Int64($0.facts.count) }),
      ])
  }

  /// What came before the answer is complete leaves the check as due as it was, and its lease where it is.
  private func noteFacts(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws {
    if results.isEmpty { return }
    try connection.execute(
      """
      UPDATE night_audit.receipt_checks c SET
        payload_kind = coalesce(told.payload_kind, c.payload_kind), environment = coalesce(told.environment, c.environment),
        channel = coalesce(c.channel, told.channel), bundle_id = coalesce(told.bundle_id, c.bundle_id),
        signed_transaction_id = coalesce(told.signed_transaction_id, c.signed_transaction_id),
        brought_count = greatest(c.brought_count, told.brought_count)
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[])
        AS told (subject_kind, subject_id, payload_kind, channel, environment, bundle_id, signed_transaction_id, brought_count)
      WHERE c.subject_kind = told.subject_kind AND c.subject_id = told.subject_id
      """,
      [
        .textArray(results.map(\.subject.kind.rawValue)), .textArray(results.map(\.subject.id.text)),
        .textArray(results.map { $0.kind?.rawValue }), .textArray(results.map(\.channel.rawValue)),
        .textArray(results.map { $0.environment?.rawValue }), .textArray(results.map { $0.bundleId?.storable }),
        .textArray(results.map { $0.signedTransactionId?.storable }),
        .intArray(results.map { Int64($0.broughtCount) }),
      ])
  }

  /// The schedule counts failures in a row. What was answered stays answered while Apple is silent.
  private func updateChecks(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws {
    if results.isEmpty { return }
    let waits = (1...4).map { RetrySchedule.span(afterAttempt: $0).microseconds / 1_000_000 }
    try connection.execute(
      """
      UPDATE night_audit.receipt_checks c SET
        attempts = now.attempts, last_attempt = $1,
        next_attempt = CASE told.next WHEN 'schedule' THEN $1 + make_interval(secs => ($2::bigint[])[least(4, now.attempts)])
          WHEN 'night' THEN $1 + make_interval(secs => ($2::bigint[])[4]) END,
        outcome = CASE WHEN now.is_kept THEN c.outcome ELSE told.outcome END,
        reason = CASE WHEN now.is_kept THEN c.reason ELSE told.reason END,
        payload_kind = coalesce(told.payload_kind, c.payload_kind), channel = told.channel,
        environment = coalesce(told.environment, c.environment), bundle_id = coalesce(told.bundle_id, c.bundle_id),
        apple_status = told.apple_status,
        answered_at = CASE WHEN told.outcome = 'unanswered' THEN c.answered_at ELSE coalesce(told.answered_at, $1) END,
        signed_transaction_id = coalesce(told.signed_transaction_id, c.signed_transaction_id),
        brought_count = greatest(c.brought_count, told.brought_count), leased_by = NULL, leased_until = NULL
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::int[],
        $12::text[], $13::int[], $14::text[], $15::timestamptz[]) AS told (subject_kind, subject_id, payload_kind, outcome,
        reason, channel, environment, bundle_id, apple_status, signed_transaction_id, brought_count, next, answered_at)
      JOIN night_audit.receipt_checks before USING (subject_kind, subject_id)
      CROSS JOIN LATERAL (
        SELECT
          CASE WHEN before.outcome IN ('verified', 'rejected', 'review', 'not_found') AND before.next_attempt IS NULL THEN 1
            ELSE before.attempts + 1 END AS attempts,
          told.outcome = 'unanswered' AND before.outcome IN ('verified', 'review', 'not_found') AS is_kept) AS now
      WHERE c.subject_kind = told.subject_kind AND c.subject_id = told.subject_id
      """,
      [
        .timestamp(asOf.microseconds), .intArray(waits), .textArray(results.map(\.subject.kind.rawValue)),
        .textArray(results.map(\.subject.id.text)), .textArray(results.map { $0.kind?.rawValue }),
        .textArray(results.map(\.outcome.rawValue)), .textArray(results.map { $0.reason?.rawValue }),
        .textArray(results.map(\.channel.rawValue)), .textArray(results.map { $0.environment?.rawValue }),
        .textArray(results.map { $0.bundleId?.storable }), .intArray(results.map { $0.appleStatus.map(Int64.init) }),
        .textArray(results.map { $0.signedTransactionId?.storable }), .intArray(results.map { Int64($0.broughtCount) }),
        .textArray(results.map(\.next.rawValue)), .timestampArray(results.map { $0.answeredAt?.microseconds }),
      ])
  }
}

/// That a proof brought a transaction.
struct TransactionLink: Sendable {
  var subject: CheckSubject
  var key: TransactionKey

  /// Records which transactions each proof brought.
  static func write(_ links: [TransactionLink], on connection: borrowing BlockingConnection) throws(PostgresError) {
    if links.isEmpty { return }
    try connection.execute(
      """
      INSERT INTO night_audit.receipt_transactions (subject_kind, subject_id, environment, transaction_id)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
      ON CONFLICT (subject_kind, subject_id, transaction_id, environment) DO NOTHING
      """,
      [
        .textArray(links.map(\.subject.kind.rawValue)), .textArray(links.map(\.subject.id.text)),
        .textArray(links.map(\.key.environment.rawValue)), .textArray(links.map(\.key.transactionId.text)),
      ])
  }
}

extension TransactionFact {
  /// The same fact without what no table can hold: NUL characters, and dates outside of the calendar that people use.
  var storable: TransactionFact {
    var fact = self
    fact.transactionId = transactionId.storable
    fact.productId = productId.storable
    fact.originalTransactionId = originalTransactionId?.storable
    fact.webOrderLineItemId = webOrderLineItemId?.storable
    fact.bundleId = bundleId?.storable
    fact.currency = currency?.storable
    fact.purchaseDate = purchaseDate?.storable
    fact.originalPurchaseDate = originalPurchaseDate?.storable
    fact.expiresDate = expiresDate?.storable
    fact.gracePeriodExpiresDate = gracePeriodExpiresDate?.storable
    fact.signedDate = signedDate.storable ?? Instant(microseconds: 0)
    if case .says(.some(let token)) = appAccountToken { fact.appAccountToken = .says(token.storable) }
    if case .says(.some(var told)) = revocation {
      // A revocation with an impossible date is a revocation all the same.
      told.date = told.date.storable ?? fact.signedDate
      told.type = told.type?.storable
      fact.revocation = .says(told)
    }
    return fact
  }
}

extension Instant {
  /// Years 1 to 9999.
  fileprivate var storable: Instant? {
    seconds >= -62_135_596_800 && seconds < 253_402_300_800 ? self : nil
  }
}

extension String {
  fileprivate var storable: String { utf8.contains(0) ? replacing("\0", with: "\u{FFFD}") : self }
}
