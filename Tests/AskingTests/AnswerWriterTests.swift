import AppStore
import Foundation
import Postgres
import Reconciliation
import Settings
import TestSupport
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// Evidence in a real database: it only grows, and its fold does not depend on the order of arrival.
@Suite struct AnswerWriterTests {
  private let asOf = Instant(seconds: 1_763_607_600)
  private let runId = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"

  private func withDatabase(_ body: (PostgresSession, Settings) async throws -> Void) async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
    }
    try await body(session, settings)
    await session.close()
  }

  private func addReceipts(_ count: Int, _ session: PostgresSession) async throws {
    try await session.execute(
      """
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      SELECT 'r' || n, 'o' || n, 'u', 'payload ' || n, 'timeout', $1 FROM generate_series(1, $2::int) n
      """, [.timestamp((asOf - .hours(1)).microseconds), .int(Int64(count))])
  }

  private func queue(_ session: PostgresSession, _ settings: Settings, asOf: Instant? = nil) async throws -> CheckQueue
  {
    let connect = connect(settings)
    return try await CheckQueue.open(
      settings: settings, asOf: asOf ?? self.asOf, isPastAudit: false, selection: Selection(), connect: connect,
      connectSales: connect)
  }

  /// Ends a worker like the end of its process. The server takes a moment to notice that a session is gone.
  private func die(_ worker: CheckQueue, leaving other: CheckQueue) async throws {
    await worker.close()
    let isAlive = "SELECT EXISTS (SELECT FROM (\(Worker.living)) AS living (number) WHERE number = $1::int)"
    while try await other.store.execute(isAlive, [.int(worker.worker.number)]).single().bool(0) {}
  }

  private func connect(_ settings: Settings) -> @Sendable () async throws -> PostgresSession {
    { [url = settings.databaseURL] in try await PostgresSession.connect(url, applicationName: "night-audit tests") }
  }

  private func writer(_ settings: Settings, asOf: Instant? = nil) -> AnswerWriter {
    AnswerWriter(
      session: OpenSession(open: connect(settings)), asOf: asOf ?? self.asOf, runId: runId, settings: settings)
  }

  private func fact(_ id: String, signed: Instant, revoked: Instant? = nil) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: "gems", channel: .serverApi, signedDate: signed)
    fact.bundleId = "com.example.game"
    fact.purchaseDate = asOf - .days(3)
    fact.revocation = .stated(revoked.map { Revocation(date: $0) })
    return fact
  }

  /// The result of a question about a receipt, based on its stored check.
  private func result(
    _ receipt: String, _ facts: [TransactionFact], outcome: CheckOutcome = .verified, reason: PaymentReason? = nil,
    on session: PostgresSession
  ) async throws -> CheckResult {
    let row = try await session.execute(
      "SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c WHERE c.subject_id = $1", [.text(receipt)])
    var context = CheckContext(row: try CheckRow(try row.single()))
    context.orderId = Identifier("o" + receipt.dropFirst())
    var result = CheckResult(context: context, kind: .app, outcome: outcome, reason: reason, channel: .serverApi)
    result.app = "game"
    result.facts = facts
    result.containedCount = facts.count
    if outcome == .unanswered { result.reason = .unreachable }
    return result
  }

  @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [1, 0, 2], [2, 0, 1]])
  func theNewestFactDecidesInAnyArrivalOrder(_ order: [Int]) async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      let refunded = asOf - .days(2)
      // Bought, refunded, and the refund reversed.
      let facts = [
        fact("t1", signed: asOf - .days(3)), fact("t1", signed: asOf - .days(2), revoked: refunded),
        fact("t1", signed: asOf - .days(1)),
      ]
      let writer = writer(settings)
      for index in order { try await writer.write([try await result("r1", [facts[index]], on: session)]) }
      let row = try await session.execute(
        "SELECT revoked_at IS NULL, revocation_withdrawn_at FROM night_audit.transactions"
      ).single()
      #expect(try row.bool(0))
      #expect(try row.optionalTimestamp(1) == (asOf - .days(1)).microseconds)
      #expect(try await session.execute("SELECT count(*) FROM night_audit.evidence").single().int64(0) == 3)
    }
  }

  @Test func repeatedEqualFactsAreFoldedOnce() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      let refunded = asOf - .days(60)
      let isRefunded = [false, false, false, true, true, true, true, false, false, false]
      let writer = writer(settings)
      for (day, isRefunded) in isRefunded.enumerated() {
        let told = fact("t1", signed: asOf - .days(50 - Int64(day)), revoked: isRefunded ? refunded : nil)
        try await writer.write([try await result("r1", [told], on: session)])
      }
      let row = try await session.execute(
        "SELECT first_signed_at, signed_at, revocation_withdrawn_at FROM night_audit.transactions"
      ).single()
      let days = try [0, 1, 2].map { (asOf.microseconds - (try row.timestamp($0))) / Span.days(1).microseconds }
      #expect(days == [50, 41, 43])
      // The fold skips repeated facts, and a rebuild from all evidence gives the same record.
      let derived = try await session.withConnection { try Rebuild.run(isRepairing: false, on: $0) }
      #expect(derived.agrees, "\(derived)")
    }
  }

  /// Apple's further facts are evidence, but no content of the proof, also after a rebuild.
  @Test func furtherFactsAreNotLinkedToAProof() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      var told = try await result("r1", [fact("t1", signed: asOf)], on: session)
      told.furtherFacts = [fact("t2", signed: asOf)]
      try await writer(settings).write([told])
      func links() async throws -> String {
        try await session.execute(
          "SELECT string_agg(subject_id || ' ' || transaction_id, ', ') FROM night_audit.receipt_transactions"
        ).single().text(0)
      }
      #expect(try await links() == "r1 t1")
      #expect(try await session.execute("SELECT count(*) FROM night_audit.transactions").single().int64(0) == 2)
      #expect(try await session.withConnection { try Rebuild.run(isRepairing: false, on: $0) }.agrees)

      // Earlier programs stored such a link for a signed transaction.
      try await session.execute(
        "UPDATE night_audit.receipt_checks SET payload_kind = 'signed', signed_transaction_id = 't1'")
      var earlier = try await result("r1", [fact("t2", signed: asOf + .seconds(1))], on: session)
      (earlier.kind, earlier.signedTransactionId) = (.signed, "t1")
      try await writer(settings).write([earlier])
      #expect(try await links() == "r1 t1, r1 t2")
      let mended = try await session.withConnection { try Rebuild.run(isRepairing: true, on: $0) }
      #expect(mended.surplusLinks == 1, "\(mended)")
      #expect(try await links() == "r1 t1")
    }
  }

  /// The answer of an earlier round of the same run is another answer.
  @Test func aBatchWhoseConnectionIsLostIsStoredBesideAnEarlierAnswer() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      let writer = writer(settings)
      try await writer.write([try await result("r1", [fact("t1", signed: asOf - .hours(2))], on: session)])
      let next = try await writer.startingNewRound()
      try await session.execute(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        """)
      let refunded = fact("t1", signed: asOf - .hours(1), revoked: asOf - .hours(1))
      try await next.write([try await result("r1", [refunded], on: session)])
      let stored = try await session.execute(
        "SELECT (SELECT count(*) FROM night_audit.answers), (SELECT count(*) FROM night_audit.evidence)"
      ).single()
      #expect(try stored.int64(0) == 2 && stored.int64(1) == 2)
    }
  }

  /// For any number of answers and transactions, one round trip reads the stored state, and one writes.
  @Test(arguments: [1, 60]) func aBatchTakesTwoRoundTrips(_ count: Int) async throws {
    try await withDatabase { session, settings in
      try await addReceipts(count, session)
      try await session.execute(
        """
        INSERT INTO sales.orders SELECT 'o' || n, 'u', NULL, 'gems', 1, 9.90, 'USD', 'verified', 't' || n, NULL, $1, NULL, $1
        FROM generate_series(1, $2::int) n
        """, [.timestamp((asOf - .hours(1)).microseconds), .int(Int64(count))])
      try await queue(session, settings).enqueue()
      let own = try await connect(settings)()
      let writer = AnswerWriter(session: OpenSession { own }, asOf: asOf, runId: runId, settings: settings)
      for night in 0...1 {
        var results: [CheckResult] = []
        for number in 1...count {
          let told = fact("t\(number)", signed: asOf - .days(Int64(2 - night)))
          var result = try await result("r\(number)", [told], on: session)
          result.context.statedTransactionId = told.transactionId
          results.append(result)
        }
        let before = try await own.withConnection { $0.waits }
        try await writer.write(results)
        #expect(try await own.withConnection { $0.waits } - before == 2, "night \(night)")
      }
      await own.close()
      let stored = try await session.execute(
        """
        SELECT (SELECT count(*) FROM night_audit.evidence), (SELECT count(*) FROM night_audit.transactions),
          (SELECT count(*) FROM night_audit.answers), (SELECT count(*) FROM night_audit.lookups)
        """
      ).single()
      #expect(try (0..<4).map { Int(try stored.int64($0)) } == [2 * count, count, 2 * count, 0])
      let derived = try await session.withConnection { try Rebuild.run(isRepairing: false, on: $0) }
      #expect(derived.agrees, "\(derived)")
    }
  }

  @Test func unstorableValuesAreReplaced() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      var odd = fact("t\0 1", signed: Instant(microseconds: .max), revoked: Instant(microseconds: .min))
      odd.expiresDate = Instant(microseconds: .max)
      try await writer(settings).write([try await result("r1", [odd], on: session)])
      let row = try await session.execute(
        "SELECT transaction_id, expires_at IS NULL, revoked_at IS NOT NULL FROM night_audit.transactions"
      ).single()
      #expect(try row.text(0) == "t\u{FFFD} 1")
      #expect(try row.bool(1))
      #expect(try row.bool(2))
    }
  }

  @Test func failuresFollowTheScheduleAndVerifiedChecksStayVerified() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(2, session)
      let waits: [Reconciliation.Span] = [.minutes(5), .hours(1), .hours(6), .hours(20), .hours(20)]
      try await queue(session, settings).enqueue()
      try await writer(settings).write([
        try await result("r2", [fact("t2", signed: asOf)], on: session)
      ])
      var now = asOf
      for wait in waits {
        try await writer(settings, asOf: now).write([try await result("r1", [], outcome: .unanswered, on: session)]
        )
        let next = try await session.execute(
          "SELECT due_from FROM night_audit.receipt_checks WHERE subject_id = 'r1'"
        ).single().timestamp(0)
        #expect(next == (now + wait).microseconds)
        now = Instant(microseconds: next)
      }
      try await writer(settings, asOf: now).write([try await result("r2", [], outcome: .unanswered, on: session)])
      let row = try await session.execute(
        "SELECT outcome, reason, due_from FROM night_audit.receipt_checks WHERE subject_id = 'r2'"
      ).single()
      #expect(try row.text(0) == "verified")
      #expect(try row.optionalText(1) == nil)
      #expect(try row.timestamp(2) == (now + .minutes(5)).microseconds)
    }
  }

  @Test func workersShareTheQueueAndDeadWorkersReleaseTheirLeases() async throws {
    try await withDatabase { session, settings in
      var settings = settings
      settings.batchSize = 30
      try await addReceipts(100, session)
      let first = try await queue(session, settings)
      let second = try await queue(session, settings)
      #expect(try await first.enqueue() == 100)
      #expect(try await second.enqueue() == 0)
      var claimed: [String] = []
      for worker in [first, second, first, second] { claimed += try await worker.claim().map(\.subject.id.text) }
      #expect(claimed.count == 100 && Set(claimed).count == 100)
      #expect(try await first.claim().isEmpty)
      // The second worker dies. Its checks are available at once, without waiting for its lease.
      try await die(second, leaving: first)
      settings.batchSize = 100
      let third = try await queue(session, settings)
      #expect(try await third.claim().count == 40)
      #expect(try await third.claim().isEmpty)
      try await die(first, leaving: third)
      #expect(try await third.claim().count == 60)
      await third.close()
    }
  }

  /// The first worker leaves checks for the next one. A worker alone takes as many as it may.
  @Test func fewDueChecksAreSharedAmongWorkers() async throws {
    try await withDatabase { session, settings in
      var settings = settings
      (settings.batchSize, settings.concurrency) = (100, 4)
      try await addReceipts(160, session)
      let first = try await queue(session, settings)
      try await first.enqueue()
      #expect(try await first.claim().count == 25)
      let second = try await queue(session, settings)
      for worker in [second, first] { #expect(try await worker.claim().count == 25) }
      try await die(second, leaving: first)
      #expect(try await first.claim().count == 100)
      await first.close()
    }
  }

  /// The plan uses the index of due checks, however many checks there are.
  @Test func aClaimReadsTheIndexOfDueChecks() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(20_000, session)
      let queue = try await queue(session, settings)
      try await queue.enqueue()
      try await session.execute(
        "UPDATE night_audit.receipt_checks SET due_rank = 4, due_from = due_from + interval '9 days' WHERE subject_id > 'r2'"
      )
      try await session.executeScript("ANALYZE night_audit.receipt_checks")
      let sql = CheckQueue.statement().replacing("$2::int", with: "0").replacing("$3", with: "1000")
        .replacing("$4::int", with: "7").replacing("$1", with: "'2026-11-20T03:00:00Z'::timestamptz")
      let plan = try await session.execute("EXPLAIN \(sql)").map { try $0.text(0) }.joined(separator: "\n")
      #expect(plan.contains("Index Scan using receipt_checks_due") && !plan.contains("Sort"), "\(plan)")
      #expect(!plan.contains("Seq Scan on receipt_checks"), "\(plan)")
      await queue.close()
    }
  }

  @Test func onlyStaleAnswersWithinTheRefundWindowAreAskedAgain() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      try await writer(settings).write([
        try await result("r1", [fact("t1", signed: asOf)], on: session)
      ])
      for (later, isDue) in [
        (Reconciliation.Span.days(6), false), (.days(7), true), (.days(119), true), (.days(121), false),
      ] {
        let due = try await queue(session, settings, asOf: asOf + later).dueCount()
        #expect((due == 1) == isDue, "\(later.wholeDays) days later")
      }
    }
  }
}
