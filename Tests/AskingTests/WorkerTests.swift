import AppStore
import Postgres
import Reconciliation
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Three questions that another worker of the same database has leased.
@Suite struct WorkerTests {
  private let shop: RecheckFixture
  private let other: CheckQueue
  private let script = AnswerScript.found(1...3)

  init() async throws {
    let shop = try await RecheckFixture()
    try await shop.orders(1...3)
    let other = try await shop.queue()
    try await other.enqueue()
    #expect(try await other.claim().count == 3)
    (self.shop, self.other) = (shop, other)
  }

  /// Ends the other worker, and releases its checks before the server notices the end of its session.
  private func release() async throws {
    await other.close()
    try await shop.session.executeScript("UPDATE night_audit.receipt_checks SET worker = NULL")
  }

  /// Runs a re-check, and an action once it logs that it waits.
  private func whileItWaits(
    _ selection: Selection = Selection(), _ meanwhile: () async throws -> Void
  ) async throws -> RecheckSummary {
    let (waiting, waits) = AsyncStream.makeStream(of: Void.self)
    async let asking = {
      defer { waits.finish() }
      return try await shop.recheck([ScriptedChannel(script)], selection: selection) {
        if $0.contains(RecheckStage.waitMessage) { waits.finish() }
      }
    }()
    for await _ in waiting {}
    try await meanwhile()
    return try await asking
  }

  /// The last worker that asks decides refusals, and a worker that only waits does not count as asking. The checks of a
  /// worker that dies are asked about in the same run.
  @Test func checksOfADeadWorkerAreTakenOver() async throws {
    let summary = try await whileItWaits {
      #expect(script.asked == [])
      let others = try await shop.session.execute("SELECT \(Worker.otherWorkersLive)", [.int(other.worker.number)])
      #expect(try others.single().bool(0) == false)
      await other.close()
    }
    #expect(summary.outcomes == [.verified: 3] && summary.endedEarly == nil)
  }

  /// A check without a lease that another session has locked is not settled.
  @Test func lockedChecksAreAskedAboutAfterTheLock() async throws {
    try await release()
    let locking = try await shop.connect()
    try await locking.executeScript("BEGIN; SELECT FROM night_audit.receipt_checks FOR UPDATE LIMIT 1")
    let summary = try await whileItWaits {
      #expect(script.asked.count == 2)
      try await locking.executeScript("COMMIT")
    }
    #expect(summary.outcomes == [.verified: 3])
  }

  @Test func theDeadlineEndsTheWaitForOtherWorkers() async throws {
    let summary = try await shop.recheck(script, limit: .seconds(1))
    #expect(script.asked == [] && summary.isContinuedByOtherWorkers && summary.endedEarly != nil)
  }

  /// A check that another worker has made due is in no list that was read before.
  @Test func aFilteredRunTakesChecksThatOtherWorkersMadeDue() async throws {
    var selection = Selection()
    selection.orderId = "o1"
    let summary = try await whileItWaits(selection) {
      try await shop.receipt("r", for: "o1")
      try await other.enqueue()
      try await shop.session.execute(
        "UPDATE night_audit.receipt_checks SET due_from = NULL WHERE subject_kind = 'lookup'")
    }
    #expect(summary.outcomes.values.reduce(0, +) == 1 && !summary.isContinuedByOtherWorkers)
  }

  /// A stopped process keeps its session, but does not renew its lease.
  @Test func aWorkerWhoseLeaseHasRunOutLosesItsChecks() async throws {
    let next = try await shop.queue()
    let runOut =
      "UPDATE night_audit.workers SET leased_until = clock_timestamp() - interval '1 second' WHERE number = $1"
    try await shop.session.execute(runOut, [.int(other.worker.number)])
    // It continues, and no other worker has taken its checks yet.
    try await other.renew()
    #expect(try await next.claim().isEmpty)
    try await shop.session.execute(runOut, [.int(other.worker.number)])
    await next.close()
    let summary = try await shop.recheck(script)
    #expect(summary.incompleteReason == nil && summary.outcomes[.verified] == 3, "\(summary)")
  }

  /// After a session is lost, the result of its last statement is unknown. The first session registers the worker, the
  /// second one claims.
  @Test(arguments: ["SET worker = $4", "COMMIT"]) func aLostReplyToALeaseStrandsNoChecks(lost: String) async throws {
    try await release()
    let opened = Counter()
    let queue = try await shop.queue(connect: shop.connection(losing: lost, at: 2, opened))
    #expect(try await queue.claim().count == 3)
    #expect(opened.value == 3)
    #expect(try await queue.claim().isEmpty)
    await queue.close()
  }

  /// A worker that lost its lease may store an answer after the new leaseholder, with the same as-of or an earlier one.
  @Test(arguments: [0, 5] as [Int64]) func theAnswerOfTheNewLeaseholderCounts(seconds: Int64) async throws {
    let leased = try await shop.session.execute(
      "SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c WHERE c.subject_id LIKE '%/1'")
    try await release()
    let summary = try await shop.recheck(script, asOf: RecheckFixture.asOf + .seconds(seconds))
    #expect(summary.outcomes == [.verified: 3])
    let check = CheckInProgress(row: try CheckRow(try leased.single()))
    var late = CheckResult(of: check, .notFound, .notFound, channel: .serverApi)
    late.app = "com.example.game"
    try await shop.writer().write([late])
    let checks = try await shop.rows("outcome, reason, attempts, channel", from: "receipt_checks")
    #expect(checks == Array(repeating: "verified 1 serverApi", count: 3))
    // The late answer is stored nevertheless.
    let last = try await shop.rows("outcome", from: "answers ORDER BY answer_id DESC LIMIT 1")
    #expect(last == ["not_found"])
  }
}
