import Postgres
import Reconciliation
import Run

/// What critical findings rest on. Before anybody is alarmed, an answer of Apple that is older than the run is asked for
/// once more: purchases that settled meanwhile alarm nobody.
package enum CriticalEvidence {
  /// What one finding is about.
  package struct Basis: Sendable {
    package var orderId: Identifier?
    package var transaction: TransactionKey?

    package init(orderId: Identifier?, transaction: TransactionKey?) {
      self.orderId = orderId
      self.transaction = transaction
    }
  }

  /// Whether a finding is critical and rests on no answer to the run of this as-of.
  package static func isAged(behind finding: Finding, asOf: Instant) -> Bool {
    guard finding.severity == .critical else { return false }
    return finding.evidenceCheckedAt.map { $0 < asOf } ?? true
  }

  /// A receipt or look-up whose answer is older than the audit.
  package struct Proof: Sendable {
    package var subject: CheckSubject
    package var receivedAt: Instant
    /// Outcome, reason and times only.
    package var state: ProofState
    /// Whether this run has not asked in vain.
    package var isAskable: Bool

    /// Whether the audit has not counted it already as an answer that Apple owes.
    package func isOwed(beside plan: AuditPlan) -> Bool {
      // Without root certificates nobody is silent.
      state.reason != .noRoots
        && !(receivedAt >= plan.judgedFrom && plan.isOutstanding(state, from: receivedAt))
    }
  }

  /// What the critical findings rest on that the last night left open. What Apple has told of since, unasked, is not old.
  package static func open(
    _ selection: Selection, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Basis] {
    let rows = try connection.execute(
      """
      SELECT f.order_id, f.transaction_id, f.environment, f.user_id, f.product_id, f.bundle_id
      FROM night_audit.findings f
      LEFT JOIN night_audit.transactions t
        ON t.transaction_id = f.transaction_id AND t.environment = f.environment
      WHERE f.closed_at IS NULL AND f.severity = 'critical' AND (t.checked_at IS NULL OR t.checked_at < $1)
      """, [.timestamp(asOf.microseconds)])
    var found: [Basis] = []
    for row in rows {
      let orderId = try row.optionalText(0).map { Identifier($0) }
      let isListed = selection.includes(
        orderId: orderId, userId: try row.optionalText(3).map { Identifier($0) },
        productId: try row.optionalText(4).map { Identifier($0) }, bundleId: try row.optionalText(5))
      guard isListed else { continue }
      var key: TransactionKey?
      if let id = try row.optionalText(1), let environment = try row.optionalText(2).flatMap(AppleEnvironment.init) {
        key = TransactionKey(environment: environment, transactionId: Identifier(id))
      }
      found.append(Basis(orderId: orderId, transaction: key))
    }
    return found
  }

  /// The proofs behind findings that were answered last before the as-of: those of the order, and where none of them
  /// brought the transaction, the newest one that did.
  package static func subjects(
    behind bases: [Basis], on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<CheckSubject> {
    if bases.isEmpty { return [] }
    let keys = Set(bases.compactMap(\.transaction)).sorted()
    let rows = try connection.execute(
      """
      WITH own AS (
        SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_checks c
        WHERE c.subject_kind = 'receipt' AND c.order_id = ANY ($1)
        UNION
        SELECT 'lookup', l.subject_id FROM night_audit.lookups l WHERE l.order_id = ANY ($1))
      SELECT subject_kind, subject_id FROM own
      UNION
      SELECT newest.subject_kind, newest.subject_id
      FROM unnest($2::text[], $3::text[]) AS t (transaction_id, environment)
      CROSS JOIN LATERAL (
        SELECT c.subject_kind, c.subject_id FROM night_audit.receipt_transactions link
        JOIN night_audit.receipt_checks c USING (subject_kind, subject_id)
        WHERE link.transaction_id = t.transaction_id AND link.environment = t.environment
        ORDER BY c.received_at DESC, c.subject_kind, c.subject_id LIMIT 1) newest
      WHERE NOT EXISTS (
        SELECT 1 FROM night_audit.receipt_transactions link JOIN own USING (subject_kind, subject_id)
        WHERE link.transaction_id = t.transaction_id AND link.environment = t.environment)
      """,
      [
        .textArray(Set(bases.compactMap(\.orderId)).sorted().map(\.text)),
        .textArray(keys.map(\.transactionId.text)), .textArray(keys.map(\.environment.rawValue)),
      ])
    var subjects: Set<CheckSubject> = []
    for row in rows {
      guard let kind = CheckSubject.Kind(rawValue: try row.text(0)) else { continue }
      subjects.insert(CheckSubject(kind: kind, id: Identifier(try row.text(1))))
    }
    return subjects
  }

  /// Those of some proofs whose answer is older than the as-of. A signature that we refused ourselves stays refused.
  package static func aged(
    among subjects: Set<CheckSubject>, settings: Settings, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Proof] {
    if subjects.isEmpty { return [] }
    let sorted = subjects.sorted { ($0.kind.rawValue, $0.id) < ($1.kind.rawValue, $1.id) }
    let rows = try connection.execute(
      """
      SELECT c.subject_kind, c.subject_id, c.received_at, c.outcome, c.reason, c.last_attempt, c.next_attempt,
        c.answered_at, NOT \(wasAskedInVain) AS is_askable
      FROM unnest($2::text[], $3::text[]) AS wanted (subject_kind, subject_id)
      JOIN night_audit.receipt_checks c USING (subject_kind, subject_id)
      WHERE \(isOld) AND NOT (c.outcome = 'rejected' AND c.channel IS NOT DISTINCT FROM 'offline')
        AND (c.subject_kind = 'receipt' OR split_part(c.subject_id, '/', 1) = ANY ($4::text[]))
      """,
      [
        .timestamp(asOf.microseconds), .textArray(sorted.map(\.kind.rawValue)), .textArray(sorted.map(\.id.text)),
        .textArray(
          settings.apps.filter { settings.effectiveChannel(of: $0) == .serverApi }.map(\.bundleId)),
      ])
    var found: [Proof] = []
    for row in rows {
      func instant(_ column: Int) throws(PostgresError) -> Instant? {
        try row.optionalTimestamp(column).map { Instant(microseconds: $0) }
      }
      var state = ProofState()
      state.outcome = CheckOutcome(rawValue: try row.text(3)) ?? .pending
      state.reason = try row.optionalText(4).flatMap(PaymentReason.init)
      state.lastAttempt = try instant(5)
      state.nextAttempt = try instant(6)
      state.answeredAt = try instant(7)
      found.append(
        Proof(
          subject: CheckSubject(
            kind: CheckSubject.Kind(rawValue: try row.text(0)) ?? .receipt, id: Identifier(try row.text(1))),
          receivedAt: Instant(microseconds: try row.timestamp(2)), state: state, isAskable: try row.bool(8)))
    }
    return found
  }

  /// Which of some proofs are due, as a condition on `receipt_checks` aliased `c` with `$1` the as-of.
  package static func condition(
    on subjects: Set<CheckSubject>, of kind: CheckSubject.Kind
  ) throws(PostgresError) -> String {
    let ids = subjects.filter { $0.kind == kind }.map(\.id).sorted()
    if ids.isEmpty { return "FALSE" }
    var literals: [String] = []
    for id in ids { literals.append(try PostgresLiteral.text(id.text)) }
    return """
      (c.subject_kind = '\(kind.rawValue)' AND c.subject_id = ANY (ARRAY[\(literals.joined(separator: ","))]::text[])
        AND \(isOld) AND NOT \(wasAskedInVain))
      """
  }

  private static let isOld = "(c.answered_at IS NULL OR c.answered_at < $1)"
  /// Who did not answer is asked again by the retry schedule.
  private static let wasAskedInVain =
    "(c.last_attempt IS NOT DISTINCT FROM $1 AND coalesce(c.next_attempt > $1, FALSE))"
}
