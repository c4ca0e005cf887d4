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

  /// The status that an error ends the program with.
  package init(for error: any Error) {
    switch error {
    case is ConfigurationError, is SchemaError: self = .configuration
    case is PeriodError: self = .usage
    case let error as RootInstallationError: self = error.exitStatus
    case is Explain.Missing: self = .nothingThere
    case is RunLock.Held: self = .locked
    case is ReportFolder.Failure, is SpillSorter.Failure: self = .cannotWrite
    case let error as FindingsError:
      switch error {
      case .unknown: self = .nothingThere
      case .ambiguous: self = .usage
      }
    case let error as RunsError:
      switch error {
      case .unknown, .unfinished: self = .nothingThere
      case .ambiguous: self = .usage
      }
    case is WorkbookReadError, is PeopleText.Refusal: self = .usage
    case let error as ReportError:
      switch error {
      case .cannotWrite, .workbook: self = .cannotWrite
      case .unbalanced: self = .internalError
      }
    case let error as PostgresError: self = ExitStatus(for: error)
    default: self = .internalError
    }
  }

  private init(for error: PostgresError) {
    switch error.kind {
    case .connectionFailed, .connectionLost: self = .databaseUnreachable
    case .server:
      // Classes of SQLSTATE (PostgreSQL, appendix A): 08 connection, 28 authorization, 42 access or names, 3D and 3F
      // unknown database or schema, 53 resources, 57P operator intervention.
      switch error.sqlState?.prefix(2) {
      case "08", "53", "57": self = .databaseUnreachable
      case "28", "42", "3D", "3F": self = .configuration
      default: self = .internalError
      }
    case .cancelled: self = .interrupted
    case .unexpectedData: self = .configuration
    case .usage: self = .internalError
    }
  }
}
