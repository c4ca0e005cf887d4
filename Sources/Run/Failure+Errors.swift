import Postgres
import Reconciliation

extension Failure {
  /// The failure that an error is. An error of no known kind is a defect of this program.
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
      // A server that starts, or has no connection left, is waited for. A wrong password stays wrong.
      let refusal = Failure(sqlState: error.sqlState)
      self = refusal == .access || refusal == .readOnly ? refusal : .lostSession
    case .connectionLost: self = .lostSession
    case .misconfigured: self = .access
    case .server: self.init(sqlState: error.sqlState)
    case .cancelled: self = .cancelled
    case .unexpectedData: self = .unreadable
    case .usage: self = .defect
    }
  }

  /// The exit status of a run that ends, or goes on, with this failure.
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
