import Reconciliation
import Reporting

/// What a report tells beside the audit of orders: the tie-out with Apple's own reports. It changes no disposition.
package struct ReportSupplement: Sendable {
  /// For the summary.
  package var facts: TieOutFacts
  /// Findings that stand on no order.
  package var findings: [Finding]
  /// Writes its rows.
  package var write: @Sendable (inout ReportWriter) throws -> Void

  package init(
    facts: TieOutFacts, findings: [Finding], write: @escaping @Sendable (inout ReportWriter) throws -> Void
  ) {
    self.facts = facts
    self.findings = findings
    self.write = write
  }
}
