import AppStore

/// Why a sweep did not come to its end. The words stand in `night_audit.sweeps`, `night_audit.histories` and reports.
package enum SweepShortfall: String, Hashable, Sendable {
  /// The deadline, a signal or a kill ended it.
  case unfinished
  case unreachable
  case rateLimited = "rate_limited"
  case appleError = "apple_error"
  /// Apple's answer holds something without a signature of Apple's that holds.
  case notBelieved = "not_believed"
  /// Apple does not keep notifications for so long.
  case outOfReach = "out_of_reach"
  /// Our own configuration was refused.
  case refused

  package init(_ silence: Silence) {
    switch silence.reason {
    case .unreachable: self = .unreachable
    case .rateLimited: self = .rateLimited
    case .appleError: self = .appleError
    }
  }
}
