import AppStore
import Foundation
import Reconciliation

extension Instant {
  package var wholeSecond: Instant { Instant(seconds: seconds) }

  /// The system's clock in whole seconds: the default as-of, and the time of Apple's answers.
  package static var now: Instant { Instant(seconds: Int64(Date().timeIntervalSince1970)) }

  /// Parses an as-of in RFC 3339 and drops fractions; nil if invalid or before 1970.
  package init?(asOf text: String) {
    guard let instant = Instant(rfc3339: text), instant.seconds >= 0 else { return nil }
    self = instant.wholeSecond
  }

  /// `20261120T031500Z`, for names of folders.
  package var compactText: String {
    let date = Date(timeIntervalSince1970: Double(seconds))
    return date.ISO8601Format(.iso8601(timeZone: .gmt, dateSeparator: .omitted, timeSeparator: .omitted)) + "Z"
  }
}
