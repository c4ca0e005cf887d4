import Foundation
import Reconciliation

extension Instant {
  package var wholeSecond: Instant { Instant(seconds: seconds) }

  /// The system's clock in whole seconds: the default as-of, and the time of Apple's answers.
  package static var now: Instant { Instant(seconds: Int64(Date().timeIntervalSince1970)) }

  /// `20261120T031500Z`, for names of folders.
  package var compactText: String {
    let date = Date(timeIntervalSince1970: Double(seconds))
    return date.ISO8601Format(.iso8601(timeZone: .gmt, dateSeparator: .omitted, timeSeparator: .omitted)) + "Z"
  }
}
