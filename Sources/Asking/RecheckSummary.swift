import Reconciliation
import Run

/// What a re-check has come to.
package struct RecheckSummary: Sendable {
  package var due = 0
  package var outcomes: [CheckOutcome: Int] = [:]
  /// How many were asked about in vain and are no finding yet.
  package var owed = 0
  /// Requests to Apple by HTTP status; 0 stands for no reply.
  package var httpStatuses: [Int: Int] = [:]
  /// Faults of ours by app, with the remedy. They end the app's re-check and nothing else.
  package var faults: [String: String] = [:]
  /// Why the re-check ended before everything due was asked; nil when it did not.
  package var endedEarly: String?
  /// Whether others had still to ask about what is due, and were not waited for any longer.
  package var isLeftToOthers = false
  /// What sweeping Apple's side has come to; nil when nothing was swept.
  package private(set) var sweep: SweepSummary?

  package init() {}

  /// Why not everything due was asked about; nil when it was.
  package var whyNotAll: String? {
    endedEarly ?? (isLeftToOthers ? "another process had still to ask about the rest" : nil)
  }

  /// Adds what asking once more has come to.
  package mutating func add(_ other: RecheckSummary) {
    due += other.due
    outcomes.merge(other.outcomes, uniquingKeysWith: +)
    owed += other.owed
    httpStatuses.merge(other.httpStatuses, uniquingKeysWith: +)
    faults.merge(other.faults) { first, _ in first }
    endedEarly = endedEarly ?? other.endedEarly
    isLeftToOthers = isLeftToOthers || other.isLeftToOthers
    // Its requests are counted already.
    if let swept = other.sweep { sweep = sweep?.adding(swept) ?? swept }
  }

  /// What a command that only asks ends with.
  package var exitStatus: ExitStatus {
    if !faults.isEmpty { return .configuration }
    let isShort = whyNotAll != nil || owed > 0 || sweep?.isShort ?? false
    return isShort ? .incomplete : .complete
  }

  /// Takes in what sweeping Apple's side has come to.
  package mutating func add(_ swept: SweepSummary?) {
    guard let swept else { return }
    sweep = sweep?.adding(swept) ?? swept
    httpStatuses.merge(swept.httpStatuses) { $0 + $1 }
    faults.merge(swept.faults) { own, _ in own }
  }
}
