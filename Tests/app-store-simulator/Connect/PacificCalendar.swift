import Foundation

/// Report days and fiscal periods. The code is independent of the code under test on purpose.
enum PacificCalendar {
  private static let calendar: Calendar = {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = TimeZone(identifier: "America/Los_Angeles") ?? .gmt
    return calendar
  }()

  static func day(_ milliseconds: Int64) -> String {
    let parts = calendar.dateComponents(
      [.year, .month, .day], from: Date(timeIntervalSince1970: Double(milliseconds) / 1_000))
    return text(parts)
  }

  static func start(of day: String) -> Int64? {
    let parts = day.split(separator: "-").compactMap { Int($0) }
    guard parts.count == 3, parts[0] > 1_900,
      let date = calendar.date(from: DateComponents(year: parts[0], month: parts[1], day: parts[2], hour: 12)),
      text(calendar.dateComponents([.year, .month, .day], from: date)) == day
    else { return nil }
    return Int64(calendar.startOfDay(for: date).timeIntervalSince1970 * 1_000)
  }

  static func adding(_ days: Int, to day: String) -> String {
    guard let start = start(of: day),
      let date = calendar.date(
        byAdding: .day, value: days, to: Date(timeIntervalSince1970: Double(start) / 1_000 + 43_200))
    else { return day }
    return text(calendar.dateComponents([.year, .month, .day], from: date))
  }

  /// For example `11/19/2026`.
  static func american(_ day: String) -> String {
    let parts = day.split(separator: "-")
    return parts.count == 3 ? "\(parts[1])/\(parts[2])/\(parts[0])" : day
  }

  static func period(_ name: String) -> (first: String, last: String)? {
    let parts = name.split(separator: "-").compactMap { Int($0) }
    guard parts.count == 2, (1...12).contains(parts[1]) else { return nil }
    let (before, end) = (lastSaturday(parts[0] - 1), lastSaturday(parts[0]))
    var first = adding(1, to: before)
    guard let from = start(of: first), let until = start(of: end) else { return nil }
    let has53Weeks = (until - from) / 86_400_000 > 364
    for number in 1...12 {
      let weeks = number % 3 == 1 || (number == 3 && has53Weeks) ? 5 : 4
      let last = adding(7 * weeks - 1, to: first)
      if number == parts[1] { return (first, last) }
      first = adding(1, to: last)
    }
    return nil
  }

  private static func lastSaturday(_ year: Int) -> String {
    for day in stride(from: 30, to: 23, by: -1) {
      let parts = DateComponents(year: year, month: 9, day: day, hour: 12)
      if let date = calendar.date(from: parts), calendar.component(.weekday, from: date) == 7 {
        return text(calendar.dateComponents([.year, .month, .day], from: date))
      }
    }
    return "\(year)-09-30"
  }

  private static func text(_ parts: DateComponents) -> String {
    func padded(_ number: Int?) -> String { (number ?? 0) < 10 ? "0\(number ?? 0)" : "\(number ?? 0)" }
    return "\(parts.year ?? 0)-\(padded(parts.month))-\(padded(parts.day))"
  }
}
