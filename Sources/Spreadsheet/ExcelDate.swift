/// A day and a time of day without a zone: what a clock on the wall shows. Excel knows nothing else.
package struct CivilDateTime: Hashable, Sendable {
  /// 1900...9999.
  package let year: Int
  /// 1...12.
  package let month: Int
  /// 1...31, as the month has it.
  package let day: Int
  /// 0...23.
  package let hour: Int
  /// 0...59.
  package let minute: Int
  /// 0...59: Excel knows no leap seconds.
  package let second: Int

  /// A day and time; that there is such a one is checked where it is written.
  package init(year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0) {
    self.year = year
    self.month = month
    self.day = day
    self.hour = hour
    self.minute = minute
    self.second = second
  }
}

/// Excel's serial numbers: days since the last day of 1899, time as the fraction.
package enum ExcelDate {
  /// The serial number, or nil when there is no such day or time, or Excel has no such year.
  static func serial(_ value: CivilDateTime) -> Double? {
    guard
      (1900...9999).contains(value.year), (1...12).contains(value.month),
      (1...daysInMonth(value.month, of: value.year)).contains(value.day),
      (0...23).contains(value.hour), (0...59).contains(value.minute), (0...59).contains(value.second)
    else { return nil }
    let seconds = (value.hour * 60 + value.minute) * 60 + value.second
    let days = daysSince1970(year: value.year, month: value.month, day: value.day)
    return serial(secondsSince1970: Int64(days) * 86_400 + Int64(seconds))
  }

  /// The serial number of seconds since 1970 as the wall clock counts them, or nil outside 1900...9999.
  package static func serial(secondsSince1970 seconds: Int64) -> Double? {
    guard (-2_208_988_800...253_402_300_799).contains(seconds) else { return nil }
    // 25,569 is 1970-01-01.
    let serial = 25_569 + Double(seconds) / 86_400
    // Excel believes that 1900 was a leap year: before 1 March 1900 its days are one lower.
    return serial < 61 ? serial - 1 : serial
  }

  private static func daysInMonth(_ month: Int, of year: Int) -> Int {
    switch month {
    case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Days of the proleptic Gregorian calendar, counted in years that begin in March so that the leap day is last.
  private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let shifted = month > 2 ? year : year - 1
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}
