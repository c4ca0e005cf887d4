import AppStore
import Foundation
import Postgres
import Reconciliation
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

  private func queue(_ session: PostgresSession, _ settings: Settings, runId: String? = nil, asOf: Instant? = nil)
    throws -> CheckQueue
  {
    try CheckQueue(
      session: session, settings: settings, asOf: asOf ?? self.asOf, runId: runId ?? self.runId, selection: Selection())
  }

  private func fact(_ id: String, signed: Instant, revoked: Instant? = nil) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: "gems", channel: .serverApi, signedDate: signed)
    fact.bundleId = "com.example.game"
    fact.purchaseDate = asOf - .days(3)
    fact.revocation = .says(revoked.map { Revocation(date: $0) })
    return fact
  }

  private func result(_ receipt: String, _ facts: [TransactionFact], outcome: CheckOutcome = .verified) -> CheckResult {
    var result = CheckResult(
      subject: CheckSubject(kind: .receipt, id: Identifier(receipt)), orderId: Identifier("o" + receipt.dropFirst()),
      kind: .app, outcome: outcome, channel: .serverApi)
    result.facts = facts
    if outcome == .unanswered { result.reason = .unreachable }
    return result
  }

  @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [1, 0, 2], [2, 0, 1]])
  func theNewestFactDecidesWhateverTheOrderOfArrival(_ order: [Int]) async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      let refunded = asOf - .days(2)
      // Bought, refunded, and the refund reversed.
      let facts = [
        fact("t1", signed: asOf - .days(3)), fact("t1", signed: asOf - .days(2), revoked: refunded),
        fact("t1", signed: asOf - .days(1)),
      ]
      let writer = AnswerWriter(session: session, asOf: asOf, runId: runId)
      for index in order { try await writer.write([result("r1", [facts[index]])]) }
      let row = try await session.execute(
        "SELECT revoked_at IS NULL, revocation_withdrawn_at FROM night_audit.transactions"
      ).single()
      #expect(try row.bool(0))
      #expect(try row.optionalTimestamp(1) == (asOf - .days(1)).microseconds)
      #expect(try await session.execute("SELECT count(*) FROM night_audit.evidence").single().int64(0) == 3)
    }
  }

  @Test func whatApplesAnswersHoldThatNoTableCanIsMended() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      var odd = fact("t\0 1", signed: Instant(microseconds: .max), revoked: Instant(microseconds: .min))
      odd.expiresDate = Instant(microseconds: .max)
      try await AnswerWriter(session: session, asOf: asOf, runId: runId).write([result("r1", [odd])])
      let row = try await session.execute(
        "SELECT transaction_id, expires_at IS NULL, revoked_at IS NOT NULL FROM night_audit.transactions"
      ).single()
      #expect(try row.text(0) == "t\u{FFFD} 1")
      #expect(try row.bool(1))
      #expect(try row.bool(2))
    }
  }

  @Test func failuresFollowTheScheduleAndWhatWasVerifiedStaysVerified() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(2, session)
      let waits: [Reconciliation.Span] = [.minutes(5), .hours(1), .hours(6), .hours(20), .hours(20)]
      try await queue(session, settings).enqueue()
      try await AnswerWriter(session: session, asOf: asOf, runId: runId).write([
        result("r2", [fact("t2", signed: asOf)])
      ])
      var now = asOf
      for wait in waits {
        try await AnswerWriter(session: session, asOf: now, runId: runId).write([result("r1", [], outcome: .unanswered)]
        )
        let next = try await session.execute(
          "SELECT next_attempt FROM night_audit.receipt_checks WHERE subject_id = 'r1'"
        ).single().timestamp(0)
        #expect(next == (now + wait).microseconds)
        now = Instant(microseconds: next)
      }
      try await AnswerWriter(session: session, asOf: now, runId: runId).write([result("r2", [], outcome: .unanswered)])
      let row = try await session.execute(
        "SELECT outcome, reason, next_attempt FROM night_audit.receipt_checks WHERE subject_id = 'r2'"
      ).single()
      #expect(try row.text(0) == "verified")
      #expect(try row.optionalText(1) == nil)
      #expect(try row.timestamp(2) == (now + .minutes(5)).microseconds)
    }
  }

  @Test func workersShareTheQueueAndADeadOnesLeaseExpires() async throws {
    try await withDatabase { session, settings in
      var settings = settings
      settings.batchSize = 30
      try await addReceipts(100, session)
      let other = "7f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d12"
      let first = try queue(session, settings)
      let second = try queue(session, settings, runId: other)
      #expect(try await first.enqueue() == 100)
      #expect(try await second.enqueue() == 0)
      var claimed: [String] = []
      for worker in [first, second, first, second, first] { claimed += try await worker.claim().map(\.subject.id.text) }
      #expect(claimed.count == 100)
      #expect(Set(claimed).count == 100)
      // The second worker died; its leases run out.
      try await session.execute(
        "UPDATE night_audit.receipt_checks SET leased_until = clock_timestamp() - interval '1 second' WHERE leased_by = $1::uuid",
        [.text(other)])
      settings.batchSize = 100
      #expect(try await queue(session, settings).claim().count == 40)
      try await first.release()
      #expect(try await queue(session, settings).claim().count == 100)
    }
  }

  @Test func onlyStaleAnswersWithinTheRefundWindowAreAskedAgain() async throws {
    try await withDatabase { session, settings in
      try await addReceipts(1, session)
      try await queue(session, settings).enqueue()
      try await AnswerWriter(session: session, asOf: asOf, runId: runId).write([
        result("r1", [fact("t1", signed: asOf)])
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
