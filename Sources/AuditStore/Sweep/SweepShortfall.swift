import AppStore

/// Why a sweep is incomplete. The raw values are in `sweeps`, `histories` and reports.
package enum SweepShortfall: String, Hashable, Sendable {
  /// Ended by the deadline, a signal or a kill.
  case unfinished
  case unreachable
  case rateLimited = "rate_limited"
  case appleError = "apple_error"
  /// The answer contains data without a valid signature of Apple.
  case notBelieved = "not_believed"
  /// Apple's history does not reach back that far.
  case outOfReach = "out_of_reach"
  case refused

  package init(_ silence: Silence) {
    switch silence.reason {
    case .unreachable: self = .unreachable
    case .rateLimited: self = .rateLimited
    case .appleError: self = .appleError
    }
  }
}
