import Foundation
import Reconciliation
import Run

/// Apple's report days are Pacific days by worldwide agreement. They may have 23 or 25 hours.
extension TimeZone {
  package func start(of day: ReportDay) -> Instant { start(of: day.civil) }

  package func reportDay(of instant: Instant) -> ReportDay { ReportDay(number: Int(day(of: instant).daysSince1970)) }

  /// The Monday of the first week whose orders are all known, given orders from `instant` on.
  package func firstWeek(since instant: Instant) -> ReportDay {
    // The instant's own day is incomplete, and Apple counts up to some days after us.
    let day = reportDay(of: instant).advanced(by: 1 + ReportDay.timingLags.upperBound)
    return day.monday == day ? day : day.monday.advanced(by: 7)
  }
}

/// Consecutive days with the instants at which they begin, for fast look-ups.
package struct ReportDays: Sendable {
  package let days: ClosedRange<ReportDay>
  private let starts: [Instant]

  package init(_ days: ClosedRange<ReportDay>, in zone: TimeZone) {
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
