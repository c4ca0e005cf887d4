/// The scope of a failure. Everything outside the scope goes on.
public enum FailureScope: Int, Hashable, CaseIterable, Comparable, Sendable {
  /// A row of the shop: a `bad_row` finding.
  case row
  case answer
  /// The rows of one database transaction.
  case batch
  /// All questions about one app in this run.
  case app
  case night

  public static func < (left: FailureScope, right: FailureScope) -> Bool { left.rawValue < right.rawValue }
}

/// The reaction to a failure.
public enum FailureRemedy: String, Hashable, CaseIterable, Sendable {
  /// Reported with its row, which counts for nothing else.
  case report
  /// Stored as `review` without the bad value, and asked about again the next night.
  case park
  /// Left to the retry schedule.
  case postpone
  case again
  /// Repeated on a new connection.
  case reopen
  /// Ends all questions about the app in this run. Stored answers are reported.
  case endApp
  case endNight
}

/// The one table of failures, with scope and remedy. Every catch uses it.
public enum Failure: Hashable, CaseIterable, Sendable {
  case brokenRow
  /// A column with another type or name than the contract's.
  case brokenColumn

  /// No reply, HTTP 429, a 5xx, a status for Apple's own trouble, or an unusable answer.
  case silence
  /// Our token, key, secret or request is refused, perhaps for this question alone.
  case refusedQuestion
  /// A refusal that is proven to concern the credential.
  case refusedCredential
  /// More refusals of one kind among the first answers about an app than customers can cause.
  case systemicRefusals

  // Failures of the database, by class of SQLSTATE (PostgreSQL, appendix A).
  /// A value that no column takes: 21, 22, 23, 54.
  case value
  /// A column with an undeclared NULL, type or value, or a view that fails on a row.
  case unreadable
  /// Another transaction was in the way: 40001, 40P01, 55P03; or the statement was cancelled: 57014.
  case conflict
  /// The session is lost: class 08, 57P01 to 57P05, 25P03.
  case lostSession
  /// No disk space, memory or connection left: class 53, and 58.
  case exhausted
  /// The server is read only: 25006, in recovery.
  case readOnly
  /// Rights, names or passwords: 28, 3D, 3F, 42.
  case access
  case cancelled
  /// Any other error: a defect of this program.
  case defect

  public var size: FailureScope {
    switch self {
    case .brokenRow: .row
    case .silence, .refusedQuestion, .value, .unreadable: .answer
    case .conflict, .lostSession: .batch
    case .refusedCredential, .systemicRefusals: .app
    case .brokenColumn, .exhausted, .readOnly, .access, .cancelled, .defect: .night
    }
  }

  public var remedy: FailureRemedy {
    switch self {
    case .brokenRow: .report
    case .silence: .postpone
    case .refusedQuestion, .value, .unreadable: .park
    case .conflict: .again
    case .lostSession: .reopen
    case .refusedCredential, .systemicRefusals: .endApp
    case .brokenColumn, .exhausted, .readOnly, .access, .cancelled, .defect: .endNight
    }
  }

  /// Classifies the error of a statement by its SQLSTATE; nil: the server gave none.
  public init(sqlState: String?) {
    switch sqlState {
    case "25006": self = .readOnly
    case "40001", "40P01", "40003", "55P03", "57014": self = .conflict
    case "25P03", "57P01", "57P02", "57P03", "57P04", "57P05": self = .lostSession
    // An undecided collation concerns columns, not values.
    case "42P21", "42P22": self = .access
    default:
      switch sqlState?.prefix(2) {
      case "08": self = .lostSession
      case "21", "22", "23", "54": self = .value
      case "40", "55": self = .conflict
      case "53", "58": self = .exhausted
      case "28", "3D", "3F", "42": self = .access
      default: self = .defect
      }
    }
  }
}
