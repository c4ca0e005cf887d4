import Foundation
import Reconciliation

/// The configured name of a row's app, and its business day in the report's time zone.
struct ReportDimensions {
  private let apps: [String: String]
  private let onlyApp: String?
  private var clock: LocalClock
  private var last: (day: Int64, text: String)?

  /// - Parameter apps: the configured names by bundle ID.
  init(apps: [String: String], timeZone: TimeZone) {
    self.apps = apps
    onlyApp = apps.count == 1 ? apps.values.first : nil
    clock = LocalClock(timeZone: timeZone)
  }

  /// The name of an app; without a bundle ID the only one that is configured.
  func app(_ bundleId: String?) -> String? { bundleId.map { apps[$0] } ?? onlyApp }

  /// The name of an app, from its bundle ID where it lies.
  func app(_ bundleId: BorrowedText?) -> String? {
    guard let bundleId else { return onlyApp }
    for (known, name) in apps where bundleId.isSame(as: known) { return name }
    return nil
  }

  /// The day on which clocks of the zone show an instant: `2026-11-19`.
  mutating func businessDay(of instant: Instant) -> String {
    let day = CivilTime(seconds: clock.localSeconds(instant)).day
    if let last, last.day == day { return last.text }
    let text = CivilDate(daysSince1970: day).text
    last = (day, text)
    return text
  }
}
