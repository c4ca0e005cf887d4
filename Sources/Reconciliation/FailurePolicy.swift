/// How much a failure costs: with what it belongs to, everything larger goes on.
public enum FailureSize: Int, Hashable, CaseIterable, Comparable, Sendable {
  /// One row of the shop's: a `bad_row` finding.
  case row
  /// One question and what was answered.
  case answer
  /// What is stored in one transaction.
  case batch
  /// What is asked about one app in this run.
  case app
  /// The run.
  case night

  public static func < (left: FailureSize, right: FailureSize) -> Bool { left.rawValue < right.rawValue }
}

/// What is done about a failure.
public enum FailureRemedy: String, Hashable, CaseIterable, Sendable {
  /// Reported with its row; it counts for nothing else.
  case report
  /// Stored as `review` without what could not be stored, and asked about again the next night.
  case park
  /// Put off: the retry schedule has it.
  case postpone
  /// Done again at once, a few times.
  case again
  /// The connection is opened again, then as `again`.
  case reopen
  /// The app is asked nothing more in this run; what is stored is reported.
  case endApp
  /// The run ends; what is stored stays.
  case endNight

  /// Whether doing the same again can help.
  public var isRetriable: Bool {
    switch self {
    case .postpone, .again, .reopen: true
    case .report, .park, .endApp, .endNight: false
    }
  }
}

/// Everything that can go wrong between the shop's tables, Apple and our own. One table, which every catch asks, says what
/// it costs and what is done about it.
public enum Failure: Hashable, CaseIterable, Sendable {
  // What the shop's tables hold.
  /// A row that breaks the contract of the sales schema.
  case brokenRow
  /// A column whose type or name breaks it.
  case brokenColumn

  // What Apple says.
  /// No reply, HTTP 429, a 5xx, a status that means Apple's own trouble, an answer that cannot be read or believed.
  case silence
  /// Our token, key, secret or request is refused, perhaps for this question alone.
  case refusedQuestion
  /// The same, proven to be no accident.
  case refusedCredential
  /// More refusals of one kind among the first answers about an app than customers can cause.
  case systemicRefusals

  // What the database says, by the classes of SQLSTATE (PostgreSQL, appendix A).
  /// A value that no column takes: 21, 22, 23, 54.
  case value
  /// A column has a NULL, a type or a value that was not declared for it.
  case unreadable
  /// Another transaction was in the way: 40001, 40P01, 55P03; or somebody cancelled the statement: 57014.
  case conflict
  /// The session is gone: class 08, 57P01 to 57P05, 25P03.
  case lostSession
  /// No room, no memory, no connection left: class 53, and 58.
  case exhausted
  /// It may not be written here: 25006, a server in recovery.
  case readOnly
  /// Rights, names or passwords: 28, 3D, 3F, 42.
  case access
  /// Our own wish to stop.
  case cancelled
  /// Anything else: a defect of this program.
  case defect

  public var size: FailureSize {
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

  /// What the server's refusal of a statement is.
  ///
  /// - Parameter sqlState: five characters; nil where the server gave none.
  public init(sqlState: String?) {
    switch sqlState {
    case "25006": self = .readOnly
    case "40001", "40P01", "40003", "55P03", "57014": self = .conflict
    case "25P03", "57P01", "57P02", "57P03", "57P04", "57P05": self = .lostSession
    // Collations that cannot be decided are about columns, not values.
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
