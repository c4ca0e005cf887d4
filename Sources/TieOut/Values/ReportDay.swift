/// A calendar day in Apple's reports, without a time zone.
package struct ReportDay: Hashable, Comparable, Strideable, Sendable, CustomStringConvertible {
  package var number: Int

  package init(number: Int) { self.number = number }

  /// nil for a date that does not exist.
  package init?(year: Int, month: Int, day: Int) {
    guard (1900...2199).contains(year), (1...12).contains(month), day >= 1, day <= Self.days(of: month, in: year)
    else { return nil }
    // Years start in March here, so that the leap day is the last.
    let shifted = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = (shifted / 400, shifted % 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    number = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
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

  package var civil: (year: Int, month: Int, day: Int) {
    let days = number + 719_468
    let (era, dayOfEra) = (days / 146_097, days % 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (
      yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    )
  }

  package var description: String {
    let (year, month, day) = civil
    return "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)"
  }

  package var month: String { String(description.prefix(7)) }

  /// The Monday of its week. 1970-01-01 was a Thursday.
  package var monday: ReportDay { ReportDay(number: number - (number + 3) % 7) }

  package static func < (left: ReportDay, right: ReportDay) -> Bool { left.number < right.number }
  package func distance(to other: ReportDay) -> Int { other.number - number }
  package func advanced(by days: Int) -> ReportDay { ReportDay(number: number + days) }

  package static func days(of month: Int, in year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}
