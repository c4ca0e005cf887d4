import Foundation
import Reconciliation

extension Period {
  /// The number of days of the period that have not ended at an as-of.
  package func missingDays(at asOf: Instant, in zone: TimeZone) -> Int {
    guard asOf < end else { return 0 }
    let calendar = Period.calendar(zone)
    // At noon, which exists on every day in every zone.
    let first = Period.day(max(since, Period.dayText(of: asOf, in: zone)), calendar)
    guard let first, let last = Period.day(until, calendar) else { return 0 }
    return (calendar.dateComponents([.day], from: first, to: last).day ?? 0) + 1
  }

  package static func dayBefore(_ asOf: Instant, in zone: TimeZone) -> Period {
    let calendar = calendar(zone)
    let today = Date(timeIntervalSince1970: Double(asOf.seconds))
    let yesterday = calendar.date(byAdding: .day, value: -1, to: calendar.startOfDay(for: today)) ?? today
    return Period(from: yesterday, to: yesterday, calendar: calendar)
  }

  /// Parses the first and last day. Throws `PeriodError` unless they are calendar days in order.
  package init(since: String, until: String, in zone: TimeZone) throws(PeriodError) {
    let calendar = Period.calendar(zone)
    guard let first = Period.day(since, calendar) else { throw PeriodError(text: since) }
    guard let last = Period.day(until, calendar) else { throw PeriodError(text: until) }
    guard first <= last else { throw PeriodError(text: "\(since) to \(until)") }
    self.init(from: first, to: last, calendar: calendar)
  }

  private init(from first: Date, to last: Date, calendar: Calendar) {
    // A day may not begin at midnight where clocks change then.
    let next = calendar.date(byAdding: .day, value: 1, to: calendar.startOfDay(for: last)) ?? last
    self.init(
      since: Period.text(first, calendar), until: Period.text(last, calendar),
      start: Instant(seconds: Int64(calendar.startOfDay(for: first).timeIntervalSince1970)),
      end: Instant(seconds: Int64(calendar.startOfDay(for: next).timeIntervalSince1970)))
  }

  package static func dayText(of instant: Instant, in zone: TimeZone) -> String {
    text(Date(timeIntervalSince1970: Double(instant.seconds)), calendar(zone))
  }

  private static func calendar(_ zone: TimeZone) -> Calendar {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = zone
    return calendar
  }

  private static func day(_ text: String, _ calendar: Calendar) -> Date? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard text.utf8.count == 10, parts.count == 3, parts.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } }),
      let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2]),
      let date = calendar.date(from: DateComponents(year: year, month: month, day: day, hour: 12))
    else { return nil }
    // The calendar would take 2026-02-30 for 2 March.
    return self.text(date, calendar) == text ? date : nil
  }

  private static func text(_ date: Date, _ calendar: Calendar) -> String {
    let parts = calendar.dateComponents([.year, .month, .day], from: date)
    func padded(_ number: Int?, _ width: Int) -> String {
      let digits = String(number ?? 0)
      return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    return "\(padded(parts.year, 4))-\(padded(parts.month, 2))-\(padded(parts.day, 2))"
  }
}

package struct PeriodError: RunEndingError, CustomStringConvertible {
  package var exitStatus: ExitStatus { .usage }
  package var text: String
  package var description: String {
    "\(text) is not a day or range of days; write days as 2026-11-19, the earlier one first"
  }
}
