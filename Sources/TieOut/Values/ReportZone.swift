import Foundation
import Reconciliation

/// The zone whose days Apple's reports count: Pacific time under worldwide agreements. Its days have 23 or 25 hours when
/// clocks change.
package struct ReportZone: Sendable {
  private let calendar: Calendar

  /// nil for a name that is no zone.
  package init?(_ name: String) {
    guard let zone = TimeZone(identifier: name) else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    self.calendar = calendar
  }

  /// The first instant of the day.
  package func start(of day: ReportDay) -> Instant {
    let (year, month, dayOfMonth) = day.civil
    // Noon is there on every day; midnight is not, where clocks change at that hour.
    let noon = calendar.date(from: DateComponents(year: year, month: month, day: dayOfMonth, hour: 12)) ?? .distantPast
    return Instant(seconds: Int64(calendar.startOfDay(for: noon).timeIntervalSince1970))
  }

  /// The day in which the instant lies.
  package func day(of instant: Instant) -> ReportDay {
    let parts = calendar.dateComponents(
      [.year, .month, .day], from: Date(timeIntervalSince1970: Double(instant.seconds)))
    return ReportDay(year: parts.year ?? 0, month: parts.month ?? 0, day: parts.day ?? 0) ?? ReportDay(number: 0)
  }
}

/// Some days in a row with the instants at which they begin, so that a million instants can be sorted into them.
package struct ReportDays: Sendable {
  package let days: ClosedRange<ReportDay>
  /// The first instant of each day, and the one after the last.
  private let starts: [Instant]

  package init(_ days: ClosedRange<ReportDay>, in zone: ReportZone) {
    self.days = days
    starts = (days.lowerBound...days.upperBound.advanced(by: 1)).map { zone.start(of: $0) }
  }

  package var count: Int { starts.count - 1 }
  package var start: Instant { starts[0] }
  /// The first instant that is not in them any more.
  package var end: Instant { starts[starts.count - 1] }

  /// The end of one of them.
  package func end(of day: ReportDay) -> Instant { starts[day.number - days.lowerBound.number + 1] }

  /// nil for an instant outside of them.
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
