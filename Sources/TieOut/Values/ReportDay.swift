import Reconciliation

/// A calendar day in Apple's reports, without a time zone.
package struct ReportDay: Hashable, Comparable, Strideable, Sendable, CustomStringConvertible {
  package var number: Int

  package init(number: Int) { self.number = number }

  /// nil for a date that does not exist.
  package init?(year: Int, month: Int, day: Int) {
    guard (1900...2199).contains(year), let month = UInt8(exactly: month), let day = UInt8(exactly: day),
      let date = CivilDate(year: Int64(year), month: month, day: day)
    else { return nil }
    number = Int(date.daysSince1970)
  }

  /// `2026-11-19`, or as in sales and finance files `11/19/2026`.
  package init?(utf8 bytes: some Collection<UInt8>) {
    guard bytes.count == 10 else { return nil }
    let bytes = Array(bytes)
    func number(_ range: Range<Int>) -> Int? {
      var value = 0
      for byte in bytes[range] {
        guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        value = value * 10 + Int(byte - UInt8(ascii: "0"))
      }
      return value
    }
    if bytes[2] == UInt8(ascii: "/"), bytes[5] == UInt8(ascii: "/") {
      guard let month = number(0..<2), let day = number(3..<5), let year = number(6..<10) else { return nil }
      self.init(year: year, month: month, day: day)
    } else {
      guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), let year = number(0..<4),
        let month = number(5..<7), let day = number(8..<10)
      else { return nil }
      self.init(year: year, month: month, day: day)
    }
  }

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
