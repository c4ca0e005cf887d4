import Foundation
import Postgres
import Reconciliation
import Reporting
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Run

/// The base night of a report, and the previous published report.
@Suite struct BaseNightTests {
  private static let asOf = Instant(seconds: 1_795_143_600)

  private func with(
    _ nights: [(day: String, hours: Int64)], _ body: @Sendable (borrowing BlockingConnection) throws -> Void
  ) async throws {
    let conninfo = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      for (day, hours) in nights { try Self.make(day, hours, on: connection) }
      try body(connection)
    }
    await session.close()
  }

  /// A manual run has no report in the report directory.
  @discardableResult
  private static func make(
    _ day: String, _ hours: Int64, to until: String? = nil, isComplete: Bool = true, isNightly: Bool = true,
    isMet: Bool = true, on connection: borrowing BlockingConnection
  ) throws -> String {
    let run = try connection.execute(
      """
      INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
        is_nightly, host, version, complete, publication, directory, content, orders_read)
      SELECT gen_random_uuid(), 'run', $1, $2::date, $3::date, 'UTC', '', $4, 'h', '1', $5, 'published',
        CASE WHEN $4 THEN '/reports/' || $2 END, CASE WHEN $4 THEN 'digest' END, CASE WHEN $4 THEN 0 END
      RETURNING run_id::text
      """,
      [
        .timestamp((asOf + .hours(hours)).microseconds), .text(day), .text(until ?? day), .bool(isNightly),
        .bool(isComplete),
      ]
    ).single().text(0)
    if !isMet { return run }
    try connection.execute(
      "INSERT INTO night_audit.findings_met (run_id, as_of) VALUES ($1::uuid, $2)",
      [.text(run), .timestamp((asOf + .hours(hours)).microseconds)])
    return run
  }

  private static func base(
    _ asOf: Instant, _ since: String, to until: String? = nil, _ connection: borrowing BlockingConnection
  ) throws -> BaseNight? {
    try BaseNight.before(asOf, period: Period(since: since, until: until ?? since, in: .gmt), on: connection)
  }

  @Test func theBaseNightIsOfThePreviousBusinessDay() async throws {
    try await with([("2026-11-19", 0), ("2026-11-20", 24), ("2026-11-19", 31)]) { connection throws in
      let (next, day) = (Self.asOf + .hours(48), "2026-11-21")
      #expect(try Self.base(next, day, connection)?.asOf == Self.asOf + .hours(24))
      #expect(try PublishedReport.last(before: next, day: day, on: connection) == Self.asOf + .hours(31))
      let again = Self.asOf + .hours(31)
      #expect(try Self.base(again, "2026-11-19", connection) == nil)
      #expect(try PublishedReport.last(before: again, day: "2026-11-20", on: connection) == Self.asOf)
      try Self.make("2026-11-19", 32, isNightly: false, isMet: false, on: connection)
      #expect(try PublishedReport.last(before: next, day: day, on: connection) == Self.asOf + .hours(31))
      try connection.execute(
        """
        INSERT INTO night_audit.findings_met (run_id, as_of)
        SELECT run_id, as_of FROM night_audit.runs WHERE NOT is_nightly
        """)
      #expect(try PublishedReport.last(before: next, day: "2026-11-19", on: connection) == Self.asOf + .hours(32))
    }
  }

  /// A re-run of an earlier day must not affect a longer period.
  @Test func aLongerPeriodStartsAtItsOpeningState() async throws {
    try await with([("2026-11-18", -24), ("2026-11-19", 0)]) { connection throws in
      let (later, first, last) = (Self.asOf + .hours(240), "2026-11-20", "2026-11-25")
      #expect(try Self.base(later, first, to: last, connection)?.asOf == Self.asOf)
      try Self.make("2026-11-19", 6, on: connection)
      #expect(try Self.base(later, first, to: last, connection)?.asOf == Self.asOf + .hours(6))
      try Self.make("2026-11-19", 200, on: connection)
      #expect(try Self.base(later, first, to: last, connection)?.asOf == Self.asOf + .hours(6))
      #expect(try Self.base(later, first, connection)?.asOf == Self.asOf + .hours(200))
    }
  }

  @Test func aNearbyIncompleteNightPrecedesALaterCompleteOne() async throws {
    try await with([]) { connection throws in
      try Self.make("2026-11-19", 0, isComplete: false, on: connection)
      try Self.make("2026-11-19", 200, on: connection)
      let base = try Self.base(Self.asOf + .hours(240), "2026-11-20", to: "2026-11-25", connection)
      #expect(base?.asOf == Self.asOf && base?.isComplete == false)
    }
  }

  @Test func aPeriodWithoutAnEarlierNightStartsAtItsFirstNight() async throws {
    try await with([("2026-11-18", 48), ("2026-11-19", 50)]) { connection throws in
      let later = Self.asOf + .hours(240)
      #expect(try Self.base(later, "2026-11-20", to: "2026-11-25", connection)?.asOf == Self.asOf + .hours(48))
      #expect(try Self.base(later, "2026-11-18", to: "2026-11-25", connection) == nil)
    }
  }

  @Test func aNightWithoutStoredOrdersIsNoBaseNight() async throws {
    try await with([("2026-11-18", -24), ("2026-11-19", 0)]) { connection throws in
      let (next, day) = (Self.asOf + .hours(24), "2026-11-20")
      #expect(try Self.base(next, day, connection)?.asOf == Self.asOf)
      try connection.execute(
        "DELETE FROM night_audit.findings_met WHERE as_of = $1", [.timestamp(Self.asOf.microseconds)])
      #expect(try Self.base(next, day, connection)?.asOf == Self.asOf - .hours(24))
    }
  }

  /// The second report replaced the first one and is removed. With the same as-of, the saved rows of the first run are
  /// gone, too.
  @Test(arguments: [24, 30] as [Int64]) func forgettingARepeatedRunRemovesTheNight(_ hours: Int64) async throws {
    try await with([("2026-11-19", 0), ("2026-11-20", 24)]) { connection throws in
      let again = try Self.make("2026-11-20", hours, on: connection)
      let (next, day) = (Self.asOf + .hours(48), "2026-11-21")
      let period = try Period(since: day, until: day, in: .gmt)
      #expect(try Self.base(next, day, connection)?.runId == again)
      let forgotten = try connection.transaction { try ForgottenRun.forget(runId: again, on: $0) }
      #expect(forgotten.uncovered == ["2026-11-20"])
      #expect(try Self.base(next, day, connection)?.asOf == Self.asOf)
      #expect(try PublishedReport.last(before: next, day: day, on: connection) == Self.asOf)
      #expect(try UncoveredDays.before(period, asOf: next, in: .gmt, on: connection) == ["2026-11-20"])
      let third = try Self.make("2026-11-20", 24, on: connection)
      #expect(try Self.base(next, day, connection)?.runId == third)
      #expect(try UncoveredDays.before(period, asOf: next, in: .gmt, on: connection) == [])
    }
  }

  /// A held run replaces no report.
  @Test func forgettingAHeldRepetitionKeepsTheNight() async throws {
    try await with([("2026-11-19", 0), ("2026-11-20", 24)]) { connection throws in
      let (next, day) = (Self.asOf + .hours(48), "2026-11-21")
      let before = try Self.base(next, day, connection)?.runId
      let held = try connection.execute(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version, publication, directory, content)
        VALUES (gen_random_uuid(), 'run', $1, '2026-11-20', '2026-11-20', 'UTC', '', true, 'h', '1', 'held',
          '/reports/held/2026-11-20', 'digest')
        RETURNING run_id::text
        """, [.timestamp((Self.asOf + .hours(24)).microseconds)]
      ).single().text(0)
      _ = try connection.transaction { try ForgottenRun.forget(runId: held, on: $0) }
      #expect(try Self.base(next, day, connection)?.runId == before && before != nil)
    }
  }

  /// Nights of two days with one as-of share the saved rows.
  @Test func forgettingARunOfTheSameInstantRemovesTheBaseNight() async throws {
    try await with([("2026-11-18", -24), ("2026-11-19", 24)]) { connection throws in
      let (next, day) = (Self.asOf + .hours(48), "2026-11-21")
      let other = try Self.make("2026-11-20", 24, on: connection)
      let forgotten = try connection.transaction { try ForgottenRun.forget(runId: other, on: $0) }
      #expect(forgotten.uncovered == [], "the run replaced no other report")
      #expect(try Self.base(next, day, connection)?.asOf == Self.asOf - .hours(24))
      let period = try Period(since: day, until: day, in: .gmt)
      #expect(try UncoveredDays.before(period, asOf: next, in: .gmt, on: connection) == ["2026-11-20"])
    }
  }

  @Test func theTrendShowsTheNewestReportOfEachNight() async throws {
    try await with([("2026-11-17", -48), ("2026-11-18", -24)]) { connection throws in
      // The last night is repeated twice with the same as-of.
      for (hours, amount) in [(2, "7.00"), (1, "5.00")] as [(Int64, String)] {
        let report = try connection.execute(
          """
          INSERT INTO night_audit.runs (run_id, command, as_of, started_at, period_since, period_until, time_zone,
            configuration, is_nightly, host, version, complete, publication)
          VALUES (gen_random_uuid(), 'run', $1, now() + $2::bigint * interval '1 hour', '2026-11-18', '2026-11-18', 'UTC',
            '', true, 'h', '1', true, 'published')
          RETURNING run_id::text
          """, [.timestamp((Self.asOf - .hours(24)).microseconds), .int(hours)]
        ).single().text(0)
        try connection.execute(
          """
          INSERT INTO night_audit.run_totals (run_id, currency, disposition, orders, amount)
          VALUES ($1::uuid, 'USD', 'at_stake', 0, $2::text::numeric)
          """, [.text(report), .text(amount)])
      }
      func nights(
        _ asOf: Instant, _ day: String, isNight: Bool, _ connection: borrowing BlockingConnection
      ) throws -> [Night] {
        try RunRecord.history(upTo: asOf, day: day, isNight: isNight, on: connection)
      }
      let shown = try nights(Self.asOf, "2026-11-19", isNight: true, connection)
      #expect(shown.map(\.date) == ["2026-11-17", "2026-11-18"])
      #expect(shown.map { $0.atStake.sorted.map(\.minorUnits) } == [[], [700]])
      // A night made again takes its own place; a report of many days shows the nights of its as-of, too.
      let last = Self.asOf - .hours(24)
      #expect(try nights(last, "2026-11-18", isNight: true, connection).map(\.date) == ["2026-11-17"])
      for day in ["2026-11-18", "2026-11-30"] {
        #expect(try nights(last, day, isNight: false, connection).map(\.date) == ["2026-11-17", "2026-11-18"])
      }
    }
  }

  /// Fifteen payments without an order on a day are unusual only with the counts that earlier nights have saved.
  @Test func theCountsByKindOfEarlierNightsAreSavedAndRead() async throws {
    try await with([]) { connection throws in
      let none = Totals()
      func totals(orphans: Int) -> Totals {
        var totals = Totals(
          ordersRead: 100, ordersByDisposition: none.ordersByDisposition, ordersByCurrency: none.ordersByCurrency,
          amountByDisposition: none.amountByDisposition, ordered: none.ordered, ordersByKind: none.ordersByKind)
        for _ in 0..<orphans { totals.count(withoutOrder: .orphanPayment) }
        totals.refunds = 3
        return totals
      }
      for (day, hours) in [("2026-11-17", -48), ("2026-11-18", -24)] as [(String, Int64)] {
        let run = try Self.make(day, hours, on: connection)
        let record = RunRecord(
          runId: run, command: "run", asOf: Self.asOf + .hours(hours),
          period: try Period(since: day, until: day, in: .gmt), timeZone: "UTC", configuration: "", isNightly: true,
          host: "h")
        try record.save(totals(orphans: 2), on: connection)
      }
      try connection.executeScript(
        "SET session_replication_role = replica; UPDATE night_audit.runs SET orders_read = 100")
      let precedent = try RunRecord.precedent(before: Self.asOf, day: "2026-11-19", on: connection)
      #expect(precedent.nights == 2 && precedent.orders == 200)
      #expect(precedent.counts == ["orphan_payment": 4, "refunds": 6])
      let tonight = UnusualShare.all(totals(orphans: 15), since: precedent)
      #expect(tonight.map(\.subject) == [.kind(.orphanPayment)])
    }
  }

  private static func uncovered(_ day: String, _ connection: borrowing BlockingConnection) throws -> [String] {
    let period = try Period(since: day, until: day, in: .gmt)
    return try UncoveredDays.before(period, asOf: asOf + .hours(24), in: .gmt, on: connection)
  }

  @Test func daysWithoutANightAreReported() async throws {
    try await with([("2026-11-16", -72), ("2026-11-17", -48)]) { connection throws in
      #expect(try Self.uncovered("2026-11-16", connection) == [])
      #expect(try Self.uncovered("2026-11-18", connection) == [])
      #expect(try Self.uncovered("2026-11-21", connection) == ["2026-11-18", "2026-11-19", "2026-11-20"])
      #expect(try Self.uncovered("2027-01-01", connection) == ["2026-11-18", "2026-11-19", "2026-11-20"])
      for isOfEverything in [false, true] {
        try Self.make("2026-11-19", 0, isNightly: false, isMet: isOfEverything, on: connection)
        let told = try Self.uncovered("2026-11-21", connection)
        #expect(told == (isOfEverything ? ["2026-11-18", "2026-11-20"] : ["2026-11-18", "2026-11-19", "2026-11-20"]))
      }
    }
  }

  @Test func aReportCoversOnlyDaysThatHaveEnded() async throws {
    try await with([("2026-11-14", -120)]) { connection throws in
      for (since, until) in [("2026-11-01", "2026-11-30"), ("2026-11-15", "2026-11-15"), ("2026-11-17", "2026-11-17")] {
        try Self.make(since, -113, to: until, isNightly: false, on: connection)
        let told = try Self.uncovered("2026-11-19", connection)
        #expect(told == ["2026-11-15", "2026-11-16", "2026-11-17", "2026-11-18"], "\(since) to \(until)")
      }
    }
  }

  /// The reported day in Tokyo ends before the next night's day begins in the other time zone.
  @Test func hoursSkippedByATimeZoneChangeAreReported() throws {
    let tokyo = try #require(TimeZone(identifier: "Asia/Tokyo"))
    let last = try Period(since: "2026-11-18", until: "2026-11-18", in: tokyo)
    let next = try Period(since: "2026-11-19", until: "2026-11-19", in: .gmt)
    let reports = [(span: last.start..<last.end, isNightly: true)]
    #expect(UncoveredDays.days(before: next.start, reports, in: .gmt) == ["2026-11-18"])
    #expect(UncoveredDays.days(before: last.end, reports, in: tokyo) == [])
  }

  @Test func daysReportedInAnotherTimeZoneAreNamed() async throws {
    try await with([]) { connection throws in
      let nights = [("17", "UTC"), ("18", "UTC"), ("19", "Europe/Berlin"), ("20", "UTC")]
      for (number, (day, zone)) in nights.enumerated() {
        let run = try Self.make("2026-11-" + day, Int64(number - 2) * 24, on: connection)
        try connection.execute(
          "INSERT INTO night_audit.reported_days (run_id, day, time_zone) VALUES ($1::uuid, $2::text::date, $3)",
          [.text(run), .text("2026-11-" + day), .text(zone)])
      }
      for (zone, first, expected) in [
        ("Europe/Berlin", "2026-11-17", ["2026-11-17", "2026-11-18"]), ("Europe/Berlin", "2026-11-18", ["2026-11-18"]),
        ("UTC", "2026-11-17", ["2026-11-19"]),
      ] {
        let days = try ReportedDays.reportedInOtherTimeZones(
          from: first, before: "2026-11-20", asOf: Self.asOf + .hours(24), timeZone: zone, on: connection)
        #expect(days.sorted() == expected, "\(zone) \(first)")
      }
    }
  }

  @Test func aRepeatedDayIsComparedWithItsNewestReport() async throws {
    try await with([]) { connection throws in
      for (day, hours, told) in [
        ("18", 0, [("17", 1), ("18", 1)]), ("19", 24, [("17", 2), ("18", 2), ("19", 2)]), ("18", 33, [("18", 3)]),
      ] as [(String, Int64, [(String, Int64)])] {
        let run = try Self.make("2026-11-" + day, hours, on: connection)
        for (of, orders) in told {
          try connection.execute(
            "INSERT INTO night_audit.reported_days (run_id, day, time_zone) VALUES ($1::uuid, $2::text::date, 'UTC')",
            [.text(run), .text("2026-11-" + of)])
          try connection.execute(
            "INSERT INTO night_audit.reported_totals VALUES ($1::uuid, $2::text::date, 'USD', 'settled', $3, 9.90)",
            [.text(run), .text("2026-11-" + of), .int(orders)])
        }
      }
      for (nights, hours, expected) in [
        (.but("2026-11-20"), 48, ["2026-11-17": 2, "2026-11-18": 3, "2026-11-19": 2]),
        // A re-run lists no days that a later night has listed, and no later days.
        (.but("2026-11-18"), 40, ["2026-11-17": 2]), (.before("2026-11-19"), 40, ["2026-11-18": 3]),
        (.upTo("2026-11-19"), 24, ["2026-11-17": 2, "2026-11-18": 2, "2026-11-19": 2]),
      ] as [(ReportedDays.Nights, Int64, [String: Int])] {
        let said = try ReportedDays.statements(
          of: nights, asOf: Self.asOf + .hours(hours), timeZone: "UTC", on: connection)
        #expect(said.mapValues { $0.values.reduce(0) { $0 + $1.orders } } == expected, "\(nights)")
      }
    }
  }

  @Test func eventsDuringANightAreDatedAfterIt() async throws {
    try await with([("2026-11-19", 0), ("2026-11-20", 24)]) { connection throws in
      for (hours, noted, later) in [(23, 24, 1), (24, 24, 0), (25, 25, 0)] as [(Int64, Int64, Int64)] {
        let found = try connection.execute(
          "SELECT \(PublishedReport.noted("$1::timestamptz"))", [.timestamp((Self.asOf + .hours(hours)).microseconds)]
        ).single().timestamp(0)
        #expect(found == (Self.asOf + .hours(noted)).microseconds + later, "\(hours)")
      }
    }
  }
}
