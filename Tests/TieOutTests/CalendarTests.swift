import Foundation
import Reconciliation
import Testing

@testable import TieOut

struct CalendarTests {
  private let zone: TimeZone

  init() throws { zone = try #require(TimeZone(identifier: "America/Los_Angeles")) }

  @Test func daysAreThoseOfTheGregorianCalendar() throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    for number in stride(from: 0, to: 47_000, by: 13) {
      let parts = calendar.dateComponents(
        [.year, .month, .day], from: Date(timeIntervalSince1970: Double(number) * 86_400))
      let day = ReportDay(number: number)
      #expect([Int(day.civil.year), Int(day.civil.month), Int(day.civil.day)] == [parts.year, parts.month, parts.day])
      #expect(ReportDay(day.description) == day)
    }
    #expect(ReportDay("11/19/2026") == ReportDay("2026-11-19"))
    #expect(ReportDay("02/29/2026") == nil && ReportDay("2026-13-01") == nil && ReportDay("2026-1-01") == nil)
  }

  @Test func weeksBeginOnMonday() throws {
    let sunday = try #require(ReportDay("2026-11-22"))
    #expect(sunday.monday.description == "2026-11-16" && sunday.advanced(by: 1).monday == sunday.advanced(by: 1))
  }

  @Test("The first reported week is one with all its sales known, which Apple may count up to three days later")
  func firstWholeWeek() throws {
    for (day, expected) in [("2026-07-23", "2026-07-27"), ("2026-07-24", "2026-08-03"), ("2026-07-27", "2026-08-03")] {
      let start = zone.start(of: try #require(ReportDay(day)))
      #expect(zone.firstWeek(since: start + .hours(20)).description == expected, "\(day)")
    }
  }

  @Test(arguments: [("2026-11-01", 25), ("2026-03-08", 23), ("2026-11-19", 24)])
  func dayLengthsFollowTheTimeZone(text: String, hours: Int64) throws {
    let day = try #require(ReportDay(text))
    #expect(zone.start(of: day.advanced(by: 1)) - zone.start(of: day) == .hours(hours))
    let days = ReportDays(day.advanced(by: -1)...day.advanced(by: 1), in: zone)
    #expect(days.day(of: zone.start(of: day)) == day)
    #expect(days.day(of: zone.start(of: day) - .seconds(1)) == day.advanced(by: -1))
    #expect(days.day(of: days.end(of: day) - .seconds(1)) == day)
    #expect(days.day(of: days.end) == nil && days.day(of: days.start - .seconds(1)) == nil)
    #expect(zone.reportDay(of: days.end(of: day) - .seconds(1)) == day)
  }

  @Test func westernEveningsBelongToTheEarlierDay() {
    #expect(zone.reportDay(of: Instant(seconds: 1_795_143_600)).description == "2026-11-19")
  }

  /// Published first days of periods 02 to 12, and the year's end.
  @Test(arguments: [
    (2024, "2023-10-01", "11-05 12-03 12-31 02-04 03-03 03-31 05-05 06-02 06-30 08-04 09-01", "2024-09-28"),
    (2025, "2024-09-29", "11-03 12-01 12-29 02-02 03-02 03-30 05-04 06-01 06-29 08-03 08-31", "2025-09-27"),
    (2026, "2025-09-28", "11-02 11-30 12-28 02-01 03-01 03-29 05-03 05-31 06-28 08-02 08-30", "2026-09-26"),
    (2027, "2026-09-27", "11-01 11-29 12-27 01-31 02-28 03-28 05-02 05-30 06-27 08-01 08-29", "2027-09-25"),
    (2028, "2027-09-26", "10-31 11-28 01-02 02-06 03-05 04-02 05-07 06-04 07-02 08-06 09-03", "2028-09-30"),
    (2029, "2028-10-01", "11-05 12-03 12-31 02-04 03-04 04-01 05-06 06-03 07-01 08-05 09-02", "2029-09-29"),
    (2030, "2029-09-30", "11-04 12-02 12-30 02-03 03-03 03-31 05-05 06-02 06-30 08-04 09-01", "2030-09-28"),
  ])
  func fiscalYearsAreApples(year: Int, first: String, periods: String, last: String) {
    let found = FiscalCalendar.periods.filter { $0.year == year }
    #expect(found.count == 12 && found[0].first.description == first && found[11].last.description == last)
    #expect(found.dropFirst().map { String($0.first.description.suffix(5)) }.joined(separator: " ") == periods)
  }

  @Test func everyDayIsInOnePeriodThatStartsOnSundayAndEndsOnSaturday() {
    let periods = FiscalCalendar.periods
    for (period, next) in zip(periods, periods.dropFirst()) {
      #expect(period.last.advanced(by: 1) == next.first)
      #expect((period.first.number + 4) % 7 == 0 && (period.last.number + 4) % 7 == 6)
    }
    for period in periods where period.number == 12 {
      #expect(period.last.civil.month == 9 && period.last.advanced(by: 7).civil.month == 10)
    }
  }

  @Test func paymentsComeOnThursdays() throws {
    let first = try #require(FiscalCalendar.period(named: "2026-01"))
    #expect(first.paymentDay.description == "2025-12-04")
    for period in FiscalCalendar.periods { #expect((period.paymentDay.number + 4) % 7 == 4) }
  }
}
