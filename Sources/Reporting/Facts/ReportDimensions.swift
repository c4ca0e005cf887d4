import Foundation
import Reconciliation

/// Derives the app name and the business day of a row.
package struct ReportDimensions {
  private let apps: [String: String]
  private let onlyApp: String?
  private var clock: LocalClock
  /// Names of days, by the last digits of the day, in a memory that dates of any century cannot fill.
  private var days: [(day: Int64, text: String)] = Array(repeating: (.min, ""), count: 1 << 10)

  package init(apps: [String: String], timeZone: TimeZone) {
    self.apps = apps
    onlyApp = apps.count == 1 ? apps.values.first : nil
    clock = LocalClock(timeZone: timeZone)
  }

  /// The configured name; without a bundle ID that of the only configured app.
  package func app(_ bundleId: String?) -> String? { bundleId.map { apps[$0] } ?? onlyApp }

  func app(_ bundleId: BorrowedText?) -> String? {
    guard let bundleId else { return onlyApp }
    for (known, name) in apps where bundleId.isSame(as: known) { return name }
    return nil
  }

  /// The day in the zone, `2026-11-19`.
  package mutating func businessDay(of instant: Instant) -> String {
    let day = CivilTime(seconds: clock.localSeconds(instant)).day
    let place = Int(truncatingIfNeeded: day) & (days.count - 1)
    if days[place].day != day { days[place] = (day, CivilDate(daysSince1970: day).text) }
    return days[place].text
  }
}
