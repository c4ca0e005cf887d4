import Foundation
import Reconciliation

/// Derives the app name and the business day of a row.
package struct ReportDimensions {
  private let apps: [String: String]
  private let onlyApp: String?
  private var clock: LocalClock
  private var texts: [Int64: String] = [:]

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
    if let known = texts[day] { return known }
    let text = CivilDate(daysSince1970: day).text
    // Invalid rows may have dates of any century.
    if texts.count >= 4_096 { texts.removeAll(keepingCapacity: true) }
    texts[day] = text
    return text
  }
}
