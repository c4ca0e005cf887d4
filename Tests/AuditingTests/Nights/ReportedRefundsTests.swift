import Postgres
import Reconciliation
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Reporting
@testable import Run

@Suite struct ReportedRefundsTests {
  private static let start = Instant(seconds: 1_795_046_400)  // 2026-11-19T00:00:00Z

  private static func hours(_ hours: Int64) -> Instant { start + .hours(hours) }

  private static func days(_ first: Int64, _ last: Int64) -> Range<Instant> {
    start + .days(first)..<start + .days(last + 1)
  }

  /// The night of a day, three hours after the day.
  private static func night(_ day: Int64, hoursLater: Int64 = 3) -> ReportedRefunds.Night {
    ReportedRefunds.Night(span: days(day, day), asOf: hours(24 * (day + 1) + hoursLater))
  }

  @Test func aRefundBelongsToThePeriodThatReportedItFirst() {
    let refund = Self.hours(30)  // On day 1.
    let cases: [(name: String, period: Range<Instant>, nights: [ReportedRefunds.Night], stated: Int64?, isHere: Bool)] =
      [
        ("its own day", Self.days(1, 1), [Self.night(0)], 31, true),
        ("the first night, in the period", Self.days(1, 1), [], 31, true),
        ("the first night, before the period", Self.days(2, 2), [], 31, false),
        ("known to its own night", Self.days(2, 2), [Self.night(0), Self.night(1)], 31, false),
        ("stated after its own night", Self.days(2, 2), [Self.night(0), Self.night(1)], 60, true),
        ("stated late, reported by the night after", Self.days(3, 3), [1, 2].map { Self.night($0) }, 60, false),
        ("its own day made again", Self.days(1, 1), [1, 2].map { Self.night($0) }, 31, true),
        (
          "its own day made again, reported by the night after", Self.days(1, 1), [1, 2].map { Self.night($0) }, 60,
          false
        ),
        ("the month", Self.days(0, 2), [0, 1, 2].map { Self.night($0) }, 60, true),
        ("the month before the night that reported it", Self.days(0, 1), [0, 1, 2].map { Self.night($0) }, 60, false),
        ("the month, before any night reported it", Self.days(0, 1), [0, 1].map { Self.night($0) }, 60, false),
        ("a day without a night keeps it", Self.days(2, 2), [Self.night(0)], 60, false),
        ("and reports it when it is made", Self.days(1, 1), [Self.night(0), Self.night(2)], 60, true),
        ("without stored evidence its date decides", Self.days(2, 2), [Self.night(1)], nil, false),
        ("dated after the period", Self.days(0, 0), [], 31, false),
      ]
    for (name, period, nights, stated, isHere) in cases {
      let reported = ReportedRefunds(period, nights: nights, isNight: !name.hasPrefix("the month"))
      #expect(reported.isReported(date: refund, stated: stated.map(Self.hours)) == isHere, "\(name)")
    }
  }

  /// The changes since are adjustments of later nights.
  @Test func aReportBeforeLaterNightsListsRefundsAsStored() {
    let nights = [0, 1, 2].map { Self.night($0) }
    let cases: [(name: String, period: Range<Instant>, isNight: Bool, storedBefore: Instant?)] = [
      ("the newest night made again", Self.days(2, 2), true, nil),
      ("the night of the next day", Self.days(3, 3), true, nil),
      ("a day made again after a later night", Self.days(1, 1), true, nights[2].asOf),
      ("a month made after a later night", Self.days(0, 1), false, nights[2].asOf),
      ("a month of all nights", Self.days(0, 2), false, nights[2].asOf + .seconds(1)),
      ("a month whose last day has no night", Self.days(0, 3), false, nil),
    ]
    for (name, period, isNight, storedBefore) in cases {
      let reported = ReportedRefunds(period, nights: nights, isNight: isNight)
      #expect(reported.storedBefore == storedBefore, "\(name)")
    }
  }

  @Test func decisionsOfPeopleSinceThePreviousReportAreCountedByType() async throws {
    let conninfo = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      let events: [(id: String, hours: Int64, event: String, detail: String?, actor: String?)] = [
        ("a1", 1, "status", "acknowledged", "anna"), ("a1", 2, "owner", "ops", "anna"),
        ("a2", 2, "status", "acknowledged", "anna"), ("a2", 3, "status", "accepted", "anna"),
        ("a2", 4, "status", "accepted", "bob"), ("a3", 5, "status", "open", "bob"),
        ("a3", 5, "due", "2026-12-01", "bob"),
        // A prolonged acceptance has no other event; a2 counts once, and the end of an acceptance not at all.
        ("a2", 4, "acceptance", "until 2026-12-01", "bob"), ("a4", 6, "acceptance", "until 2026-12-31", "bob"),
        ("a3", 6, "acceptance", nil, "bob"),
        // Events before the base night, after the as-of, and by a night do not count.
        ("a3", -1, "remark", "r", "bob"), ("a3", 25, "remark", "r", "bob"), ("a3", 5, "opened", nil, nil),
      ]
      for (id, hours, event, detail, actor) in events {
        try connection.execute(
          """
          INSERT INTO night_audit.finding_events (finding_id, as_of, event, detail, actor, run_id)
          VALUES ($1, $2, $3, $4, $5, CASE WHEN $5 IS NULL THEN gen_random_uuid() END)
          """, [.text(id), .timestamp(Self.hours(hours).microseconds), .text(event), .text(detail), .text(actor)])
      }
      let counts = try DecisionCounts(since: Self.start, until: Self.hours(24), on: connection)
      #expect(counts.counts == ["acknowledged": 2, "accepted": 2, "open": 1, "owner": 1, "due": 1])
      #expect(counts.words == "2 acknowledged · 2 accepted · 1 reopened · 1 assigned · 1 given a due day")
      let none = try DecisionCounts(since: nil, until: Self.hours(24), on: connection)
      #expect(none.counts.isEmpty && none.words == "No finding was changed by a person.")
    }
    await session.close()
  }
}
