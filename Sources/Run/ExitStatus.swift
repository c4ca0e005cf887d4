import Postgres
import Reconciliation

/// The exit statuses of the program (README, "Exit codes").
package enum ExitStatus: Int32, CaseIterable, Sendable {
  case complete = 0
  case nothingThere = 1
  case criticalFindings = 2
  case incomplete = 3
  case held = 4
  case usage = 64
  case databaseUnreachable = 69
  case internalError = 70
  case cannotWrite = 73
  case locked = 75
  case configuration = 78
  case interrupted = 130
  case terminated = 143
}

package protocol RunEndingError: Error {
  var exitStatus: ExitStatus { get }
  /// True for a wrong command line, which is not a failed night.
  var isUsageMistake: Bool { get }
}

extension RunEndingError {
  package var isUsageMistake: Bool { exitStatus == .usage }
}

extension ExitStatus {
  package init(for error: any Error) { self = (error as? any RunEndingError)?.exitStatus ?? .internalError }
}

extension PostgresError: RunEndingError {
  package var exitStatus: ExitStatus { Failure(self).exitStatus }
}
