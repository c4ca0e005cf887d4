import AuditStore
import Postgres
import Reconciliation
import Reporting

/// The tie-out section of a report. It changes no disposition.
package struct ReportSupplement: Sendable {
  package var facts: TieOutFacts
  package var findings: [Finding]
  /// Apple's amounts by fiscal period, for the journal.
  package var postings: [(JournalEvent, JournalPosting)] = []
  /// True if an open finding can be neither confirmed nor closed, because Apple's report cannot be read.
  package var isUndecided: @Sendable (Finding) -> Bool
  package var write: @Sendable (inout ReportWriter) throws -> Void

  package init(
    facts: TieOutFacts, findings: [Finding], isUndecided: @escaping @Sendable (Finding) -> Bool,
    write: @escaping @Sendable (inout ReportWriter) throws -> Void
  ) {
    (self.facts, self.findings, self.isUndecided, self.write) = (facts, findings, isUndecided, write)
  }

  /// The findings of a report of this as-of, including open findings that are undecided.
  func reported(asOf: Instant, on own: borrowing BlockingConnection) throws(PostgresError) -> [Finding] {
    let rows = try own.execute(
      """
      SELECT \(StoredFinding.columns) FROM night_audit.findings f
      WHERE f.kind = $1 AND f.opened_at <= $2 AND (f.closed_at IS NULL OR f.closed_at > $2) ORDER BY f.finding_id
      """, [.text(FindingKind.unreportedByShop.rawValue), .timestamp(asOf.microseconds)])
    let open = try rows.map { row throws(PostgresError) in try StoredFinding(row)?.reported.finding }
    return findings(beside: open.compactMap(\.self))
  }

  /// Undecided open findings stay as reported, because a missing report closes nothing.
  func findings(beside open: [Finding]) -> [Finding] {
    let undecided = open.filter(isUndecided)
    let subjects = Set(undecided.map(\.subject))
    return undecided + findings.filter { !subjects.contains($0.subject) }
  }
}

/// The source of a report's tie-out section.
package enum SupplementSource: Sendable {
  case made(ReportSupplement)
  /// The section is built from the judged orders; errors are reported in it.
  case ofOrders(@Sendable (BlockingScope, AuditedOrders) -> ReportSupplement)

  func supplement(_ scope: BlockingScope, _ collector: AuditCollector) -> ReportSupplement {
    switch self {
    case .made(let supplement): supplement
    case .ofOrders(let make): make(scope, AuditedOrders(collector))
    }
  }
}
