import Foundation
import Reconciliation
import Run

/// The time zone of Apple's report days: Pacific time by worldwide agreement. Days may have 23 or 25 hours.
package struct ReportZone: Sendable {
  private let zone: TimeZone

  package init?(_ name: String) {
    guard let zone = TimeZone(identifier: name) else { return nil }
    self.zone = zone
  }

  package func start(of day: ReportDay) -> Instant { zone.start(of: day.civil) }

  package func day(of instant: Instant) -> ReportDay { ReportDay(number: Int(zone.day(of: instant).daysSince1970)) }
}

/// Consecutive days with the instants at which they begin, for fast look-ups.
package struct ReportDays: Sendable {
  package let days: ClosedRange<ReportDay>
  private let starts: [Instant]

  package init(_ days: ClosedRange<ReportDay>, in zone: ReportZone) {
    self.days = days
    starts = (days.lowerBound...days.upperBound.advanced(by: 1)).map { zone.start(of: $0) }
  }

  package var start: Instant { starts[0] }
  package var end: Instant { starts[starts.count - 1] }

  package func end(of day: ReportDay) -> Instant { starts[day.number - days.lowerBound.number + 1] }

  /// nil for an instant outside.
  package func day(of instant: Instant) -> ReportDay? {
    guard instant >= start, instant < end else { return nil }
    var (low, high) = (0, starts.count - 1)
    while high - low > 1 {
      let middle = (low + high) / 2
      if starts[middle] <= instant { low = middle } else { high = middle }
    }
    return days.lowerBound.advanced(by: low)
  }
}
