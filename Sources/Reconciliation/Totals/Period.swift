/// The days whose orders are totalled: civil days in the report's time zone, both ends included.
public struct Period: Hashable, Sendable {
  public var since: String
  public var until: String
  public var start: Instant
  /// The first instant after the last day.
  public var end: Instant

  public init(since: String, until: String, start: Instant, end: Instant) {
    (self.since, self.until, self.start, self.end) = (since, until, start, end)
  }

  public var isRange: Bool { since != until }

  /// The days for people: `2026-11-19`, or `2026-11-01 to 2026-11-30`.
  public var days: String { isRange ? "\(since) to \(until)" : until }

  /// The days in names of files and folders: `2026-11-19`, or `2026-11-01_2026-11-30`.
  public var folderName: String { isRange ? "\(since)_\(until)" : until }

  public func contains(_ instant: Instant) -> Bool { instant >= start && instant < end }
}
