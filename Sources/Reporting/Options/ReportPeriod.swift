import Reconciliation

/// The days that a report is about: one, or a range of them.
package struct ReportPeriod: Hashable, Sendable {
  /// First day, `2026-11-01`.
  package var since: String
  /// Last day, `2026-11-30`.
  package var until: String
  /// The first instant of the first day.
  package var start: Instant
  /// The first instant after the last day.
  package var end: Instant

  /// Civil days in the report's time zone, both ends included.
  package init(since: String, until: String, start: Instant, end: Instant) {
    self.since = since
    self.until = until
    self.start = start
    self.end = end
  }

  /// Whether it is more than one day.
  var isRange: Bool { since != until }

  /// For people: `2026-11-19`, or `2026-11-01 to 2026-11-30`.
  var days: String { isRange ? "\(since) to \(until)" : until }

  /// In names of files: `2026-11-19`, or `2026-11-01_2026-11-30`.
  var name: String { isRange ? "\(since)_\(until)" : until }

  /// Whether an instant lies in it.
  func contains(_ instant: Instant) -> Bool { instant >= start && instant < end }
}
