import AppStore
import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore

/// The queue of things to ask Apple about: `night_audit.receipt_checks`, shared by all workers of a database.
package struct CheckQueue: Sendable {
  private let session: PostgresSession
  private let sales: SalesRows
  private let settings: Settings
  private let asOf: Instant
  private let runId: String
  private let condition: String
  /// A condition on receipts of `receipt_checks` aliased `c`, with `$1` the as-of.
  private let isCritical: String
  private var lookups: LookupQueue
  private let critical: Set<CheckSubject>

  /// - Parameters:
  ///   - runId: who holds the leases.
  ///   - selection: narrows what is asked about.
  ///   - critical: what critical findings rest on; it is due once more when its answer is older than this run.
  package init(
    session: PostgresSession, settings: Settings, asOf: Instant, runId: String, selection: Selection,
    critical: Set<CheckSubject> = []
  ) throws(PostgresError) {
    self.critical = critical
    self.session = session
    self.settings = settings
    self.asOf = asOf
    self.runId = runId
    sales = try SalesRows(schema: settings.salesSchema)
    let onlyBundleId = settings.apps.count == 1 ? settings.apps[0].bundleId : nil
    condition = try selection.receiptCondition(sales, onlyBundleId: onlyBundleId)
    lookups = LookupQueue(
      sales: sales, bundleIds: settings.serverAPIApps, onlyBundleId: onlyBundleId,
      condition: try selection.orderCondition(onlyBundleId: onlyBundleId),
      horizon: asOf - max(settings.lookback, settings.refundWindow))
    isCritical = try CriticalEvidence.condition(on: critical, of: .receipt)
    lookups.isCritical = try CriticalEvidence.condition(on: critical, of: .lookup)
  }

  /// Takes new receipts and look-ups into the queue, and follows receipts that were given to another order.
  ///
  /// - Returns: how many rows were new or moved.
  @discardableResult
  package func enqueue() async throws -> Int {
    let horizon = asOf - max(settings.lookback, settings.refundWindow)
    var count = try await session.execute(
      """
      INSERT INTO night_audit.receipt_checks AS known
        (subject_kind, subject_id, order_id, received_at, reason, next_attempt, is_urgent)
      SELECT 'receipt', r.receipt_id::text, r.order_id::text, r.received_at, 'never_checked', $1,
             r.status::text IS DISTINCT FROM 'verified'
      FROM \(sales.schema).receipts r
      LEFT JOIN night_audit.receipt_checks c ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id::text
      WHERE (c.subject_id IS NULL AND r.received_at >= $2 OR c.order_id IS DISTINCT FROM r.order_id::text AND c.subject_id IS NOT NULL)
        AND r.receipt_id IS NOT NULL AND isfinite(r.received_at)
        AND r.status::text IN ('unverified', 'verified', 'timeout', 'rejected')
      ON CONFLICT (subject_kind, subject_id) DO UPDATE SET order_id = excluded.order_id
      """,
      [.timestamp(asOf.microseconds), .timestamp(horizon.microseconds)]
    ).affectedRows
    count += try await lookups.enqueue(session, asOf: asOf)
    return count
  }

  /// What is due at the as-of, as a condition on `receipt_checks` aliased `c` with `$1` as-of, `$2` and `$3` the instants
  /// before which an answer is stale and a refund unlikely.
  package static let due = """
    (c.outcome IN ('pending', 'unanswered', 'review', 'not_found') AND c.next_attempt <= $1
     OR c.outcome = 'verified' AND c.answered_at <= $2 AND c.received_at > $3
        AND (c.next_attempt IS NULL OR c.next_attempt <= $1))
    """

  /// In which order what is due is asked about: what was never answered, what critical findings rest on, what is stale.
  static func rank(_ isCritical: String) -> String {
    """
    CASE WHEN c.outcome IN ('pending', 'unanswered') THEN 0 WHEN \(isCritical) THEN 1 WHEN c.outcome <> 'verified' THEN 0
      ELSE 2 END
    """
  }

  private var instants: [PostgresValue] {
    [
      .timestamp(asOf.microseconds), .timestamp((asOf - settings.staleAfter).microseconds),
      .timestamp((asOf - settings.refundWindow).microseconds),
    ]
  }

  /// How many are due now.
  package func dueCount() async throws -> Int {
    let rows = try await session.execute(
      """
      SELECT count(*) FROM night_audit.receipt_checks c
      JOIN \(sales.schema).receipts r ON c.subject_kind = 'receipt' AND r.receipt_id::text = c.subject_id
      WHERE (\(CheckQueue.due) AND (\(condition)) OR \(isCritical))
      """, instants)
    return Int(try rows.single().int64(0)) + (try await lookups.dueCount(session, instants: instants))
  }

  /// How many receipts and look-ups the queue does not know yet; every one of them will be due.
  package func unknownCount() async throws -> Int {
    let horizon = asOf - max(settings.lookback, settings.refundWindow)
    let rows = try await session.execute(
      """
      SELECT count(*) FROM \(sales.schema).receipts r
      WHERE r.received_at >= $1 AND r.status::text IN ('unverified', 'verified', 'timeout', 'rejected') AND (\(condition))
        AND NOT EXISTS (
          SELECT 1 FROM night_audit.receipt_checks c WHERE c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id::text)
      """, [.timestamp(horizon.microseconds)])
    return Int(try rows.single().int64(0)) + (try await lookups.unknownCount(session))
  }

  /// What a claim takes.
  package enum Claim: Sendable {
    /// Everything that is due.
    case due
    /// Receipts that are due and have brought nothing yet: what they say by themselves may be unknown.
    case unread
  }

  /// Leases the next batch; empty when nothing is due that nobody else holds.
  ///
  /// First what was never answered, urgent ones ahead; then what critical findings rest on; then what is stale. Payloads
  /// come along: one by one they would be looked up without an index where ids are cast in a view. A lease that outlives
  /// its worker expires.
  package func claim(_ claim: Claim = .due) async throws -> [DueCheck] {
    let lease: [PostgresValue] = [.int(Int64(settings.batchSize)), .text(runId), .int(leaseSeconds)]
    let isUnread = "c.outcome IN ('pending', 'unanswered') AND c.brought_count = 0"
    let rows = try await session.execute(
      """
      WITH due AS (
        SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
        JOIN \(sales.schema).receipts r ON c.subject_kind = 'receipt' AND r.receipt_id::text = c.subject_id
        WHERE (\(CheckQueue.due) AND (\(condition)) OR \(isCritical))
          AND (c.leased_until IS NULL OR c.leased_until < clock_timestamp())
          AND (\(claim == .unread ? isUnread : "TRUE"))
        ORDER BY \(CheckQueue.rank(isCritical)), NOT c.is_urgent, c.next_attempt, c.subject_id
        LIMIT $4 FOR UPDATE OF c SKIP LOCKED)
      UPDATE night_audit.receipt_checks c
      SET leased_by = $5::uuid, leased_until = clock_timestamp() + make_interval(secs => $6::int)
      FROM due
      LEFT JOIN \(sales.schema).receipts r ON due.subject_kind = 'receipt' AND r.receipt_id::text = due.subject_id
      LEFT JOIN \(sales.schema).orders o ON o.order_id::text = r.order_id::text
      WHERE c.subject_kind = due.subject_kind AND c.subject_id = due.subject_id
      RETURNING \(DueCheck.columns), o.bundle_id::text, o.transaction_id::text, r.payload::text
      """, instants + lease)
    let receipts = try rows.map { row in
      let id = Identifier(try row.text(0))
      var due = try DueCheck(
        row, subject: CheckSubject(kind: .receipt, id: id),
        matter: .receipt(payload: try row.optionalText("payload") ?? ""))
      due.bundleId = try row.optionalText("bundle_id")
      due.namedTransactionId = try row.optionalText("transaction_id")
      return due
    }
    return claim == .unread ? receipts : receipts + (try await lookups.claim(session, instants: instants, lease: lease))
  }

  /// What Apple has lately said about transactions, by id: what the sweep of the notifications or another question of
  /// ours has brought since an answer would be stale need not be asked for again.
  package func told(about ids: [String]) async throws -> [String: ToldTransaction] {
    if ids.isEmpty { return [:] }
    let rows = try await session.execute(
      """
      SELECT DISTINCT ON (transaction_id) transaction_id, environment, bundle_id, channel,
        CASE channel WHEN 'serverApi' THEN as_of ELSE signed_at END AS told_at
      FROM night_audit.evidence
      WHERE transaction_id = ANY ($1)
        AND (channel = 'serverApi' AND as_of > $2 AND as_of <= $3 OR channel = 'notification' AND signed_at > $2)
      ORDER BY transaction_id, told_at DESC, environment
      """,
      [
        .textArray(ids), .timestamp((asOf - settings.staleAfter).microseconds), .timestamp(asOf.microseconds),
      ])
    var told: [String: ToldTransaction] = [:]
    for row in rows {
      guard let environment = AppleEnvironment(rawValue: try row.text(1)),
        let channel = EvidenceChannel(rawValue: try row.text(3))
      else { continue }
      told[try row.text(0)] = ToldTransaction(
        environment: environment, bundleId: try row.optionalText(2), channel: channel,
        at: min(Instant(microseconds: try row.timestamp(4)), asOf))
    }
    return told
  }

  /// What of it may stand for Apple's answer about a check: where a critical finding waits for the answer, only what was
  /// told in this run.
  package func usable(_ told: [String: ToldTransaction], for subject: CheckSubject) -> [String: ToldTransaction] {
    critical.contains(subject) ? told.filter { $0.value.at >= asOf } : told
  }

  /// Long enough for a whole batch at the configured rate, every answer as slow as the timeout allows.
  private var leaseSeconds: Int64 {
    let rate = settings.requestsPerSecond > 0 ? settings.requestsPerSecond : Double(settings.concurrency)
    let waves = (settings.batchSize + settings.concurrency - 1) / settings.concurrency
    let pace = Double(settings.batchSize) / rate
    let slowest = Double(waves) * Double(settings.timeout.wholeSeconds) * 3
    return Int64(min(max(600, pace * 2 + slowest), 86_400))
  }

  /// Gives back what this run holds and has not asked about.
  package func release() async throws {
    try await session.execute(
      "UPDATE night_audit.receipt_checks SET leased_by = NULL, leased_until = NULL WHERE leased_by = $1::uuid",
      [.text(runId)])
  }
}

/// What Apple said about a transaction, and when.
package struct ToldTransaction: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  package var channel: EvidenceChannel
  package var at: Instant
}

extension DueCheck {
  /// The columns of `init(_:subject:matter:)`, for `receipt_checks` aliased `c`.
  package static let columns = """
    c.subject_id, c.order_id, c.environment, c.received_at, c.outcome, c.attempts, c.brought_count
    """

  init(_ row: PostgresRow, subject: CheckSubject, matter: Matter) throws(PostgresError) {
    self.init(
      subject: subject, matter: matter, orderId: try row.optionalText(1).map { Identifier($0) },
      receivedAt: Instant(microseconds: try row.timestamp(3)))
    environment = try row.optionalText(2).flatMap(AppleEnvironment.init)
    outcome = CheckOutcome(rawValue: try row.text(4)) ?? .pending
    attempts = Int(try row.int32(5))
    broughtCount = Int(try row.int32(6))
  }
}
