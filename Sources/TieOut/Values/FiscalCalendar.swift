/// A period of Apple's fiscal calendar. `2026-02` is the second of fiscal 2026, from 2025-11-02 to 2025-11-29.
package struct FiscalPeriod: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let year: Int
  package let number: Int
  package let first: ReportDay
  package let last: ReportDay

  package var description: String { "\(year)-\(number < 10 ? "0" : "")\(number)" }

  /// 33 days after the period's end, a Thursday.
  package var paymentDay: ReportDay { last.advanced(by: 33) }

  package func contains(_ day: ReportDay) -> Bool { first <= day && day <= last }

  package static func < (left: FiscalPeriod, right: FiscalPeriod) -> Bool { left.first < right.first }
}

/// Apple's fiscal calendar. Years end on the last Saturday of September; quarters have 5, 4 and 4 weeks; a year of 53
/// weeks has the extra one in period 03. Dates in each file are checked against it, because Apple may change it.
package enum FiscalCalendar {
  private static let years: [(year: Int, first: String, has53Weeks: Bool)] = [
    (2020, "2019-09-29", false), (2021, "2020-09-27", false), (2022, "2021-09-26", false), (2023, "2022-09-25", true),
    (2024, "2023-10-01", false), (2025, "2024-09-29", false), (2026, "2025-09-28", false), (2027, "2026-09-27", false),
    (2028, "2027-09-26", true), (2029, "2028-10-01", false), (2030, "2029-09-30", false), (2031, "2030-09-29", false),
    (2032, "2031-09-28", false), (2033, "2032-09-26", false), (2034, "2033-09-25", true), (2035, "2034-10-01", false),
  ]

  package static let periods: [FiscalPeriod] = years.flatMap { year, first, has53Weeks -> [FiscalPeriod] in
    guard var day = ReportDay(first) else { return [] }
    return (1...12).map { number in
      let weeks = number % 3 == 1 ? 5 : number == 3 && has53Weeks ? 5 : 4
      let period = FiscalPeriod(year: year, number: number, first: day, last: day.advanced(by: weeks * 7 - 1))
      day = day.advanced(by: weeks * 7)
      return period
    }
  }

  /// nil before fiscal 2020 and beyond the table.
  package static func period(containing day: ReportDay) -> FiscalPeriod? { periods.first { $0.contains(day) } }

  package static func period(named name: String) -> FiscalPeriod? { periods.first { $0.description == name } }
}
