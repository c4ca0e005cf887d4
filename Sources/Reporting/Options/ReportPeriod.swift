import Reconciliation

package struct ReportPeriod: Hashable, Sendable {
  package var since: String
  package var until: String
  package var start: Instant
  /// The first instant after the last day.
  package var end: Instant

  package init(since: String, until: String, start: Instant, end: Instant) {
    (self.since, self.until, self.start, self.end) = (since, until, start, end)
  }

  var isRange: Bool { since != until }

  /// Text for people: `2026-11-19`, or `2026-11-01 to 2026-11-30`.
  var days: String { isRange ? "\(since) to \(until)" : until }

  var name: String { isRange ? "\(since)_\(until)" : until }

  func contains(_ instant: Instant) -> Bool { instant >= start && instant < end }
}
