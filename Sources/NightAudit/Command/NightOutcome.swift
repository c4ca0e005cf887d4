import Asking
import Auditing
import Publishing
import Reconciliation
import Reporting
import Run

/// The result of a night.
package struct NightOutcome: Sendable {
  package var asOf: Instant
  package var totals: Totals
  package var summary: SummaryFacts
  package var directory: String?
  /// Files of people in the report folder, and files that people had edited.
  package var kept: [KeptFile] = []
  package var isRehearsal = false
  /// Reasons why the night is held, or would be in a dry run; empty otherwise.
  package var held: [HoldCause] = []
  /// Earlier business days without a report, with the remedy.
  package var uncovered: String?
  /// Explanation of an empty selection, with the remedy.
  package var unlisted: String?
  /// Remedy for days whose totals can no longer be compared; nil for none.
  package var uncompared: String?
  package var recheck: RecheckSummary?
  package var dispatches: [Dispatch] = []
  package var exitStatus: ExitStatus

  package init(_ audit: AuditOutcome, asOf: Instant) {
    self.asOf = asOf
    totals = audit.totals
    summary = audit.summary
    directory = audit.directory
    kept = audit.kept
    held = audit.held
    uncovered = audit.uncovered
    unlisted = audit.unlisted
    uncompared = audit.uncompared
    exitStatus = audit.exitStatus
  }
}
