import Postgres
import Reconciliation
import Settings
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Since when checks support open accusations, in a real database.
@Suite struct AccusationTests {
  private static let asOf = RecheckFixture.asOf
  private static let night = asOf + .days(1)
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// Answers stored as of the fixture's night, so that each check is stale a week later.
  private func answered() async throws {
    try await shop.queue().enqueue()
    try await shop.session.withConnection { connection in
      try CheckTable(policy: shop.settings.duenessPolicy).change(where: "TRUE", on: connection) { row in
        row.history.note(.verified, reason: nil, isOffline: false, asOf: Self.asOf)
        return true
      }
    }
  }

  private func finding(
    _ kind: FindingKind, order: String?, receipt: String? = nil, severity: Severity = .critical, opened: Instant = asOf
  ) async throws {
    try await shop.session.execute(
      """
      INSERT INTO night_audit.findings (finding_id, kind, severity, subject, subject_kind, order_id, receipt_id, reason,
        first_seen, opened_at, last_seen)
      VALUES ($1 || coalesce($2, $3), $1, $4, coalesce($2, $3), 'order', $2, $3, 'a reason', $5, $5, $5)
      """,
      [.text(kind.rawValue), .text(order), .text(receipt), .text(severity.rawValue), .timestamp(opened.microseconds)])
  }

  private func accused() async throws -> [String] {
    try await shop.rows(
      "subject_id, due_rank, (extract(epoch FROM due_from - answered_at) / 3600)::int",
      from: "receipt_checks WHERE accused_since IS NOT NULL ORDER BY subject_id")
  }

  @Test func theProofsBehindAnOpenAccusationAreAskedAboutEveryNight() async throws {
    let orders = [
      ("accused", "1"), ("shares its ID", "1"), ("served", "2"), ("major", "3"), ("tonight", "4"), ("lapsed", "5"),
      ("price", "6"), ("old", "7"),
    ]
    for (order, id) in orders { try await shop.order(order, transaction: id) }
    try await shop.order("has receipts", transaction: nil)
    for id in ["r1", "r2"] { try await shop.receipt(id, for: "has receipts") }
    try await shop.receipt("without an order", for: nil)
    try await answered()
    try await finding(.duplicateClaim, order: "accused")
    try await finding(.wrongUser, order: "has receipts")
    try await finding(.signatureInvalid, order: nil, receipt: "without an order")
    try await finding(.paidNotDelivered, order: "served")
    try await finding(.duplicateClaim, order: "major", severity: .major)
    try await finding(.lapsedStillServed, order: "lapsed", severity: .major)
    try await finding(.amountMismatch, order: "price", severity: .major)
    // The oldest open accusation counts: after 14 nights Apple is asked weekly.
    try await finding(.duplicateClaim, order: "old", opened: Self.asOf - .days(14))
    try await finding(.wrongUser, order: "old")
    try await finding(.duplicateClaim, order: "tonight", opened: Self.night)
    try await shop.queue(asOf: Self.night).enqueue()
    let nightly = [
      "com.example.game/1 3 20", "com.example.game/3 3 20", "com.example.game/5 3 20", "com.example.game/7 3 164",
      "r1 3 20", "r2 3 20", "without an order 3 20",
    ]
    #expect(try await accused() == nightly)
    // A night made again finds the same due dates, and so does a rebuild.
    try await shop.queue(asOf: Self.night).enqueue()
    #expect(try await accused() == nightly)
    #expect(try await rebuilt().agrees)
    try await shop.queue(asOf: Self.night + .days(1)).enqueue()
    #expect(try await accused().contains("com.example.game/4 3 20"))
  }

  @Test func aPastDayAndARunAboutOneOrderChangeNoAccusation() async throws {
    try await shop.order("a", transaction: "1")
    try await answered()
    try await shop.queue(asOf: Self.night).enqueue()
    try await finding(.duplicateClaim, order: "a")
    try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue()
    var one = Selection()
    one.orderId = "a"
    try await shop.queue(asOf: Self.night, selection: one).enqueue()
    #expect(try await accused().isEmpty)
    try await shop.queue(asOf: Self.night).enqueue()
    #expect(try await accused() == ["com.example.game/1 3 20"])
  }

  @Test func theEndOfAnAccusationRestoresTheDueDate() async throws {
    try await shop.order("a", transaction: "1")
    try await answered()
    try await finding(.deliveredNotPaid, order: "a")
    try await shop.queue(asOf: Self.night).enqueue()
    try await shop.session.execute(
      "UPDATE night_audit.findings SET closed_at = $1", [.timestamp(Self.night.microseconds)])
    // The night that closed it keeps its questions when it is made again.
    try await shop.queue(asOf: Self.night).enqueue()
    #expect(try await accused().count == 1)
    try await shop.queue(asOf: Self.night + .days(1)).enqueue()
    #expect(try await accused().isEmpty)
    #expect(
      try await shop.rows("due_rank::text, (due_from - answered_at)::text", from: "receipt_checks")
        == ["4 7 days"])
  }

  @Test func aRebuildDerivesAccusationsAgain() async throws {
    for (order, id) in [("a", "1"), ("b", "2")] { try await shop.order(order, transaction: id) }
    try await answered()
    try await finding(.deliveredNotPaid, order: "a")
    try await shop.queue(asOf: Self.night).enqueue()
    try await shop.session.execute(
      """
      UPDATE night_audit.receipt_checks SET accused_since = CASE subject_id WHEN 'com.example.game/2' THEN now() END
      """)
    let found = try await rebuilt()
    #expect(found.differentDueness == 2 && found.examples.sorted() == ["com.example.game/1", "com.example.game/2"])
    #expect(try await rebuilt(isRepairing: true).differentDueness == 2)
    #expect(try await rebuilt().agrees)
    #expect(try await accused() == ["com.example.game/1 3 20"])
  }

  /// A proof without its row, or one that the queue leaves out, would never be asked about again.
  @Test func aRebuildFindsProofsThatTheQueueLacksOrLeavesOut() async throws {
    for (order, id) in [("a", "1"), ("b", "2")] { try await shop.order(order, transaction: id) }
    try await shop.order("c", transaction: nil)
    try await shop.receipt("r", for: "c")
    try await answered()
    #expect(try await rebuilt().agrees)
    try await shop.session.executeScript(
      """
      DELETE FROM night_audit.receipt_checks WHERE subject_id IN ('com.example.game/1', 'r');
      UPDATE night_audit.receipt_checks SET is_wanted = false, due_from = NULL
      """)
    for isRepairing in [false, true] {
      let found = try await rebuilt(isRepairing: isRepairing)
      #expect(found.missingProofs == 2 && found.differentDueness == 1 && !found.agrees)
      #expect(found.examples == ["com.example.game/1", "r", "com.example.game/2"])
    }
    #expect(try await rebuilt().agrees)
    // The next run reads the shop's rows again, and asks about the proofs that were missing.
    try await shop.queue(asOf: Self.night).enqueue()
    let rows = "receipt_checks WHERE due_from IS NOT NULL ORDER BY subject_id"
    #expect(
      try await shop.rows("subject_id, order_id, outcome, is_wanted::text", from: rows) == [
        "com.example.game/1 a pending true", "com.example.game/2 b verified true", "r c pending true",
      ])
  }

  /// Otherwise a notice of an earlier night would stand for each nightly answer.
  @Test func onlyStatementsOfThisRunReplaceTheAnswer() async throws {
    try await shop.order("a", transaction: "1")
    try await answered()
    let queue = try await shop.queue(asOf: Self.night)
    var row = try #require(try await shop.queue(asOf: Self.asOf + .days(8)).claim().first)
    let reported = [
      "1": ReportedTransaction(environment: .production, bundleId: nil, channel: .serverApi, at: Self.asOf),
      "2": ReportedTransaction(environment: .production, bundleId: nil, channel: .serverApi, at: Self.night),
    ]
    #expect(queue.usable(reported, for: row).keys.sorted() == ["1", "2"])
    row.history.accusedSince = Self.asOf
    #expect(queue.usable(reported, for: row).keys.sorted() == ["2"])
  }

  /// With an earlier date a proof would leave the horizon, and Apple would not be asked about it any more.
  @Test func aRebuildRestoresTheDatesOfTheShop() async throws {
    try await shop.order("a", transaction: "1")
    try await shop.order("c", transaction: nil)
    try await shop.receipt("r", for: "c")
    try await answered()
    let dates = "subject_id, received_at, known_since, critical_since, due_from, due_until, due_rank"
    let stored = try await shop.rows(dates, from: "receipt_checks ORDER BY subject_id")
    for change in [
      "received_at = '2020-01-01', due_from = NULL, due_until = NULL, due_rank = 0",
      "critical_since = '9000-01-01', due_from = '9000-01-01', due_until = NULL, due_rank = 2",
    ] {
      try await shop.session.execute("UPDATE night_audit.receipt_checks SET \(change)")
      for isRepairing in [false, true] {
        #expect(try await rebuilt(isRepairing: isRepairing).differentDueness == 2, "\(change)")
      }
      #expect(try await rebuilt().agrees, "\(change)")
    }
    // The last repair makes both due at once.
    try await shop.session.execute("UPDATE night_audit.receipt_checks SET critical_since = NULL")
    #expect(try await rebuilt(isRepairing: true).differentDueness == 2)
    #expect(try await shop.rows(dates, from: "receipt_checks ORDER BY subject_id") == stored)
  }

  private func rebuilt(isRepairing: Bool = false) async throws -> QueueRebuild.Outcome {
    let dates = try await QueueRebuild.shopDates(
      ofEarlierChecks: shop.settings, store: shop.session, sales: OpenSession { [session = shop.session] in session })
    // The outcomes of these checks have no answers, so only due dates are compared.
    return try await shop.session.withConnection { connection in
      try connection.execute(
        """
        INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
        SELECT gen_random_uuid(), answered_at, subject_kind, subject_id, 'serverApi', outcome, 0
        FROM night_audit.receipt_checks c WHERE NOT EXISTS (
          SELECT FROM night_audit.answers a WHERE a.subject_kind = c.subject_kind AND a.subject_id = c.subject_id)
        """)
      return try QueueRebuild.run(isRepairing: isRepairing, shopDates: dates, on: connection)
    }
  }
}
