import AuditStore
import Postgres
import Reconciliation
import Reporting

/// What a report tells beside the audit of orders: the tie-out with Apple's own reports. It changes no disposition.
package struct ReportSupplement: Sendable {
  /// For the summary.
  package var facts: TieOutFacts
  /// Findings that stand on no order; nil: what they stand on could not be read.
  package var findings: [Finding]?
  /// Writes its rows.
  package var write: @Sendable (inout ReportWriter) throws -> Void

  package init(
    facts: TieOutFacts, findings: [Finding]?, write: @escaping @Sendable (inout ReportWriter) throws -> Void
  ) {
    self.facts = facts
    self.findings = findings
    self.write = write
  }

  /// The findings of a report of this as-of: where nothing could be read, those that were open, for silence closes none.
  func reported(asOf: Instant, on own: borrowing BlockingConnection) throws(PostgresError) -> [Finding] {
    if let findings { return findings }
    let rows = try own.execute(
      """
      SELECT \(StoredFinding.columns) FROM night_audit.findings f
      WHERE f.kind = $1 AND f.opened_at <= $2 AND (f.closed_at IS NULL OR f.closed_at > $2) ORDER BY f.finding_id
      """, [.text(FindingKind.unreportedByShop.rawValue), .timestamp(asOf.microseconds)])
    var open: [Finding] = []
    for row in rows {
      if let stored = try StoredFinding(row) { open.append(stored.reported.finding) }
    }
    return open
  }
}
