import Postgres
import Reconciliation
import Run
import Streams

/// The evidence behind critical findings. Answers older than the run are requested again before a first report, because
/// purchases may have become known since. Open accusations are asked about every night, other open findings when stale.
package enum CriticalEvidence {
  /// True if a finding is critical and its evidence is older than this as-of.
  package static func isAged(behind finding: Finding, asOf: Instant) -> Bool {
    guard finding.severity == .critical else { return false }
    return finding.evidenceCheckedAt.map { $0 < asOf } ?? true
  }

  /// The critical findings that were open at the as-of, also if a later night has closed them since.
  package static func open(
    before asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Set<Identifier> {
    let rows = try connection.execute(
      """
      SELECT kind || E'\\n' || subject_kind || E'\\n' || subject FROM night_audit.findings
      WHERE (closed_at IS NULL OR closed_at >= $1) AND severity = 'critical' AND opened_at < $1
      """, [.timestamp(asOf.microseconds)])
    return Set(try rows.map { row throws(PostgresError) in Identifier(try row.text(0)) })
  }

  package struct Proof: Sendable {
    package var subject: CheckSubject
    package var receivedAt: Instant
    /// Only outcome, reason and dueness are set.
    package var state: ProofState
    /// False if this run asked without an answer.
    package var isAskable: Bool

    /// True if the audit has not yet counted it as an answer that Apple owes.
    package func isOwed(beside plan: AuditPlan) -> Bool {
      // `noRoots` is a fault of the configuration, not a missing answer of Apple.
      state.reason != .noRoots && !plan.isOutstanding(state, from: receivedAt)
    }
  }

  /// The proofs among `subjects` with an older answer than the as-of, without verdicts of local checks, which stay.
  package static func aged(
    among subjects: Set<CheckSubject>, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Proof] {
    if subjects.isEmpty { return [] }
    let sorted = subjects.sorted { ($0.kind.rawValue, $0.id) < ($1.kind.rawValue, $1.id) }
    let rows = try connection.execute(
      """
      SELECT c.subject_kind, c.subject_id, c.received_at, c.outcome, c.reason, c.due_from, c.due_until, c.due_rank,
        c.unanswered_since, NOT (c.last_attempt IS NOT DISTINCT FROM $1 AND c.unanswered_since IS NOT NULL)
      FROM unnest($2::text[], $3::text[]) AS wanted (subject_kind, subject_id)
      JOIN night_audit.receipt_checks c USING (subject_kind, subject_id)
      WHERE (c.answered_at IS NULL OR c.answered_at < $1) AND c.is_wanted
        AND (c.outcome IN ('pending', 'unanswered') OR c.channel IS DISTINCT FROM 'offline')
      """, [.timestamp(asOf.microseconds), .textArray(sorted.map(\.kind.rawValue)), .textArray(sorted.map(\.id.text))])
    var found: [Proof] = []
    for row in rows {
      var state = ProofState()
      state.outcome = CheckOutcome(rawValue: try row.text(3)) ?? .pending
      state.reason = try row.optionalText(4).flatMap(PaymentReason.init)
      state.due = try Dueness(row, from: 5)
      state.unansweredSince = try row.optionalInstant(8)
      found.append(
        Proof(
          subject: try CheckSubject(of: row), receivedAt: try row.instant(2), state: state, isAskable: try row.bool(9)))
    }
    return found
  }
}
