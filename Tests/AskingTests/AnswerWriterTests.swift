import AppStore
import Postgres
import Reconciliation
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Evidence in a real database: it only grows, and its fold does not depend on the order of arrival.
@Suite struct AnswerWriterTests {
  private let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// Adds receipts with their checks.
  private func addReceipts(_ count: Int, to queue: CheckQueue? = nil) async throws {
    try await shop.session.execute(
      """
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      SELECT 'r' || n, 'o' || n, 'u', 'payload ' || n, 'timeout', $1 FROM generate_series(1, $2::int) n
      """, [.timestamp((asOf - .hours(1)).microseconds), .int(Int64(count))])
    var queue = queue
    if queue == nil { queue = try await shop.queue() }
    #expect(try await queue?.enqueue() == count)
  }

  /// Ends a worker like the end of its process. The server takes a moment to notice that a session is gone.
  private func die(_ worker: CheckQueue, leaving other: CheckQueue) async throws {
    await worker.close()
    let isAlive = "SELECT EXISTS (SELECT FROM (\(Worker.living)) AS living (number) WHERE number = $1::int)"
    while try await other.store.execute(isAlive, [.int(worker.worker.number)]).single().bool(0) {}
  }

  private func fact(_ id: String, signed: Instant, revoked: Instant? = nil) -> TransactionFact {
    var fact = TransactionFact.test(id, .serverApi, signed: signed)
    fact.revocation = .stated(revoked.map { Revocation(date: $0) })
    return fact
  }

  /// The result of a question about a receipt, based on its stored check.
  private func result(
    _ receipt: String, _ facts: [TransactionFact], outcome: CheckOutcome = .verified
  ) async throws -> CheckResult {
    let row = try await shop.session.execute(
      "SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c WHERE c.subject_id = $1", [.text(receipt)])
    var check = CheckInProgress(row: try CheckRow(try row.single()))
    check.shop.orderId = Identifier("o" + receipt.dropFirst())
    check.kind = .app
    var result = CheckResult(of: check, outcome, outcome == .unanswered ? .unreachable : nil, channel: .serverApi)
    result.app = "com.example.game"
    result.facts = facts
    result.containedCount = facts.count
    return result
  }

  private func transaction(_ columns: String) async throws -> PostgresRow {
    try await shop.session.execute("SELECT \(columns) FROM night_audit.transactions").single()
  }

  private func expectRebuildAgrees() async throws {
    let derived = try await shop.session.withConnection { try Rebuild.run(isRepairing: false, on: $0) }
    #expect(derived.agrees, "\(derived)")
  }

  // MARK: - Evidence

  /// A purchase that is bought, refunded, and whose refund is reversed.
  @Test func theNewestFactDecidesInAnyArrivalOrder() async throws {
    try await addReceipts(6)
    let writer = shop.writer()
    for (number, order) in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [1, 0, 2], [2, 0, 1]].enumerated() {
      let id = "t\(number + 1)"
      let facts = [
        fact(id, signed: asOf - .days(3)), fact(id, signed: asOf - .days(2), revoked: asOf - .days(2)),
        fact(id, signed: asOf - .days(1)),
      ]
      for index in order { try await writer.write([try await result("r\(number + 1)", [facts[index]])]) }
    }
    let rows = try await shop.session.execute(
      "SELECT revoked_at IS NULL, revocation_withdrawn_at FROM night_audit.transactions")
    #expect(try rows.map { try $0.bool(0) } == Array(repeating: true, count: 6))
    #expect(try rows.allSatisfy { try $0.optionalTimestamp(1) == (asOf - .days(1)).microseconds })
    #expect(try await shop.count("evidence") == 18)
  }

  @Test func repeatedEqualFactsAreFoldedOnce() async throws {
    try await addReceipts(1)
    let refunded = asOf - .days(60)
    let isRefunded = [false, false, false, true, true, true, true, false, false, false]
    let writer = shop.writer()
    for (day, isRefunded) in isRefunded.enumerated() {
      let stated = fact("t1", signed: asOf - .days(50 - Int64(day)), revoked: isRefunded ? refunded : nil)
      try await writer.write([try await result("r1", [stated])])
    }
    let row = try await transaction("first_signed_at, signed_at, revocation_withdrawn_at")
    let days = try [0, 1, 2].map { (asOf.microseconds - (try row.timestamp($0))) / Span.days(1).microseconds }
    #expect(days == [50, 41, 43])
    // The fold skips repeated facts, and a rebuild from all evidence gives the same record.
    try await expectRebuildAgrees()
  }

  @Test func signedDataAloneIsNoAnswerAboutATransaction() async throws {
    try await addReceipts(1)
    let writer = shop.writer()
    var signed = fact("t1", signed: asOf - .days(3))
    signed.channel = .offline
    try await writer.write([try await result("r1", [signed])])
    #expect(try await transaction("checked_at IS NULL").bool(0))
    try await expectRebuildAgrees()
    try await writer.write([try await result("r1", [fact("t1", signed: asOf - .days(1))])])
    #expect(try await transaction("checked_at").timestamp(0) == asOf.microseconds)
    try await expectRebuildAgrees()
  }

  /// Apple's further facts are evidence, but no content of the proof, also after a rebuild.
  @Test func furtherFactsAreNotLinkedToAProof() async throws {
    try await addReceipts(1)
    var answer = try await result("r1", [fact("t1", signed: asOf)])
    answer.furtherFacts = [fact("t2", signed: asOf)]
    try await shop.writer().write([answer])
    func links() async throws -> [String] {
      try await shop.rows("subject_id, transaction_id", from: "receipt_transactions ORDER BY 1")
    }
    #expect(try await links() == ["r1 t1"])
    #expect(try await shop.count("transactions") == 2)
    try await expectRebuildAgrees()

    // Earlier programs stored such a link for a signed transaction.
    try await shop.session.execute(
      "UPDATE night_audit.receipt_checks SET payload_kind = 'signed', signed_transaction_id = 't1'")
    var earlier = try await result("r1", [fact("t2", signed: asOf + .seconds(1))])
    (earlier.check.kind, earlier.signedTransactionId) = (.signed, "t1")
    try await shop.writer().write([earlier])
    #expect(try await links() == ["r1 t1", "r1 t2"])
    let mended = try await shop.session.withConnection { try Rebuild.run(isRepairing: true, on: $0) }
    #expect(mended.surplusLinks == 1, "\(mended)")
    #expect(try await links() == ["r1 t1"])
  }

  /// The answer of an earlier round of the same run is another answer.
  @Test func aBatchWhoseConnectionIsLostIsStoredBesideAnEarlierAnswer() async throws {
    try await addReceipts(1)
    let writer = shop.writer()
    try await writer.write([try await result("r1", [fact("t1", signed: asOf - .hours(2))])])
    let next = try await writer.startingNewRound()
    let refunded = try await result("r1", [fact("t1", signed: asOf - .hours(1), revoked: asOf - .hours(1))])
    try await shop.endSessions()
    try await next.write([refunded])
    for table in ["answers", "evidence"] { #expect(try await shop.count(table) == 2) }
  }

  /// The session is lost after the commit and before its reply, so that the batch is stored already.
  @Test func aBatchWhoseCommitReplyIsLostIsStoredOnce() async throws {
    try await addReceipts(1)
    let opened = Counter()
    let connect = try await shop.connection(losing: "COMMIT", at: 1, opened)
    let writer = try await shop.writer(session: OpenSession(open: connect)).startingNewRound()
    try await writer.write([try await result("r1", [fact("t1", signed: asOf)])])
    #expect(opened.value == 2)
    for table in ["answers", "evidence"] { #expect(try await shop.count(table) == 1) }
    #expect(try await shop.states() == ["verified 1"])
  }

  /// For any number of answers and transactions, one round trip reads the stored state, and one writes.
  @Test(arguments: [1, 60]) func aBatchTakesTwoRoundTrips(_ count: Int) async throws {
    try await shop.session.execute(
      """
      INSERT INTO sales.orders SELECT 'o' || n, 'u', NULL, 'gems', 1, 9.90, 'USD', 'verified', 't' || n, NULL, $1, NULL, $1
      FROM generate_series(1, $2::int) n
      """, [.timestamp((asOf - .hours(1)).microseconds), .int(Int64(count))])
    try await addReceipts(count)
    let own = try await shop.connect()
    let writer = shop.writer(session: OpenSession { own })
    for night in 0...1 {
      var results: [CheckResult] = []
      for number in 1...count {
        var answer = try await result("r\(number)", [fact("t\(number)", signed: asOf - .days(Int64(2 - night)))])
        answer.check.shop.statedTransactionId = "t\(number)"
        results.append(answer)
      }
      let before = try await own.withConnection { $0.waits }
      try await writer.write(results)
      #expect(try await own.withConnection { $0.waits } - before == 2, "night \(night)")
    }
    await own.close()
    var counts: [Int64] = []
    for table in ["evidence", "transactions", "answers", "lookups"] { counts.append(try await shop.count(table)) }
    #expect(counts == [2, 1, 2, 0].map { $0 * Int64(count) })
    try await expectRebuildAgrees()
  }

  @Test func unstorableValuesAreReplaced() async throws {
    try await addReceipts(1)
    var odd = fact("t\0 1", signed: Instant(microseconds: .max), revoked: Instant(microseconds: .min))
    odd.expiresDate = Instant(microseconds: .max)
    try await shop.writer().write([try await result("r1", [odd])])
    let row = try await transaction("transaction_id, expires_at IS NULL, revoked_at IS NOT NULL")
    #expect(try row.text(0) == "t\u{FFFD} 1")
    #expect(try row.bool(1))
    #expect(try row.bool(2))
  }

  // MARK: - Due dates

  @Test func failuresFollowTheScheduleAndVerifiedChecksStayVerified() async throws {
    try await addReceipts(2)
    try await shop.writer().write([try await result("r2", [fact("t2", signed: asOf)])])
    func dueDate(_ receipt: String) async throws -> Instant {
      let row = try await shop.session.execute(
        "SELECT due_from FROM night_audit.receipt_checks WHERE subject_id = $1", [.text(receipt)])
      return Instant(microseconds: try row.single().timestamp(0))
    }
    func fail(_ receipt: String, _ asOf: Instant) async throws {
      try await shop.writer(asOf: asOf).write([try await result(receipt, [], outcome: .unanswered)])
    }
    var now = asOf
    for wait in [.minutes(5), .hours(1), .hours(6), .hours(20), .hours(20)] as [Reconciliation.Span] {
      try await fail("r1", now)
      let next = try await dueDate("r1")
      #expect(next == now + wait)
      now = next
    }
    try await fail("r2", now)
    #expect(try await shop.rows("outcome, reason", from: "receipt_checks WHERE subject_id = 'r2'") == ["verified"])
    #expect(try await dueDate("r2") == now + .minutes(5))
  }

  @Test func onlyStaleAnswersWithinTheRefundWindowAreAskedAgain() async throws {
    try await addReceipts(1)
    try await shop.writer().write([try await result("r1", [fact("t1", signed: asOf)])])
    for (days, count) in [(6, 0), (7, 1), (119, 1), (121, 0)] as [(Int64, Int)] {
      #expect(try await shop.queue(asOf: asOf + .days(days)).dueCount() == count, "\(days) days later")
    }
  }

  // MARK: - Leases

  @Test func workersShareTheQueueAndDeadWorkersReleaseTheirLeases() async throws {
    var shop = shop
    (shop.settings.batchSize, shop.settings.concurrency) = (30, 256)
    let first = try await shop.queue()
    try await addReceipts(100, to: first)
    let second = try await shop.queue()
    #expect(try await second.enqueue() == 0)
    var claimed: [String] = []
    for worker in [first, second, first, second] { claimed += try await worker.claim().map(\.subject.id.text) }
    #expect(claimed.count == 100 && Set(claimed).count == 100)
    #expect(try await first.claim().isEmpty)
    // The second worker dies. Its checks are available at once, without waiting for its lease.
    try await die(second, leaving: first)
    shop.settings.batchSize = 100
    let third = try await shop.queue()
    #expect(try await third.claim().count == 40)
    #expect(try await third.claim().isEmpty)
    try await die(first, leaving: third)
    #expect(try await third.claim().count == 60)
    await third.close()
  }

  /// The first worker leaves checks for the next one. A worker alone takes as many as it may.
  @Test func fewDueChecksAreSharedAmongWorkers() async throws {
    var shop = shop
    (shop.settings.batchSize, shop.settings.concurrency) = (100, 4)
    let first = try await shop.queue()
    try await addReceipts(160, to: first)
    #expect(try await first.claim().count == 25)
    let second = try await shop.queue()
    for worker in [second, first] { #expect(try await worker.claim().count == 25) }
    try await die(second, leaving: first)
    #expect(try await first.claim().count == 100)
    await first.close()
  }

  /// The plan uses the index of due checks, however many checks there are.
  @Test func aClaimReadsTheIndexOfDueChecks() async throws {
    try await addReceipts(20_000)
    try await shop.session.execute(
      "UPDATE night_audit.receipt_checks SET due_rank = 4, due_from = due_from + interval '9 days' WHERE subject_id > 'r2'"
    )
    try await shop.session.executeScript("ANALYZE night_audit.receipt_checks")
    let sql = CheckQueue.statement().replacing("$2::int", with: "0").replacing("$3", with: "1000")
      .replacing("$4::int", with: "7").replacing("$1", with: "'2026-11-20T03:00:00Z'::timestamptz")
    let plan = try await shop.session.execute("EXPLAIN \(sql)").map { try $0.text(0) }.joined(separator: "\n")
    #expect(plan.contains("Index Scan using receipt_checks_due") && !plan.contains("Sort"), "\(plan)")
    #expect(!plan.contains("Seq Scan on receipt_checks"), "\(plan)")
  }
}
