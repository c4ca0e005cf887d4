import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run

/// A night writes no rows for unchanged findings, and their history stays complete.
@Suite struct FindingNightsTests {
  private func stored(
    _ connection: borrowing BlockingConnection
  ) throws -> [String: (place: String, lastSeen: Instant, isOpen: Bool)] {
    var found: [String: (String, Instant, Bool)] = [:]
    for row in try connection.execute(
      """
      SELECT f.finding_id, f.ctid::text, \(StoredFinding.lastSeen), f.closed_at IS NULL, b.last_seen
      FROM night_audit.findings f JOIN night_audit.bi_findings b USING (finding_id)
      """)
    {
      let lastSeen = Instant(microseconds: try row.timestamp(2))
      #expect(try row.timestamp(4) == lastSeen.microseconds, "the list and the view must agree")
      found[try row.text(0)] = (try row.text(1), lastSeen, try row.bool(3))
    }
    return found
  }

  @Test func unchangedFindingsAreNotRewritten() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["same": "x", "changes": "x", "goes": "x"])
      let first = try stored(connection)
      try connection.apply(1, ["same": "x", "changes": "x", "goes": "x"])
      let second = try stored(connection)
      #expect(first.mapValues(\.place) == second.mapValues(\.place), "no row was rewritten")
      #expect(second.values.allSatisfy { $0.lastSeen == StoredNights.asOf(1) && $0.isOpen })
      try connection.apply(2, ["same": "x", "changes": "y"])
      let third = try stored(connection)
      #expect(third["same"]?.place == second["same"]?.place)
      #expect(third["changes"]?.place != second["changes"]?.place)
      #expect(third["goes"]?.isOpen == false && third["goes"]?.lastSeen == StoredNights.asOf(1))
      #expect(third["same"]?.lastSeen == StoredNights.asOf(2))
      try connection.apply(3, ["same": "x", "changes": "y", "goes": "x"])
      let fourth = try stored(connection)
      #expect(fourth["goes"]?.isOpen == true && fourth["goes"]?.lastSeen == StoredNights.asOf(3))
      let events = try connection.execute(
        "SELECT event, count(*) FROM night_audit.finding_events GROUP BY 1 ORDER BY 1"
      ).map { "\(try $0.text(0)) \(try $0.int64(1))" }
      #expect(events == ["changed 1", "closed 1", "opened 3", "reopened 1"])
    }
  }

  /// Otherwise a repeated past night would ask about it once more, and be incomplete without an answer.
  @Test func aCriticalFindingThatALaterNightClosedIsOpenForARepeatedNight() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["goes": "x", "stays": "x"])
      try connection.apply(2, ["stays": "x"])
      let open = try (0..<4).map { try CriticalEvidence.open(before: StoredNights.asOf($0), on: connection).count }
      #expect(open == [0, 2, 2, 1])
    }
  }

  @Test("A first night reads few pages for each finding, also after a vacuum of the empty tables")
  func firstNightAfterVacuum() async throws {
    try await StoredNights.with { connection in
      try connection.execute("VACUUM ANALYZE night_audit.findings")
      try connection.execute("VACUUM ANALYZE night_audit.finding_nights")
      let found = Dictionary(uniqueKeysWithValues: (0..<3_000).map { ("finding \($0)", "x") })
      let pages = try connection.apply(0, found, isSaved: true)
      #expect(pages < 30 * found.count, "\(pages)")
      #expect(try stored(connection).count == found.count)
    }
  }

  @Test("A night does not read the history of earlier closed findings") func closedFindings() async throws {
    try await StoredNights.with { connection in
      let found = Dictionary(uniqueKeysWithValues: (0..<2_000).map { ("finding \($0)", "x") })
      try connection.apply(0, found, isSaved: true)
      try connection.apply(1, ["finding 1": "x"], isSaved: true)
      for table in ["findings", "finding_nights"] { try connection.execute("VACUUM ANALYZE night_audit.\(table)") }
      let rows = "SELECT count(*) FROM night_audit.finding_nights WHERE as_of = $1"
      let pages = try connection.apply(2, ["finding 1": "x"], isSaved: true)
      #expect(pages < 1_000, "\(pages)")
      #expect(try connection.execute(rows, [.timestamp(StoredNights.asOf(2).microseconds)]).single().int64(0) == 0)
    }
  }

  @Test("A finding of a late night closes at the as-of of the later run")
  func aFindingMetByALateNightClosesAtTheLaterRun() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["back": "x"], isSaved: true)
      try connection.apply(1, [:], isSaved: true)
      try connection.apply(3, [:])
      try connection.apply(2, ["back": "x"], isNews: false, isSaved: true)
      let closedAt = try connection.execute("SELECT closed_at FROM night_audit.findings").single().timestamp(0)
      #expect(closedAt == StoredNights.asOf(3).microseconds)
      let events = try connection.texts("SELECT event FROM night_audit.finding_events ORDER BY event_id")
      #expect(events == ["opened", "closed", "reopened", "closed"])
    }
  }

  /// A manual report made before the night was published determines the open findings.
  @Test func aNightStaysABaseNightAfterALaterReport() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["stays": "x", "goes": "x"], isSaved: true)
      try connection.apply(2, ["stays": "x", "comes": "x"])
      try connection.apply(1, ["stays": "x", "comes": "x", "passes": "x"], isNews: false, isSaved: true)
      let nights = try connection.texts(
        """
        SELECT concat_ws(' ', extract(day FROM as_of - $1::timestamptz)::int, finding_id, CASE WHEN is_open THEN 'opens' ELSE 'closes' END)
        FROM night_audit.finding_nights ORDER BY as_of, finding_id
        """, [.timestamp(StoredNights.asOf.microseconds)])
      #expect(nights == ["0 goes opens", "0 stays opens", "1 comes opens", "1 goes closes", "1 passes opens"])
      let left = try stored(connection)
      #expect(left["stays"]?.lastSeen == StoredNights.asOf(2))
      // The later manual report did not find the findings of this night only, so they are recorded as closed by it.
      #expect(left["passes"]?.isOpen == false && left["passes"]?.lastSeen == StoredNights.asOf(1))
      let events = try connection.texts(
        """
        SELECT concat_ws(' ', event, extract(day FROM as_of - $1::timestamptz)::int, right(run_id::text, 1))
        FROM night_audit.finding_events WHERE finding_id = 'passes' ORDER BY event_id
        """, [.timestamp(StoredNights.asOf.microseconds)])
      #expect(events == ["opened 1 b", "closed 2 c"])
      try connection.forget(StoredNights.runs[2])
      #expect(try stored(connection)["passes"]?.isOpen == true, "the run that closed the finding is forgotten")
      #expect(try stored(connection)["comes"]?.isOpen == true, "the night reported the finding")
      try connection.forget(StoredNights.runs[1])
      #expect(try stored(connection).keys.sorted() == ["goes", "stays"])
    }
  }

  /// A missed night is made after later nights. People can decide about its findings, and later results do not change.
  @Test func findingsOfAMissedNightAreStored() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, [:], isSaved: true)
      try connection.apply(3, ["stays": "x"], isSaved: true)
      try connection.apply(2, ["stays": "x", "passes": "x"], isNews: false, isLate: true)
      try connection.apply(1, ["stays": "x", "passes": "x", "other": "x"], isNews: false, isLate: true)
      let known = try connection.texts(
        """
        SELECT concat_ws(' ', finding_id, extract(day FROM first_seen - $1::timestamptz)::int,
          coalesce('closed ' || extract(day FROM closed_at - $1::timestamptz)::int, 'open'))
        FROM night_audit.findings ORDER BY finding_id
        """, [.timestamp(StoredNights.asOf.microseconds)])
      #expect(known == ["other 1 closed 3", "passes 1 closed 3", "stays 1 open"])
      let nights = try connection.execute("SELECT DISTINCT as_of FROM night_audit.finding_nights").map {
        try $0.timestamp(0)
      }
      #expect(nights == [StoredNights.asOf(3).microseconds], "a late night is no base night")
      #expect(try ForgottenRun.newest(after: StoredNights.runs[1], on: connection) == nil)
      try connection.forget(StoredNights.runs[1])
      let left = try connection.texts(
        """
        SELECT concat_ws(' ', finding_id, extract(day FROM first_seen - $1::timestamptz)::int, closed_at IS NULL)
        FROM night_audit.findings ORDER BY finding_id
        """, [.timestamp(StoredNights.asOf.microseconds)])
      #expect(left == ["passes 2 f", "stays 2 t"])
    }
  }

  /// The changes and figures of the third night with these findings, compared with an earlier night.
  private func compared(
    _ findings: [Finding], since base: Int, on connection: borrowing BlockingConnection
  ) throws -> (changes: [ChangeRow.Change: Int], figures: NightFigures) {
    let (plan, collector) = (StoredNights.plan(asOf: StoredNights.asOf(2)), StoredNights.collector())
    let changes = NightChanges(
      base: StoredNights.base(base), plan: plan, temporaryDirectory: NSTemporaryDirectory())
    for finding in findings { try collector.add(finding, subjects: [], plan: plan) }
    let history = FindingsHistory(plan: plan, owners: FindingOwners(), changes: changes, today: "2026-11-20")
    var figures = NightFigures()
    _ = try connection.transaction {
      try history.compare(collector.findings, unlisted: collector.unlisted, on: $0, figures: &figures) { _ in }
    }
    try changes.explainClosed(on: connection)
    return (try changes.forEach(collector.write(change:)).counts, figures)
  }

  /// A manual run with the as-of of the last night found one finding first. Another finding was closed at that time.
  @Test func onlyReportedFindingsReopen() async throws {
    try await StoredNights.with { connection in
      let findings = ["told", "met", "back"].map { order in
        Finding(kind: .paidNotDelivered, subject: .order(Identifier(order)), reason: "x")
      }
      let (told, met, back) = (findings[0].findingId, findings[1].findingId, findings[2].findingId)
      try connection.apply(0, [told: "x", back: "x"], isSaved: true)
      try connection.apply(1, [told: "x"], isSaved: true)
      try connection.apply(1, [told: "x", met: "x"])
      #expect(try compared(findings, since: 1, on: connection).changes == [.new: 1, .reopened: 1])
    }
  }

  /// A finding that an incomplete night has closed does not close again. A payment is shown by its transaction ID.
  @Test func onlyFindingsThatCloseTonightAreCounted() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["earlier": "x", "tonight": "x"], isSaved: true)
      try connection.apply(1, ["tonight": "x"])
      try connection.execute(
        """
        UPDATE night_audit.findings SET subject_kind = 'transaction', subject = '2000', order_id = NULL
        WHERE finding_id = 'tonight'
        """)
      let (changes, figures) = try compared([], since: 0, on: connection)
      #expect(changes == [.closed: 2])
      #expect(figures.openBefore == 1)
      let title = FindingKind.paidNotDelivered.title
      #expect(figures.closing == NightFigures.Sample(count: 1, examples: ["transaction 2000: \(title)"]))
    }
  }

  @Test func findingsMetByAForgottenRunAreRestored() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["stays": "x", "goes": "x"])
      try connection.apply(1, ["stays": "x"])
      try connection.forget(StoredNights.runs[1])
      let left = try stored(connection)
      #expect(left.values.allSatisfy { $0.isOpen && $0.lastSeen == StoredNights.asOf(0) }, "\(left)")
    }
  }
}
