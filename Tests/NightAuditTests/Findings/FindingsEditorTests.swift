import Foundation
import Postgres
import Reconciliation
import Reporting
import Settings
import ShopDatabases
import Synchronization
import TestSupport
import Testing

@testable import AuditStore
@testable import NightAudit
@testable import Run

@Suite struct FindingsEditorTests {
  private let now = Instant(seconds: 1_763_607_600)

  /// Runs `body` with ten findings, `a0…` to `a9…`, first seen 0 to 9 days ago.
  private func withFindings(_ body: (PostgresSession, FindingsEditor) async throws -> Void) async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.storeDatabase()
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.execute(
      """
      INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, order_id, user_id, currency, amount,
        at_stake, reason, first_seen, opened_at, last_seen, closed_at)
      SELECT 'a' || n || repeat('0', 30), CASE n % 2 WHEN 0 THEN 'paid_not_delivered' ELSE 'status_mismatch' END,
        CASE n % 2 WHEN 0 THEN 'critical' ELSE 'minor' END, 'order', 'o' || n, 'o' || n, 'u' || n % 3,
        CASE n % 5 WHEN 0 THEN 'JPY' ELSE 'USD' END, n, NULL, '=because', $1 - n * interval '1 day',
        $1 - n * interval '1 day', $1, CASE WHEN n = 9 THEN $1 END
      FROM generate_series(0, 9) n
      """, [.timestamp(now.microseconds)])
    try await body(session, FindingsEditor(settings: settings, now: now))
    await session.close()
  }

  private func id(_ number: Int) -> String { "a\(number)" + String(repeating: "0", count: 30) }

  private func numbers(_ findings: [StoredFinding]) -> [Int] {
    findings.compactMap { Int($0.reported.findingId.dropFirst().prefix(1)) }
  }

  private static let filters: [(name: String, change: @Sendable (inout FindingsFilter) -> Void, expected: [Int])] = [
    ("open ones by default", { _ in }, Array(0...8)),
    ("closed because the facts changed", { $0.state = .closed }, [9]), ("any", { $0.state = .any }, Array(0...9)),
    ("kind", { $0.kinds = [.paidNotDelivered] }, [0, 2, 4, 6, 8]),
    ("severity", { $0.severities = [.minor, .major] }, [1, 3, 5, 7]),
    ("user", { $0.userId = "u1" }, [1, 4, 7]), ("order", { $0.orderId = "o3" }, [3]),
    ("status", { $0.statuses = [.acknowledged] }, [7]), ("owner", { $0.owner = "anna" }, [8]),
    ("without an owner", { $0.isUnassigned = true }, Array(0...7)),
    ("currency", { $0.currency = Currency(code: "JPY") }, [0, 5]), ("amount", { $0.amount = "4.00" }, [4]),
    ("amounts", { ($0.minAmount, $0.maxAmount) = ("2", "4.5") }, [2, 3, 4]),
    ("old", { $0.minAge = .days(6) }, [6, 7, 8]), ("young", { $0.maxAge = .days(1) }, [0, 1]),
    ("occurred long ago", { $0.minSince = .days(18) }, [0, 1, 2]), ("recently", { $0.maxSince = .days(13) }, [7, 8]),
    ("together", { ($0.severities, $0.minAge, $0.userId) = ([.critical], .days(3), "u1") }, [4]),
  ]

  @Test func filtersSelectTheirFindings() async throws {
    try await withFindings { session, editor in
      try await session.executeScript(
        """
        UPDATE night_audit.findings SET status = 'acknowledged' WHERE subject = 'o7';
        UPDATE night_audit.findings SET owner = 'anna' WHERE subject = 'o8';
        UPDATE night_audit.findings
        SET occurred_at = first_seen - interval '20 days' + 2 * right(subject, 1)::int * interval '1 day';
        """)
      for (name, change, expected) in Self.filters {
        var filter = FindingsFilter()
        change(&filter)
        #expect(numbers(try await editor.list(filter)) == expected, "\(name)")
      }
    }
  }

  @Test func aDecisionIsRecordedOnceWithWhoAndWhen() async throws {
    try await withFindings { session, editor in
      let first = try await editor.change(.ids(["a2000", id(4)]), to: [.status(.acknowledged)], by: "anna")
      #expect(first.changed == [id(2), id(4)])
      let second = try await editor.change(.ids(["A2000", id(4), id(6)]), to: [.status(.acknowledged)], by: "bob")
      #expect(second.changed == [id(6)] && second.unchanged == [id(2), id(4)])
      for decision in [.owner("carl"), .owner(nil), .remark("called")] as [FindingDecision] {
        _ = try await editor.change(.ids([id(2)]), to: [decision], by: "anna")
      }
      let found = try await editor.list(FindingsFilter(), ids: ["a2000"])
      let history = try #require(found.first?.history)
      #expect(history.map(\.event) == ["status", "owner", "owner", "remark"])
      #expect(history.map(\.detail) == ["acknowledged", "carl", nil, "called"])
      #expect(history.allSatisfy { $0.actor == "anna" })
      let reported = try #require(found.first?.reported)
      #expect(reported.status == "acknowledged" && reported.owner == nil && reported.remark == "called")
      let dates = try await session.execute("SELECT DISTINCT as_of FROM night_audit.finding_events").single()
      #expect(try dates.timestamp(0) == now.microseconds)
    }
  }

  @Test func unknownIDsPreventAnyChangeAndAreNamed() async throws {
    try await withFindings { session, editor in
      let unknown = await #expect(throws: FindingsError.self) {
        try await editor.change(.ids([id(1), "ffff", "a", "'; DROP"]), to: [.status(.closed)], by: "anna")
      }
      #expect(unknown == .unknown(["ffff", "a", "'; DROP"]))
      #expect(unknown?.description.contains("At least 4 digits") == true)
      #expect(!FindingsError.unknown(["ffff"]).description.contains("digits"))
      try await session.execute(
        """
        INSERT INTO night_audit.findings
        SELECT (jsonb_populate_record(f, '{"finding_id": "a100ff"}')).* FROM night_audit.findings f WHERE subject = 'o1'
        """)
      let ambiguous = await #expect(throws: FindingsError.self) {
        try await editor.change(.ids(["a100"]), to: [.status(.closed)], by: "anna")
      }
      #expect(ambiguous == .ambiguous(["a100"]))
      #expect(try await session.execute("SELECT count(*) FROM night_audit.finding_events").single().int64(0) == 0)
    }
  }

  @Test func allFilteredFindingsAreChanged() async throws {
    try await withFindings { _, editor in
      var filter = FindingsFilter()
      filter.kinds = [.statusMismatch]
      let tried = try await editor.change(.all(filter), to: [.status(.closed)], by: "anna", isDryRun: true)
      #expect(tried.changed == [id(1), id(3), id(5), id(7)])
      #expect(try await editor.list(filter).allSatisfy { $0.reported.status == "open" && $0.history.isEmpty })
      #expect(try await editor.change(.all(filter), to: [.status(.closed)], by: "anna").changed == tried.changed)
      // A closed finding stays in the list, because its facts have not changed.
      #expect(numbers(try await editor.list(filter)) == [1, 3, 5, 7])
    }
  }

  @Test func repeatedUndoRevertsAllChangesFromTheLastToTheFirst() async throws {
    try await withFindings { _, editor in
      let first = try await editor.change(.ids([id(1), id(2)]), to: [.owner("bob")], by: "anna")
      let second = try await editor.change(.ids([id(3), id(4)]), to: [.owner("carl")], by: "anna")
      for number in 3...4 { _ = try await editor.change(.ids([id(number)]), to: [.owner("dana")], by: "anna") }
      for number in [4, 3] { #expect(try await editor.undo(nil, by: "anna").outcome.changed == [id(number)]) }
      for (change, numbers) in [(second, [3, 4]), (first, [1, 2])] {
        let undone = try await editor.undo(nil, by: "anna")
        #expect(undone.changeId == change.changeId && undone.outcome.changed == numbers.map(id))
      }
      let all = try await editor.list(FindingsFilter())
      #expect(all.allSatisfy { $0.reported.owner == nil })
      let nothing = await #expect(throws: FindingsError.self) { _ = try await editor.undo(nil, by: "anna") }
      #expect(nothing == .noChange(nil))
    }
  }

  @Test func undoTakesBackTheRestOfAChangeOnceLaterDecisionsAreTakenBack() async throws {
    try await withFindings { _, editor in
      let first = try await editor.change(.ids([id(1), id(2)]), to: [.owner("bob")], by: "anna")
      let second = try await editor.change(.ids([id(2)]), to: [.owner("carl")], by: "anna")
      let part = try await editor.undo(first.changeId, by: "anna").outcome
      #expect(part.changed == [id(1)] && part.unchanged == [id(2)])
      for change in [second, first] {
        let undone = try await editor.undo(nil, by: "anna")
        #expect(undone.changeId == change.changeId && undone.outcome.changed == [id(2)])
      }
      let all = try await editor.list(FindingsFilter())
      #expect(all.allSatisfy { $0.reported.owner == nil })
      await #expect(throws: FindingsError.noChange(nil)) { _ = try await editor.undo(nil, by: "anna") }
    }
  }

  /// An acceptance without its limit would never end.
  @Test func undoTreatsAnAcceptanceAndItsLimitAsOne() async throws {
    try await withFindings { session, editor in
      func state() async throws -> String {
        try await session.execute(
          "SELECT concat_ws(' ', status, acceptance) FROM night_audit.findings WHERE finding_id = $1", [.text(id(1))]
        ).single().text(0)
      }
      func accept(_ limit: Acceptance?) async throws -> String? {
        try await editor.change(.ids([id(1)]), to: [.status(.accepted), .acceptance(limit)], by: "anna").changeId
      }
      _ = try await accept(Acceptance(until: "2025-12-31", amount: nil))
      _ = try await editor.change(.ids([id(1)]), to: [.status(.open)], by: "anna")
      _ = try await editor.undo(nil, by: "anna")
      #expect(try await state() == "accepted until 2025-12-31")
      _ = try await editor.undo(nil, by: "anna")
      #expect(try await state() == "open")
      let earlier = try await accept(Acceptance(until: "2025-12-15", amount: nil))
      _ = try await accept(Acceptance(until: "2026-03-31", amount: nil))
      let kept = try await editor.undo(earlier, by: "anna").outcome
      #expect(kept.changed == [] && kept.unchanged == [id(1)])
      #expect(try await state() == "accepted until 2026-03-31")
    }
  }

  @Test func anAcceptanceThatEndsBeforeTheNewestAuditIsRefused() async throws {
    try await withFindings { session, editor in
      try await session.execute(
        """
        WITH run AS (
          INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
            is_nightly, host, version, process_id)
          VALUES (gen_random_uuid(), 'run', $1, '2025-11-19', '2025-11-19', 'UTC', '', true, 'host', '1', 1)
          RETURNING run_id, as_of)
        INSERT INTO night_audit.findings_met (run_id, as_of) SELECT run_id, as_of FROM run
        """, [.timestamp(now.microseconds)])
      func accept(_ day: String) async throws -> [String] {
        let decisions = [.status(.accepted), .acceptance(Acceptance(until: day, amount: nil))] as [FindingDecision]
        return try await editor.change(.ids([id(1)]), to: decisions, by: "anna").changed
      }
      let past = await #expect(throws: FindingsError.self) { try await accept("2025-11-19") }
      #expect(past == .pastAcceptance("2025-11-19", newest: "2025-11-20") && past?.exitStatus == .usage)
      #expect(try await accept("2025-11-20") == [id(1)])
    }
  }

  @Test func anAmountThatCannotLimitAnAcceptanceIsRefused() async throws {
    try await withFindings { session, editor in
      try await session.execute(
        """
        UPDATE night_audit.findings SET at_stake_unknown = subject = 'o2',
          at_stake = CASE WHEN subject NOT IN ('o1', 'o2') THEN amount END
        """)
      func accept(_ number: Int, _ amount: String) async throws -> [String] {
        let limit = Acceptance(until: "2026-12-31", amount: amount)
        return try await editor.change(
          .ids([id(number)]), to: [.status(.accepted), .acceptance(limit)], by: "anna"
        ).changed
      }
      let money = await #expect(throws: FindingsError.self) { try await accept(1, "5.00") }
      #expect(money == .nothingAtStake(id(1), amount: "5.00") && money?.exitStatus == .usage)
      for (number, amount, code) in [(5, "120.5", "JPY"), (3, "1.234", "USD")] {
        let currency = try #require(Currency(code: code))
        let decimals = await #expect(throws: FindingsError.self) { try await accept(number, amount) }
        #expect(decimals == .tooManyDecimals(id(number), amount: amount, currency))
      }
      for (number, amount) in [(5, "120.00"), (3, "1.230"), (2, "7")] {
        #expect(try await accept(number, amount) == [id(number)])
      }
    }
  }

  @Test func undoDoesNotRestoreTheStateBeforeAReopening() async throws {
    try await withFindings { session, editor in
      _ = try await editor.change(.ids([id(1), id(2)]), to: [.owner("bob")], by: "anna")
      let second = try await editor.change(.ids([id(1), id(2)]), to: [.owner("carl")], by: "anna")
      // The run was forgotten, and another run opened the finding again.
      try await session.executeScript(
        """
        UPDATE night_audit.findings SET owner = NULL WHERE finding_id = '\(id(1))';
        INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
        VALUES ('\(id(1))', now(), gen_random_uuid(), 'opened');
        """)
      let undone = try await editor.undo(second.changeId, by: "anna").outcome
      #expect(undone.changed == [id(2)] && undone.unchanged == [id(1)])
      let owners = try await editor.list(FindingsFilter(), ids: ["a1000", "a2000"]).map(\.reported.owner)
      #expect(Set(owners) == [nil, "bob"])
    }
  }

  @Test func undoWaitsForOngoingChanges() async throws {
    try await withFindings { session, editor in
      let change = try await editor.change(.ids([id(1), id(2)]), to: [.owner("bob")], by: "anna")
      try await session.executeScript("BEGIN; SELECT pg_advisory_xact_lock(1852401512, 5)")
      async let undoing = editor.undo(change.changeId, by: "anna")
      let waits = """
        SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 5 AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
        """
      while try await !session.execute(waits).single().bool(0) { try Task.checkCancellation() }
      try await session.executeScript(
        """
        UPDATE night_audit.findings SET owner = 'carl' WHERE finding_id = '\(id(1))';
        INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor, detail, before)
        VALUES ('\(id(1))', now(), 'owner', 'carl', 'carl', 'bob');
        COMMIT
        """)
      let undone = try await undoing.outcome
      #expect(undone.changed == [id(2)] && undone.unchanged == [id(1)])
    }
  }

  @Test func theFindingsListEscapesFormulas() async throws {
    try await withFindings { _, editor in
      var filter = FindingsFilter()
      filter.orderId = "o5"
      let printed = Mutex("")
      try await editor.list(filter) {
        FindingsCSV(asOf: now, settings: Settings()) { part in printed.withLock { $0 += part } }
      }
      let lines = printed.withLock(\.self).components(separatedBy: "\r\n")
      #expect(lines.first?.hasPrefix("finding_id,kind,severity,order_id,") == true)
      #expect(
        lines[1].hasPrefix("\(id(5)),status_mismatch,minor,o5,u2,,,,,,JPY,5,,,,2025-11-15T03:00:00Z,5,open,,'=because,")
      )
    }
  }

  @Test(arguments: ["", " \n ", "\u{1B}[2J", String(repeating: "x", count: 201), "two\nlines"])
  func namesAreOneLineOfText(_ text: String) {
    let name = Result { () throws(PeopleText.Refusal) in try PeopleText.owner(text) }
    switch name {
    case .success(let name): #expect(name == nil && text.allSatisfy(\.isWhitespace))
    case .failure(let refusal): #expect(refusal.description.hasPrefix("the owner "))
    }
  }
}

private struct Gathered: FindingsOutput {
  static let requestsHistory = true
  private var findings: [StoredFinding] = []

  mutating func add(_ finding: StoredFinding) { findings.append(finding) }

  func finish() -> [StoredFinding] { findings }
}

extension FindingsEditor {
  fileprivate func list(_ filter: FindingsFilter, ids: [String]? = nil) async throws -> [StoredFinding] {
    try await list(filter, ids: ids) { Gathered() }
  }
}
