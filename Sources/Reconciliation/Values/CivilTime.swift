/// A day and a time of day, computed without a calendar library.
public struct CivilTime: Hashable {
  public let day: Int64
  public let hour: UInt8
  public let minute: UInt8
  public let second: UInt8

  public init(seconds: Int64) {
    let (days, rest) = seconds.quotientAndRemainder(dividingBy: 86_400)
    day = rest < 0 ? days - 1 : days
    let secondOfDay = rest < 0 ? rest + 86_400 : rest
    hour = UInt8(secondOfDay / 3_600)
    minute = UInt8(secondOfDay / 60 % 60)
    second = UInt8(secondOfDay % 60)
  }
}

/// A day of the proleptic Gregorian calendar.
public struct CivilDate: Hashable {
  /// Astronomical year: 0 is 1 BC.
  public let year: Int64
  public let month: UInt8
  public let day: UInt8

  public init(daysSince1970 days: Int64) {
    // Days since 0000-03-01. A year that starts in March has its leap day at the end, so the months before follow one
    // rule: 153 days in five months.
    let (wholeEras, rest) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
    let era = rest < 0 ? wholeEras - 1 : wholeEras
    let dayOfEra = rest < 0 ? rest + 146_097 : rest
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = UInt8(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
    month = UInt8(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }
}

extension CivilDate {
  /// A day such as `2026-11-19`; nil for other text and for days that do not exist.
  public init?(_ text: String) {
    self.init(Array(text.utf8), yearAt: 0, monthAt: 5, dayAt: 8, mark: UInt8(ascii: "-"))
  }

  /// A day in ten bytes, by the places of its parts; a mark is before each part but the first. nil for other bytes.
  public init?(_ bytes: [UInt8], yearAt: Int, monthAt: Int, dayAt: Int, mark: UInt8) {
    func number(_ place: Int, _ count: Int) -> Int64? {
      guard place == 0 || bytes[place - 1] == mark else { return nil }
      return bytes[place..<place + count].reduce(0) { sum, byte in
        sum.flatMap { (48...57).contains(byte) ? $0 * 10 + Int64(byte - 48) : nil }
      }
    }
    guard bytes.count == 10, let year = number(yearAt, 4), let month = number(monthAt, 2), let day = number(dayAt, 2)
    else { return nil }
    self.init(year: year, month: UInt8(month), day: UInt8(day))
  }

  /// nil for a day that does not exist.
  public init?(year: Int64, month: UInt8, day: UInt8) {
    guard (1...12).contains(month) else { return nil }
    let date = CivilDate(daysSince1970: CivilDate.days(year: year, month: month, day: day))
    guard date.year == year, date.month == month, date.day == day else { return nil }
    self = date
  }

  public var text: String {
    func padded(_ part: Int64, _ places: Int) -> String {
      let digits = String(part.magnitude)
      return (part < 0 ? "-" : "") + String(repeating: "0", count: max(0, places - digits.count)) + digits
    }
    return "\(padded(year, 4))-\(padded(Int64(month), 2))-\(padded(Int64(day), 2))"
  }

  public var daysSince1970: Int64 { CivilDate.days(year: year, month: month, day: day) }

  /// 400 years are added so that no negative number is divided.
  private static func days(year: Int64, month: UInt8, day: UInt8) -> Int64 {
    let yearFromMarch = year + (month > 2 ? 400 : 399)
    let monthFromMarch = (Int64(month) + 9) % 12
    let (era, yearOfEra) = (yearFromMarch / 400, yearFromMarch % 400)
    let dayOfYear = (153 * monthFromMarch + 2) / 5 + Int64(day) - 1
    return (era - 1) * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

/// Days of the calendar as text and as spreadsheet numbers.
public enum CalendarDay {
  public static func isDay(_ text: String) -> Bool { CivilDate(text) != nil }

  /// The day of a spreadsheet's serial number, `2026-11-19`; nil outside of 2000 to 2199.
  public static func text(serial: String) -> String? {
    // 25,569 is 1970-01-01; the fraction is a time of day.
    guard let number = Double(serial), (36_526...109_574).contains(number) else { return nil }
    return CivilDate(daysSince1970: Int64(number.rounded(.down)) - 25_569).text
  }
}

extension Instant {
  /// RFC 3339 in UTC, rounded down to seconds: `2026-11-19T22:14:03Z`.
  public var text: String {
    let time = CivilTime(seconds: seconds)
    let date = CivilDate(daysSince1970: time.day)
    // The fast path, because a report contains hundreds of thousands of instants.
    let isOfFourDigits = (0...9_999).contains(date.year)
    let text = Instant.text(
      isOfFourDigits ? Int(date.year) : 0, date.month, date.day, time.hour, time.minute, time.second)
    return isOfFourDigits ? text : date.text + text.drop { $0 != "T" }
  }
}

extension Instant {
  private static func text(
    _ year: Int, _ month: UInt8, _ day: UInt8, _ hour: UInt8, _ minute: UInt8, _ second: UInt8
  ) -> String {
    String(unsafeUninitializedCapacity: 20) { text in
      func put(_ number: UInt8, at place: Int, behind mark: UInt8) {
        (text[place - 1], text[place], text[place + 1]) = (mark, 48 + number / 10, 48 + number % 10)
      }
      (text[0], text[1]) = (48 + UInt8(year / 1_000), 48 + UInt8(year / 100 % 10))
      (text[2], text[3]) = (48 + UInt8(year / 10 % 10), 48 + UInt8(year % 10))
      put(month, at: 5, behind: UInt8(ascii: "-"))
      put(day, at: 8, behind: UInt8(ascii: "-"))
      put(hour, at: 11, behind: UInt8(ascii: "T"))
      put(minute, at: 14, behind: UInt8(ascii: ":"))
      put(second, at: 17, behind: UInt8(ascii: ":"))
      text[19] = UInt8(ascii: "Z")
      return 20
    }
  }
}
