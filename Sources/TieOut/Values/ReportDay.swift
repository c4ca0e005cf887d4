import Reconciliation

/// A calendar day in Apple's reports, without a time zone.
package struct ReportDay: Hashable, Comparable, Strideable, Sendable, CustomStringConvertible {
  package var number: Int

  package init(number: Int) { self.number = number }

  /// nil for a date that does not exist.
  package init?(year: Int, month: Int, day: Int) {
    guard Self.years.contains(Int64(year)), let month = UInt8(exactly: month), let day = UInt8(exactly: day),
      let date = CivilDate(year: Int64(year), month: month, day: day)
    else { return nil }
    number = Int(date.daysSince1970)
  }

  /// `2026-11-19`, or as in sales and finance files `11/19/2026`.
  package init?(utf8 bytes: some Collection<UInt8>) {
    let bytes = Array(bytes)
    let date =
      CivilDate(bytes, yearAt: 0, monthAt: 5, dayAt: 8, mark: UInt8(ascii: "-"))
      ?? CivilDate(bytes, yearAt: 6, monthAt: 0, dayAt: 3, mark: UInt8(ascii: "/"))
    guard let date, Self.years.contains(date.year) else { return nil }
    number = Int(date.daysSince1970)
  }

  private static let years: ClosedRange<Int64> = 1900...2199

  package init?(_ text: String) { self.init(utf8: Array(text.utf8)) }

  package var civil: CivilDate { CivilDate(daysSince1970: Int64(number)) }

  package var description: String { civil.text }

  package var month: String { String(description.prefix(7)) }

  /// The Monday of its week. 1970-01-01 was a Thursday.
  package var monday: ReportDay { ReportDay(number: number - (number + 3) % 7) }

  package static func < (left: ReportDay, right: ReportDay) -> Bool { left.number < right.number }
  package func distance(to other: ReportDay) -> Int { other.number - number }
  package func advanced(by days: Int) -> ReportDay { ReportDay(number: number + days) }

  /// The days of a month; nil for a month that does not exist.
  package static func month(_ month: Int, of year: Int) -> ClosedRange<ReportDay>? {
    guard let first = ReportDay(year: year, month: month, day: 1),
      let next = ReportDay(year: month == 12 ? year + 1 : year, month: month % 12 + 1, day: 1)
    else { return nil }
    return first...next.advanced(by: -1)
  }
}

extension ReportDay {
  /// Apple's day may be one before ours to three after.
  static let timingLags = -1...3
}
