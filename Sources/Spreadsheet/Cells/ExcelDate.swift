/// Excel's serial numbers: days since 1899-12-31, with the time as fraction.
package enum ExcelDate {
  /// nil for a year outside 1900...9999.
  package static func serial(secondsSince1970 seconds: Int64) -> Double? {
    guard (-2_208_988_800...253_402_300_799).contains(seconds) else { return nil }
    // 25,569 is 1970-01-01.
    let serial = 25_569 + Double(seconds) / 86_400
    // Excel takes 1900 for a leap year, so its days before 1 March 1900 are one lower.
    return serial < 61 ? serial - 1 : serial
  }
}
