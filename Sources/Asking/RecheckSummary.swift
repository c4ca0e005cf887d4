import Reconciliation
import Run

package struct RecheckSummary: Sendable {
  package var due = 0
  package var outcomes: [CheckOutcome: Int] = [:]
  /// Checks that were asked about, stayed unanswered and are no finding yet.
  package var owed = 0
  /// Requests to Apple by HTTP status; 0 stands for no reply.
  package var httpStatuses: [Int: Int] = [:]
  /// Configuration faults by app, with the remedy. A fault ends the recheck of its app only.
  package var faults: [String: String] = [:]
  /// Why the recheck ended before all due checks were asked about; nil if it did not.
  package var endedEarly: String?
  /// True if other workers still owned due checks and were no longer waited for.
  package var isContinuedByOtherWorkers = false
  package private(set) var sweep: SweepSummary?

  package init() {}

  package var incompleteReason: String? {
    endedEarly ?? (isContinuedByOtherWorkers ? "another process has not finished the remaining checks" : nil)
  }

  package mutating func add(_ other: RecheckSummary) {
    due += other.due
    outcomes.merge(other.outcomes, uniquingKeysWith: +)
    owed += other.owed
    httpStatuses.merge(other.httpStatuses, uniquingKeysWith: +)
    faults.merge(other.faults) { first, _ in first }
    endedEarly = endedEarly ?? other.endedEarly
    isContinuedByOtherWorkers = isContinuedByOtherWorkers || other.isContinuedByOtherWorkers
    // The requests of the sweep are counted already.
    if let swept = other.sweep { sweep = sweep?.adding(swept) ?? swept }
  }

  package var exitStatus: ExitStatus {
    if !faults.isEmpty { return .configuration }
    let isShort = incompleteReason != nil || owed > 0 || sweep?.isShort ?? false
    return isShort ? .incomplete : .complete
  }

  package mutating func add(_ swept: SweepSummary?) {
    guard let swept else { return }
    sweep = sweep?.adding(swept) ?? swept
    httpStatuses.merge(swept.httpStatuses) { $0 + $1 }
    faults.merge(swept.faults) { own, _ in own }
  }
}
