/// A date and time without a zone, as Excel stores them. Validity is checked when it is written.
package struct CivilDateTime: Hashable, Sendable {
  package let year: Int
  package let month: Int
  package let day: Int
  package let hour: Int
  package let minute: Int
  package let second: Int

  package init(year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0) {
    self.year = year
    self.month = month
    self.day = day
    self.hour = hour
    self.minute = minute
    self.second = second
  }
}

/// Excel's serial numbers: days since 1899-12-31, with the time as fraction.
package enum ExcelDate {
  /// Returns the serial number; nil for an invalid date or time, or a year outside 1900...9999.
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

  package static func serial(secondsSince1970 seconds: Int64) -> Double? {
    guard (-2_208_988_800...253_402_300_799).contains(seconds) else { return nil }
    // 25,569 is 1970-01-01.
    let serial = 25_569 + Double(seconds) / 86_400
    // Excel takes 1900 for a leap year, so its days before 1 March 1900 are one lower.
    return serial < 61 ? serial - 1 : serial
  }

  private static func daysInMonth(_ month: Int, of year: Int) -> Int {
    switch month {
    case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  // Proleptic Gregorian calendar; years start in March, so that the leap day is the last day.
  private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let shifted = month > 2 ? year : year - 1
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
  }
}
