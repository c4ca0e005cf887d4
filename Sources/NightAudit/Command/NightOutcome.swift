import Asking
import Auditing
import Publishing
import Reconciliation
import Reporting
import Run

/// What a night has come to.
package struct NightOutcome: Sendable {
  package var asOf: Instant
  package var totals: Totals
  package var summary: SummaryFacts
  /// Where the report lies; nil when none was written.
  package var directory: String?
  /// What people had put into the folder before, or had edited in it.
  package var kept: [KeptFile] = []
  /// Whether it is a dry run, which tells of a night that would be.
  package var isRehearsal = false
  /// Why the night is held, or would be; empty when it is not.
  package var held: [HoldCause] = []
  /// Business days before it that no report is about, with the remedy.
  package var uncovered: String?
  /// Why it lists no order although one was asked for, with the remedy.
  package var unlisted: String?
  /// What to do about days that nothing is compared with any more; nil where there are none.
  package var uncompared: String?
  package var recheck: RecheckSummary?
  /// What was sent, or could not be.
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
