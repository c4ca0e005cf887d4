import AuditStore
import Publishing
import Reconciliation
import Reporting
import Run
import Streams

/// The results of a finished audit.
package struct AuditOutcome: Sendable {
  package var totals: Totals
  package var summary: SummaryFacts
  /// The path of the report folder; nil if no report was written.
  package var directory: String?
  /// Files of people found in the folder that the report replaced.
  package var kept: [KeptFile] = []
  /// Why the night is held; empty if it is published.
  package var held: [HoldCause] = []
  /// The message about earlier business days without a report.
  package var uncovered: String?
  /// The message about why no order is listed, for a report on one order or user.
  package var unlisted: String?
  package var uncompared: String?
  /// Proofs behind critical findings with evidence older than the audit, which Apple can be asked about.
  package var unasked: Set<CheckSubject> = []
  package var exitStatus: ExitStatus
}

package enum AuditResult: Sendable {
  case report(AuditOutcome)
  case needsAnswers(OpenQuestions)
}

extension SpillSorter.Failure: RunEndingError {
  package var exitStatus: ExitStatus { .cannotWrite }
}
