import Postgres
import Reporting
import Spreadsheet

/// The exit statuses of the program (README, "Exit codes").
package enum ExitStatus: Int32, Sendable {
  case complete = 0
  case nothingThere = 1
  case criticalFindings = 2
  case incomplete = 3
  case usage = 64
  case databaseUnreachable = 69
  case internalError = 70
  case cannotWrite = 73
  case locked = 75
  case configuration = 78
  case interrupted = 130
  case terminated = 143
}

/// An error that knows what the program ends with.
package protocol EndsRun: Error {
  var exitStatus: ExitStatus { get }
}

extension ExitStatus {
  /// The status that an error ends the program with.
  package init(for error: any Error) { self = (error as? any EndsRun)?.exitStatus ?? .internalError }
}

extension PostgresError: EndsRun {
  package var exitStatus: ExitStatus {
    switch kind {
    case .connectionFailed, .connectionLost: .databaseUnreachable
    case .server:
      // Classes of SQLSTATE (PostgreSQL, appendix A): 08 connection, 28 authorization, 42 access or names, 3D and 3F
      // unknown database or schema, 53 resources, 57P operator intervention.
      switch sqlState?.prefix(2) {
      case "08", "53", "57": .databaseUnreachable
      case "28", "42", "3D", "3F": .configuration
      default: .internalError
      }
    case .cancelled: .interrupted
    case .unexpectedData: .configuration
    case .usage: .internalError
    }
  }
}

extension ReportError: EndsRun {
  package var exitStatus: ExitStatus {
    switch self {
    case .cannotWrite, .workbook: .cannotWrite
    case .unbalanced: .internalError
    }
  }
}

extension WorkbookReadError: EndsRun {
  package var exitStatus: ExitStatus { .usage }
}
