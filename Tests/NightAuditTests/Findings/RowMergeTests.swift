import Postgres
import Reconciliation
import Reporting
import ShopDatabases
import Spreadsheet
import TestSupport
import Testing

@testable import AuditStore
@testable import NightAudit

@Suite struct RowMergeTests {
  private static let asOf = Instant(seconds: 1_795_132_800)
  private static let run = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"
  private static let finding = String(repeating: "a", count: 32)

  private func withFinding(_ body: @escaping @Sendable (borrowing BlockingConnection) throws -> Void) async throws {
    let url = try await PrivatePostgres.storeDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(url, applicationName: "night-audit tests")
      try connection.execute(
        """
        INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, reason, first_seen, opened_at,
          last_seen)
        VALUES ($1, 'paid_not_delivered', 'critical', 'order', 'o', 'x', $2, $2, $2)
        """, [.text(Self.finding), .timestamp(Self.asOf.microseconds)])
      try Self.record("opened", on: connection)
      try body(connection)
    }
  }

  private static func record(_ event: String, on connection: borrowing BlockingConnection) throws {
    try connection.execute(
      "INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event) VALUES ($1, $2, $3::uuid, $4)",
      [.text(finding), .timestamp(asOf.microseconds), .text(run), .text(event)])
  }

  private static func decide(_ decision: FindingDecision, on connection: borrowing BlockingConnection) throws {
    _ = try FindingChange.apply(
      [FindingChange(findingId: finding, decision: decision)], by: "ops", at: asOf, on: connection)
  }

  /// A report made now by a run that began long ago.
  private static func report(on connection: borrowing BlockingConnection) throws -> WorkbookOrigin.Run {
    WorkbookOrigin.Run(
      runId: "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d12", asOf: asOf - .days(1),
      newestEvent: try ReportMark(on: connection).newestEvent, began: 0, day: "", isPublished: true)
  }

  private static func now(on connection: borrowing BlockingConnection) throws -> Instant {
    Instant(microseconds: try connection.execute("SELECT clock_timestamp()").single().timestamp(0))
  }

  private static let owners: FindingOwners = {
    var owners = FindingOwners()
    owners.bySeverity[.critical] = "ops"
    return owners
  }()

  /// Reads one row with these entries in these columns.
  private static func read(
    _ entries: [String: String], of columns: Set<String>, _ runs: [WorkbookOrigin.Run], asOf: Instant? = nil,
    today: String? = nil, on connection: borrowing BlockingConnection
  ) throws -> RowMerge {
    var merge = RowMerge(runs: runs, asOf: asOf, owners: owners, today: today)
    let cells = entries.merging([FindingsSheet.key: finding]) { given, _ in given }.mapValues { ReadCell.text($0) }
    try merge.add(ReadRow(number: 2, cells: cells), of: columns, sheet: FindingsSheet.name, connection)
    try merge.mergeBatch(connection)
    return merge
  }

  /// The decisions of a row with these entries in these columns; nil if it is refused.
  private static func merge(
    _ entries: [String: String], of columns: Set<String>, _ runs: [WorkbookOrigin.Run], asOf: Instant? = nil,
    on connection: borrowing BlockingConnection
  ) throws -> [FindingDecision]? {
    let merge = try read(entries, of: columns, runs, asOf: asOf, on: connection)
    return merge.outcome.refusals.isEmpty ? merge.changes.map(\.decision) : nil
  }

  /// The decisions of a row with an owner as its only entry; nil if it is refused.
  private static func merge(
    owner: String?, of columns: Set<String> = [FindingsSheet.owner, FindingsSheet.remark, FindingsSheet.due],
    _ runs: [WorkbookOrigin.Run], on connection: borrowing BlockingConnection
  ) throws -> [FindingDecision]? {
    try merge(owner.map { [FindingsSheet.owner: $0] } ?? [:], of: columns, runs, on: connection)
  }

  @Test func cellsAreComparedWithTheWorkbooksOwnState() async throws {
    try await withFinding { connection in
      try Self.decide(.owner("bob"), on: connection)
      let report = try Self.report(on: connection)
      #expect(try Self.merge(owner: "bob", [report], on: connection) == [])
      #expect(try Self.merge(owner: nil, [report], on: connection) == [.owner(nil)])
      #expect(try Self.merge(owner: "carl", [report], on: connection) == [.owner("carl")])
      try Self.decide(.owner("dana"), on: connection)
      #expect(try Self.merge(owner: "bob", [report], on: connection) == [])
      #expect(try Self.merge(owner: nil, [report], on: connection) == nil)
      // Of a run of an earlier version only the start is known.
      var early = report
      early.newestEvent = nil
      #expect(try Self.merge(owner: nil, [early], on: connection) == [])
    }
  }

  @Test func aMissingColumnClearsNothing() async throws {
    try await withFinding { connection in
      try Self.decide(.owner("bob"), on: connection)
      let report = try Self.report(on: connection)
      #expect(try Self.merge(owner: nil, of: [FindingsSheet.remark], [report], on: connection) == [])
      #expect(try Self.merge(owner: nil, [report], on: connection) == [.owner(nil)])
    }
  }

  /// A column sorted by itself would move decisions to other orders.
  @Test func aRowWithAnotherOrderIsRejected() async throws {
    try await withFinding { connection in
      try connection.execute("UPDATE night_audit.findings SET order_id = 'o'")
      let report = try Self.report(on: connection)
      let rows: [(String?, [FindingDecision]?)] = [
        ("o", [.owner("bob")]), (" o ", [.owner("bob")]), ("other", nil), (nil, [.owner("bob")]),
      ]
      for (shown, expected) in rows {
        var entries = [FindingsSheet.owner: "bob"]
        entries[FindingsSheet.order] = shown
        let decisions = try Self.merge(entries, of: [FindingsSheet.owner], [report], on: connection)
        #expect(decisions == expected, "\(shown ?? "no order")")
      }
    }
  }

  @Test func anUntouchedWorkbookOfNoRunChangesNothing() async throws {
    try await withFinding { connection in
      try Self.decide(.owner("bob"), on: connection)
      let asOf = try Self.now(on: connection)
      try Self.decide(.owner("carl"), on: connection)
      try Self.decide(.status(.acknowledged), on: connection)
      try Self.decide(.status(.closed), on: connection)
      let columns: Set = [FindingsSheet.status, FindingsSheet.owner, FindingsSheet.remark]
      func merge(
        _ entries: [String: String], asOf: Instant?, _ connection: borrowing BlockingConnection
      ) throws -> [FindingDecision]? {
        try Self.merge(entries, of: columns, [], asOf: asOf, on: connection)
      }
      // The workbook was written before, between or after these decisions.
      for (status, owner) in [("open", "bob"), ("open", "carl"), ("acknowledged", "carl"), ("closed", "carl")] {
        let entries = [FindingsSheet.status: status, FindingsSheet.owner: owner]
        for asOf in [asOf, nil] {
          let decisions = try merge(entries, asOf: asOf, connection)
          #expect(decisions == [], "\(status) \(owner)")
        }
      }
      let empty = try merge([:], asOf: asOf, connection)
      #expect(empty == [])
      let remark = try merge([FindingsSheet.remark: "seen"], asOf: asOf, connection)
      #expect(remark == [.remark("seen")])
      let owner = try merge([FindingsSheet.owner: "eva"], asOf: asOf, connection)
      #expect(owner == nil, "changed here and since")
      let laterOwner = try merge([FindingsSheet.owner: "bob"], asOf: Self.now(on: connection), connection)
      #expect(laterOwner == [.owner("bob")])
    }
  }

  /// Reports that no run recorded show findings that no night has met, with the owners of new findings.
  @Test func unknownFindingsAreRefusedOnlyWithADecision() async throws {
    try await withFinding { connection in
      let shown = [
        FindingsSheet.key: String(repeating: "b", count: 32), FindingsSheet.status: "open", FindingsSheet.owner: "ops",
        FindingsSheet.kind: FindingKind.paidNotDelivered.title, FindingsSheet.severity: "critical",
      ]
      func isRefused(_ edits: [String: String], _ connection: borrowing BlockingConnection) throws -> Bool {
        try Self.merge(shown.merging(edits) { $1 }, of: [], [], on: connection) == nil
      }
      let isUntouchedRefused = try isRefused([:], connection)
      #expect(!isUntouchedRefused)
      for edit in [
        [FindingsSheet.status: "acknowledged"], [FindingsSheet.owner: "eva"], [FindingsSheet.remark: "seen"],
        [FindingsSheet.due: "2026-12-01"],
      ] {
        let isEditRefused = try isRefused(edit, connection)
        #expect(isEditRefused, "\(edit)")
      }
    }
  }

  @Test func changedMoneyClosedFindingsAndPastDueDaysAreNoted() async throws {
    try await withFinding { connection in
      let report = try Self.report(on: connection)
      func notes(
        amount: String, due: String, _ connection: borrowing BlockingConnection
      ) throws -> [String] {
        try Self.read(
          [FindingsSheet.amount: amount, FindingsSheet.due: due], of: [FindingsSheet.amount, FindingsSheet.due],
          [report], today: "2026-11-20", on: connection
        ).outcome.notes.map(\.note)
      }
      try connection.execute("UPDATE night_audit.findings SET currency = 'USD', amount = 77.00, at_stake = 77.00")
      let none = try notes(amount: "77", due: "2026-11-20", connection)
      #expect(none == [])
      try connection.execute("UPDATE night_audit.findings SET closed_at = now()")
      let noted = try notes(amount: "0.99", due: "2020-01-01", connection)
      try #require(noted.count == 3, "\(noted)")
      #expect(noted[0].contains("has closed by itself"))
      #expect(noted[1].contains("amount 0.99 in the workbook, 77.00 now"))
      #expect(noted[2].contains("the due day 2020-01-01 is past"))
    }
  }

  @Test func anEndedAcceptanceThatWasNotEditedIsKept() async throws {
    try await withFinding { connection in
      try Self.decide(.status(.accepted), on: connection)
      let report = try Self.report(on: connection)
      try Self.decide(.status(.open), on: connection)
      let entries = [FindingsSheet.status: "accepted"]
      #expect(try Self.merge(entries, of: [FindingsSheet.status], [report], on: connection) == [])
      let later = try Self.report(on: connection)
      #expect(try Self.merge(entries, of: [FindingsSheet.status], [later], on: connection) == nil, "without a limit")
    }
  }

  @Test func hiddenRemarksAreKept() async throws {
    try await withFinding { connection in
      try Self.decide(.remark("Asked user 17."), on: connection)
      let entries = [FindingsSheet.remark: ReportedFinding.withheldRemark]
      let report = try Self.report(on: connection)
      #expect(try Self.merge(entries, of: [FindingsSheet.remark], [report], on: connection) == [])
    }
  }

  @Test func aReopenedFindingStartsWithoutADecision() async throws {
    try await withFinding { connection in
      try Self.decide(.owner("bob"), on: connection)
      // The run was forgotten, and another run opened the finding again.
      try connection.execute("UPDATE night_audit.findings SET owner = NULL")
      try Self.record("forgotten", on: connection)
      try Self.record("opened", on: connection)
      let report = try Self.report(on: connection)
      #expect(try Self.merge(owner: "bob", [report], on: connection) == [.owner("bob")])
      #expect(try Self.merge(owner: nil, [report], on: connection) == [])
    }
  }

  @Test func conflictingReportsNeedADecision() async throws {
    try await withFinding { connection in
      let first = try Self.report(on: connection)
      try Self.decide(.owner("bob"), on: connection)
      let second = try Self.report(on: connection)
      // The cell is empty in one report and was cleared in the other.
      #expect(try Self.merge(owner: nil, [first], on: connection) == [])
      #expect(try Self.merge(owner: nil, [second], on: connection) == [.owner(nil)])
      #expect(try Self.merge(owner: nil, [first, second], on: connection) == nil)
      #expect(try Self.merge(owner: "bob", [first, second], on: connection) == [])
    }
  }
}
