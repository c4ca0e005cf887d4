import Postgres
import Reconciliation

extension Failure {
  /// Classifies an error. An unknown type is a defect of the program.
  package init(_ error: any Error) {
    switch error {
    case let error as PostgresError: self.init(error)
    case is CancellationError: self = .cancelled
    default: self = .defect
    }
  }

  private init(_ error: PostgresError) {
    switch error.kind {
    case .connectionFailed:
      // Retried if the server is starting or has no free connection, but not after a wrong password.
      let refusal = Failure(sqlState: error.sqlState)
      self = refusal == .access || refusal == .readOnly ? refusal : .lostSession
    case .connectionLost: self = .lostSession
    case .misconfigured: self = .access
    case .server:
      self.init(sqlState: error.sqlState)
      // Only a view of the shop can fail on a value while rows are read.
      if self == .value, error.isOfReader { self = .unreadable }
    case .cancelled: self = .cancelled
    case .unexpectedData: self = .unreadable
    case .usage: self = .defect
    }
  }

  /// The exit status of a run that ends or continues with this failure.
  package var exitStatus: ExitStatus {
    switch self {
    case .brokenRow, .refusedQuestion: .complete
    case .silence: .incomplete
    case .conflict, .lostSession, .exhausted: .databaseUnreachable
    case .brokenColumn, .refusedCredential, .systemicRefusals, .unreadable, .readOnly, .access: .configuration
    case .cancelled: .interrupted
    case .value, .defect: .internalError
    }
  }
}
