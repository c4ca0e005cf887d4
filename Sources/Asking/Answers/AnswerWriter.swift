import AppStore
import AuditStore
import Postgres
import Reconciliation
import Run
import Settings

/// Stores answers with their evidence, transactions and due dates, one transaction for each batch.
package struct AnswerWriter: Sendable {
  private let session: OpenSession
  private let asOf: Instant
  private let runId: String
  private let settings: Settings
  /// The newest answer before this round of questions, in which each check is asked about once.
  private var newest: Int64 = 0

  package init(session: OpenSession, asOf: Instant, runId: String, settings: Settings) {
    (self.session, self.asOf, self.runId, self.settings) = (session, asOf, runId, settings)
  }

  func startingNewRound() async throws -> AnswerWriter {
    var writer = self
    writer.newest = try await session.run { session, _ in
      try await session.execute("SELECT coalesce(max(answer_id), 0) FROM night_audit.answers").single().int64(0)
    }
    return writer
  }

  private var table: CheckTable { CheckTable(policy: settings.duenessPolicy) }
  private var needs: PendingLookups { PendingLookups(table: table, bundleIds: settings.serverAPIApps, asOf: asOf) }

  /// Stores a batch. If Postgres rejects a value, only the answer with that value is parked for a review.
  package func write(_ results: [CheckResult]) async throws {
    if results.isEmpty { return }
    do {
      try await session.run { session, mayBeStored in
        try await session.pipelinedTransaction { connection in
          try EvidenceTable.lock(on: connection)
          // If the connection was lost at the commit, the batch may be stored already.
          if mayBeStored, try isStored(results, on: connection) { return }
          try store(results, on: connection)
        }
      }
    } catch {
      guard Failure(error).remedy == .park else { throw error }
      guard results.count > 1 else { return try await park(results[0], because: error) }
      let middle = results.count / 2
      try await write(Array(results[..<middle]))
      try await write(Array(results[middle...]))
    }
  }

  private func park(_ result: CheckResult, because error: any Error) async throws {
    // A parked answer has no values left to reject, so the error has another cause.
    if result.facts.isEmpty, result.outcome == .review || result.outcome == .pending { throw error }
    try await write([result.parked])
  }

  private func isStored(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws -> Bool {
    guard let answered = results.first(where: { $0.outcome != .pending }) else { return false }
    return try connection.execute(
      """
      SELECT EXISTS (SELECT 1 FROM night_audit.answers
        WHERE subject_kind = $1 AND subject_id = $2 AND run_id = $3::uuid AND answer_id > $4 AND outcome <> 'pending')
      """, [.text(answered.subject.kind.rawValue), .text(answered.subject.id.text), .text(runId), .int(newest)]
    ).single().bool(0)
  }

  private func store(_ results: [CheckResult], on connection: borrowing BlockingConnection) throws {
    var facts: [(subject: CheckSubject?, fact: TransactionFact)] = []
    for result in results {
      for fact in result.facts.map(\.storable) { facts.append((result.subject, fact)) }
      for fact in result.furtherFacts.map(\.storable) { facts.append((nil, fact)) }
    }
    let answered = results.filter { $0.outcome != .pending }
    let candidates = answered.compactMap(candidate)
    try EvidenceTable.append(facts, runId: runId, asOf: asOf, on: connection)
    let lacking = try receiptsLackingPurchases(answered, on: connection)
    let judged = answered.map { result in
      var (row, count) = row(after: result)
      if lacking.contains(result.subject) { row.history.criticalSince = asOf + RetrySchedule.nightly }
      return (row: row, count: count)
    }
    // A fact counts only with its answer, so parts of answers are recorded too.
    let parts = results.filter { $0.outcome == .pending && !($0.facts.isEmpty && $0.furtherFacts.isEmpty) }
    try recordAnswers(
      parts.map { ($0, nil) } + zip(answered, judged).map { ($0, $1.count) }, on: connection)
    let doubtful = try needs.doubtful(candidates, on: connection)
    let records = try EvidenceTable.fold(facts.map(\.fact), on: connection)
    try TransactionTable.upsert(records, checkedAt: asOf, unasked: facts.map(\.fact).unasked, on: connection)
    try link(facts, on: connection)
    try noteFacts(results.filter { $0.outcome == .pending }, areAnswers: false, on: connection)
    if answered.isEmpty { return }
    try noteFacts(answered, areAnswers: true, on: connection)
    try table.save(judged.map(\.row), on: connection)
    try needs.decide(PendingLookups.open(candidates, doubtful), on: connection)
  }

  /// The receipts whose answer lacks purchases of the answer before. It may belong to another receipt, from a cache for
  /// instance, or a client refreshed the receipt after a consumable was finished. A second answer tells which.
  private func receiptsLackingPurchases(
    _ results: [CheckResult], on connection: borrowing BlockingConnection
  ) throws -> Set<CheckSubject> {
    let doubtful = results.filter { result in
      let row = result.check.row
      return result.channel == .verifyReceipt && result.outcome == .verified && row.history.outcome == .verified
        && result.check.hasAnsweredPayload && Set(result.facts.map(\.transactionId)).count < row.containedCount
    }
    if doubtful.isEmpty { return [] }
    let rows = try connection.execute(
      """
      SELECT DISTINCT before.id, e.transaction_id FROM unnest($1::text[], $2::timestamptz[]) AS before (id, answered_at)
      JOIN night_audit.receipt_transactions t ON t.subject_kind = 'receipt' AND t.subject_id = before.id
      JOIN night_audit.evidence e ON e.transaction_id = t.transaction_id AND e.environment = t.environment
        AND e.subject_kind = 'receipt' AND e.subject_id = before.id AND e.as_of = before.answered_at
        AND e.channel = 'verifyReceipt'
      """,
      [
        .textArray(doubtful.map(\.subject.id.text)),
        .timestampArray(doubtful.map { $0.check.row.history.answeredAt?.microseconds }),
      ])
    let answered = Dictionary(doubtful.map { ($0.subject, Set($0.facts.map(\.transactionId))) }) { first, _ in first }
    var lacking: Set<CheckSubject> = []
    for row in rows {
      let subject = CheckSubject(kind: .receipt, id: Identifier(try row.text(0)))
      if !(answered[subject]?.contains(try row.text(1)) ?? true) { lacking.insert(subject) }
    }
    return lacking
  }

  /// The state of a check after an answer. A new refusal is undecided until the night's share of its kind is known.
  private func row(after result: CheckResult) -> (CheckRow, AnswerCount) {
    var row = result.check.row
    // An undecided refusal of another app counts in no run of this app, so the answer is a first one again.
    if row.isPending, let asked = result.app, asked != row.app { row.storedRefusal = nil }
    let earlier = EarlierAnswer(row, hasAnsweredPayload: result.check.hasAnsweredPayload)
    row.app = result.app ?? row.app
    let isOffline = result.channel == .offline
    // A missing answer leaves the pending refusal undecided, and does not answer for a new payload.
    if result.outcome == .unanswered {
      row.fingerprint = row.fingerprint ?? result.check.shop.fingerprint
      row.history.note(result.outcome, reason: result.reason, isOffline: isOffline, asOf: asOf)
      return (row, AnswerCount(isFirst: false))
    }
    row.fingerprint = result.check.shop.fingerprint ?? row.fingerprint
    let refusal = result.refusal(bundleIds: settings.apps.map(\.bundleId))
    let count = earlier.count(result.outcome, refusal: refusal, denial: result.denial, asOf: asOf)
    if let refusal, let since = count.pendingSince {
      row.storedRefusal = CheckRow.StoredRefusal(refusal: refusal, outcome: result.outcome, reason: result.reason)
      row.history.note(.review, reason: .systemic, isOffline: isOffline, asOf: asOf)
      row.history.outcomeSince = since
      return (row, count)
    }
    row.history.note(
      result.outcome, reason: result.reason, isOffline: isOffline, appleDate: result.answeredAt, asOf: asOf)
    if let refusal {
      row.storedRefusal = .decided(refusal)
    } else if result.outcome != .review {
      row.storedRefusal = nil
    } else if case .pendingRefusal(_, let since) = earlier {
      // A review does not decide a pending refusal, and neither does a missing answer.
      row.history.outcomeSince = since
    }
    return (row, count)
  }

  private func candidate(_ result: CheckResult) -> PendingLookups.Candidate? {
    // The content of a signed list is known, whether or not Apple has answered about each of its transactions.
    guard result.subject.kind == .receipt, result.outcome != .unanswered || result.containedCount > 0,
      let orderId = result.check.shop.orderId,
      let named = result.check.shop.statedTransactionId, !named.isEmpty,
      let bundleId = result.check.shop.bundleId ?? (settings.apps.count == 1 ? settings.apps[0].bundleId : nil)
    else { return nil }
    let history = result.check.row.history
    let refusal = result.refusal(bundleIds: settings.apps.map(\.bundleId))
    let isProven =
      result.outcome == .verified && (refusal == nil || refusal == .productMismatch)
      && result.facts.contains { $0.transactionId == named }
    return PendingLookups.Candidate(
      orderId: orderId, bundleId: bundleId, transactionId: named,
      dated: result.check.shop.orderCreatedAt ?? history.dated, isUrgent: history.isUrgent,
      provenBy: isProven ? result.subject.id : nil)
  }

  private func recordAnswers(
    _ answers: [(result: CheckResult, count: AnswerCount?)], on connection: borrowing BlockingConnection
  ) throws {
    if answers.isEmpty { return }
    let results = answers.map(\.result)
    try connection.postpone(
      """
      INSERT INTO night_audit.answers
        (run_id, as_of, subject_kind, subject_id, channel, outcome, reason, environment, apple_status, facts,
          counted_as, evidence_through)
      SELECT $1::uuid, $2, *, \(EvidenceTable.newest) FROM unnest(
        $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int[], $11::text[])
      """,
      [
        .text(runId), .timestamp(asOf.microseconds), .textArray(results.map(\.subject.kind.rawValue)),
        .textArray(results.map(\.subject.id.text)), .textArray(results.map(\.channel.rawValue)),
        .textArray(results.map(\.outcome.rawValue)), .textArray(results.map { $0.reason?.rawValue }),
        .textArray(results.map { $0.environment?.rawValue }),
        .intArray(results.map { $0.appleStatus.flatMap(Int32.init(exactly:)).map(Int64.init) }),
        .intArray(results.map { Int64($0.facts.count) }),
        .textArray(answers.map { $0.count.flatMap { $0.isFirst ? $0.refusal?.rawValue ?? "" : nil } }),
      ])
  }

  /// Stores the facts of answers. Partial or late answers change neither the due date nor the lease.
  private func noteFacts(
    _ results: [CheckResult], areAnswers: Bool, on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    if results.isEmpty { return }
    let isNewest =
      "$10 AND (c.last_attempt IS NULL OR c.last_attempt = noted.attempt_when_read OR c.last_attempt < $12)"
    try connection.postpone(
      """
      UPDATE night_audit.receipt_checks c SET
        payload_kind = coalesce(noted.payload_kind, c.payload_kind), environment = coalesce(noted.environment, c.environment),
        channel = CASE WHEN \(isNewest) THEN noted.channel ELSE coalesce(c.channel, noted.channel) END,
        bundle_id = coalesce(noted.bundle_id, c.bundle_id), user_id = coalesce(noted.user_id, c.user_id),
        apple_status = CASE WHEN \(isNewest) THEN noted.apple_status ELSE c.apple_status END,
        signed_transaction_id = CASE WHEN noted.payload_kind <> c.payload_kind THEN noted.signed_transaction_id
          ELSE coalesce(noted.signed_transaction_id, c.signed_transaction_id) END,
        brought_count = greatest(c.brought_count, noted.brought_count),
        is_unproven = CASE WHEN \(isNewest) THEN noted.is_unproven ELSE c.is_unproven END,
        failed_check = CASE WHEN \(isNewest) THEN noted.failed_check ELSE c.failed_check END,
        worker = CASE WHEN \(isNewest) THEN NULL ELSE c.worker END
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::int[],
        $11::timestamptz[], $13::bool[], $14::text[], $15::text[])
        AS noted (subject_kind, subject_id, payload_kind, channel, environment, bundle_id, signed_transaction_id,
          brought_count, apple_status, attempt_when_read, is_unproven, user_id, failed_check)
      WHERE c.subject_kind = noted.subject_kind AND c.subject_id = noted.subject_id
      """,
      [
        .textArray(results.map(\.subject.kind.rawValue)), .textArray(results.map(\.subject.id.text)),
        .textArray(results.map { $0.check.kind?.rawValue }), .textArray(results.map(\.channel.rawValue)),
        .textArray(results.map { $0.environment?.rawValue }), .textArray(results.map { $0.bundleId?.storable }),
        .textArray(results.map { $0.signedTransactionId?.storable }),
        .intArray(results.map { Int64($0.containedCount) }),
        .intArray(results.map { $0.appleStatus.flatMap(Int32.init(exactly:)).map(Int64.init) }),
        .bool(areAnswers), .timestampArray(results.map { $0.check.row.attemptWhenRead?.microseconds }),
        .timestamp(asOf.microseconds), .boolArray(results.map(\.isUnproven)),
        .textArray(results.map { $0.check.shop.userId?.storable }),
        .textArray(results.map { $0.failedCheck?.storable }),
      ])
  }

  /// Records which transactions each proof contains. Facts without a subject are contained in none.
  private func link(
    _ facts: [(subject: CheckSubject?, fact: TransactionFact)], on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let contained = facts.filter { $0.subject != nil }
    if contained.isEmpty { return }
    try connection.postpone(
      """
      INSERT INTO night_audit.receipt_transactions (subject_kind, subject_id, environment, transaction_id)
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
      ON CONFLICT (subject_kind, subject_id, transaction_id, environment) DO NOTHING
      """,
      [
        .textArray(contained.map { $0.subject?.kind.rawValue }), .textArray(contained.map { $0.subject?.id.text }),
        .textArray(contained.map { $0.fact.environment.rawValue }), .textArray(contained.map { $0.fact.transactionId }),
      ])
  }
}

extension TransactionFact {
  /// A copy that tables can hold: without NUL characters, and with dates in the years 1 to 9999.
  var storable: TransactionFact {
    var fact = self
    fact.transactionId = transactionId.storable
    fact.productId = productId.storable
    fact.originalTransactionId = originalTransactionId?.storable
    fact.webOrderLineItemId = webOrderLineItemId?.storable
    fact.bundleId = bundleId?.storable
    fact.currency = currency?.storable
    fact.renewalCurrency = renewalCurrency?.storable
    fact.offerPeriod = offerPeriod?.storable
    fact.purchaseDate = purchaseDate?.storable
    fact.originalPurchaseDate = originalPurchaseDate?.storable
    fact.expiresDate = expiresDate?.storable
    fact.gracePeriodExpiresDate = gracePeriodExpiresDate?.storable
    fact.signedDate = signedDate.storable ?? Instant(microseconds: 0)
    if case .stated(.some(let token)) = appAccountToken { fact.appAccountToken = .stated(token.storable) }
    if case .stated(.some(var stated)) = revocation {
      // A revocation with an impossible date still counts, from the date of the statement.
      stated.date = stated.date.storable ?? fact.signedDate
      stated.type = stated.type?.storable
      fact.revocation = .stated(stated)
    }
    return fact
  }
}

extension Instant {
  fileprivate var storable: Instant? {
    seconds >= -62_135_596_800 && seconds < 253_402_300_800 ? self : nil
  }
}

extension String {
  var storable: String { utf8.contains(0) ? replacing("\0", with: "\u{FFFD}") : self }
}
