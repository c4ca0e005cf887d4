import Foundation
import Reconciliation

/// Formats times in the report's time zone.
package struct LocalTimeText {
  private let style: Date.ISO8601FormatStyle
  package let zoneName: String

  package init(zone: TimeZone, name: String) {
    style = Date.ISO8601FormatStyle(
      dateSeparator: .dash, dateTimeSeparator: .space, timeSeparator: .colon, timeZoneSeparator: .colon,
      includingFractionalSeconds: false, timeZone: zone
    ).year().month().day().dateTimeSeparator(.space).time(includingFractionalSeconds: false)
    zoneName = name
  }

  /// Format: `2026-11-19 23:14:03`.
  package func text(_ instant: Instant) -> String {
    Date(timeIntervalSince1970: Double(instant.seconds)).formatted(style)
  }

  package func text(_ instant: Instant?) -> String { instant.map { text($0) } ?? "-" }
}
