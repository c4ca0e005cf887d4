import Foundation
import Reconciliation

extension Period {
  /// The options of a command that select the period, also on a later day.
  package var options: String { since == until ? "--date \(until)" : "--since \(since) --until \(until)" }

  /// The number of days of the period that have not ended at an as-of.
  package func missingDays(at asOf: Instant, in zone: TimeZone) -> Int {
    guard asOf < end, let first = CivilDate(max(since, Period.dayText(of: asOf, in: zone))),
      let last = CivilDate(until)
    else { return 0 }
    return Int(last.daysSince1970 - first.daysSince1970) + 1
  }

  package static func dayBefore(_ asOf: Instant, in zone: TimeZone) -> Period {
    let yesterday = zone.day(of: zone.start(of: zone.day(of: asOf)) - .seconds(1))
    return Period(from: yesterday, to: yesterday, in: zone)
  }

  /// Parses the first and last day. Throws `PeriodError` unless they are calendar days in order.
  package init(since: String, until: String, in zone: TimeZone) throws(PeriodError) {
    guard let first = zone.day(since) else { throw PeriodError(text: since) }
    guard let last = zone.day(until) else { throw PeriodError(text: until) }
    guard first.daysSince1970 <= last.daysSince1970 else { throw PeriodError(text: "\(since) to \(until)") }
    self.init(from: first, to: last, in: zone)
  }

  private init(from first: CivilDate, to last: CivilDate, in zone: TimeZone) {
    self.init(
      since: first.text, until: last.text, start: zone.start(of: first),
      end: zone.start(of: CivilDate(daysSince1970: last.daysSince1970 + 1)))
  }

  package static func dayText(of instant: Instant, in zone: TimeZone) -> String { zone.day(of: instant).text }
}

extension TimeZone {
  package func day(of instant: Instant) -> CivilDate {
    let offset = secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds)))
    return CivilDate(daysSince1970: CivilTime(seconds: instant.seconds + Int64(offset)).day)
  }

  /// The first instant of a day, which may not be midnight where clocks change then.
  package func start(of day: CivilDate) -> Instant {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = self
    // From noon, which exists on every day in every zone.
    let parts = DateComponents(year: Int(day.year), month: Int(day.month), day: Int(day.day), hour: 12)
    let noon = calendar.date(from: parts) ?? .distantPast
    return Instant(seconds: Int64(calendar.startOfDay(for: noon).timeIntervalSince1970))
  }

  /// nil for other text than `2026-11-19`, and for days that do not exist.
  fileprivate func day(_ text: String) -> CivilDate? {
    CivilDate(text).flatMap { day(of: start(of: $0)) == $0 ? $0 : nil }
  }
}

package struct PeriodError: RunEndingError, CustomStringConvertible {
  package var exitStatus: ExitStatus { .usage }
  package var text: String
  package var description: String {
    "\(text) is not a day or range of days; write days as 2026-11-19, the earlier one first"
  }
}
