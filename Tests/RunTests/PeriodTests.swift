import Foundation
import Reconciliation
import Testing

@testable import Run

@Suite struct PeriodTests {
  private func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

  private func instant(_ text: String) throws -> Instant {
    Instant(seconds: Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970))
  }

  @Test(arguments: [
    ("UTC", "2026-11-20T03:00:00Z", "2026-11-19", "2026-11-19T00:00:00Z", "2026-11-20T00:00:00Z"),
    ("Europe/Berlin", "2026-11-19T23:30:00Z", "2026-11-19", "2026-11-18T23:00:00Z", "2026-11-19T23:00:00Z"),
    ("America/Los_Angeles", "2026-11-20T03:00:00Z", "2026-11-18", "2026-11-18T08:00:00Z", "2026-11-19T08:00:00Z"),
    // 25 hours, then 23.
    ("Europe/Berlin", "2026-10-26T03:00:00Z", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
    ("Europe/Berlin", "2026-03-30T03:00:00Z", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
    ("UTC", "2028-03-01T01:00:00Z", "2028-02-29", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"),
    ("Pacific/Kiritimati", "2026-01-01T03:00:00Z", "2025-12-31", "2025-12-30T10:00:00Z", "2025-12-31T10:00:00Z"),
  ])
  func theBusinessDayBeforeTheRun(_ name: String, _ asOf: String, _ day: String, _ start: String, _ end: String) throws
  {
    let period = Period.dayBefore(try instant(asOf), in: try zone(name))
    #expect(period.since == day)
    #expect(period.until == day)
    #expect(period.start == (try instant(start)))
    #expect(period.end == (try instant(end)))
  }

  @Test func bothEndsAreIncluded() throws {
    let period = try Period(since: "2026-11-01", until: "2026-11-30", in: try zone("UTC"))
    #expect(period.contains(try instant("2026-11-01T00:00:00Z")))
    #expect(period.contains(try instant("2026-11-30T23:59:59Z")))
    #expect(!period.contains(try instant("2026-12-01T00:00:00Z")))
    #expect(!period.contains(try instant("2026-10-31T23:59:59Z")))
  }

  @Test(
    "days of a period that have not ended at the as-of are counted",
    arguments: [
      ("UTC", "2026-11-27T03:00:00Z", 4), ("UTC", "2026-12-01T00:00:00Z", 0), ("UTC", "2026-11-30T23:59:59Z", 1),
      ("UTC", "2026-10-01T03:00:00Z", 30), ("Europe/Berlin", "2026-11-29T22:59:59Z", 2),
      ("Europe/Berlin", "2026-11-29T23:00:00Z", 1), ("America/Los_Angeles", "2026-12-01T03:00:00Z", 1),
    ])
  func missingDays(_ name: String, _ asOf: String, _ days: Int) throws {
    let zone = try zone(name)
    let period = try Period(since: "2026-11-01", until: "2026-11-30", in: zone)
    #expect(period.missingDays(at: try instant(asOf), in: zone) == days)
  }

  @Test(arguments: ["2026-02-30", "2026-2-3", "20261119", "", "tomorrow", "2026-13-01", "٢٠٢٦-11-19", "2026-11-19Z"])
  func invalidDaysAreRejected(_ text: String) throws {
    let utc = try zone("UTC")
    #expect(throws: PeriodError.self) { try Period(since: text, until: text, in: utc) }
  }
}
