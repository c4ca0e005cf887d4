import Reconciliation
import Settings
import Synchronization
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Questions that Apple does not answer, in a real database.
@Suite struct RetryTests {
  private static let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  @Test func partialAnswersStoreEvidenceWithoutAnOutcome() async throws {
    try await shop.order("o", transaction: "1")
    var part = ChannelAnswer.found("1")
    part.missing = Silence(reason: .appleError, detail: "HTTP 503", retryAfter: Self.asOf + .hours(1))
    let summary = try await shop.recheck(["1": [part]])
    #expect(summary.outcomes == [.unanswered: 1] && summary.exitStatus == .incomplete)
    #expect(try await shop.rows("transaction_id", from: "evidence") == ["1"])
    #expect(try await shop.states() == ["unanswered apple_error 1"])
  }

  /// The subscription's status is a request of its own.
  @Test func onlyTheMissingPartOfAnAnswerIsAskedForAgain() async throws {
    try await shop.order("o", transaction: "1")
    var part = ChannelAnswer.found("1")
    part.missing = Silence(reason: .appleError, detail: "HTTP 503")
    let script: AnswerScript = ["1": [part], "the rest of 1": [part, .found("1")]]
    #expect(try await shop.recheck(script).outcomes == [.verified: 1])
    #expect(script.asked == ["1", "the rest of 1", "the rest of 1"])
  }

  /// A question that awaits its retry at the deadline is stored, because it would look as if it had never been asked.
  @Test func anAnswerAwaitingItsRetryIsStoredAtTheDeadline() async throws {
    try await shop.order("o", transaction: "1")
    let script = AnswerScript(["1": [.outOfOrder]])
    let summary = try await shop.recheck(script, limit: .seconds(2), gate: .gate(failures: 18))
    #expect(summary.outcomes == [.unanswered: 1] && script.asked == ["1", "1"])
    #expect(try await shop.states() == ["unanswered apple_error 1"])
  }

  /// Failed probes consume no retry of a question, whether they end in an error or a timeout.
  @Test(arguments: [ChannelAnswer.outOfOrder, .silent]) func anOutageConsumesNoRetry(trouble: ChannelAnswer)
    async throws
  {
    try await shop.order("o", transaction: "1")
    let script = AnswerScript(["1": Array(repeating: trouble, count: 6) + [.found("1")]])
    let summary = try await shop.recheck(script, gate: .gate(failures: 19, step: .seconds(60)))
    #expect(summary.outcomes == [.verified: 1] && summary.endedEarly == nil && script.asked.count == 7)
  }

  /// Apple never answers about some purchases. With nothing else left to ask, they are not taken for an outage.
  @Test func fewUnansweredChecksDoNotDelayTheNight() async throws {
    try await shop.orders(1...8)
    let script = AnswerScript.all(1...8, .outOfOrder)
    let summary = try await shop.recheck(script, limit: .seconds(20), gate: .gate(answers: 1, failures: 0))
    #expect(summary.endedEarly == nil && summary.outcomes == [.unanswered: 8] && script.asked.count == 24)
  }

  /// Every purchase on a receipt is asked about, but it is one proof without an answer.
  @Test(arguments: [(0, 32, true), (17, 3, false)])
  func aReceiptWithManyPurchasesDoesNotDelayTheNight(failures: Int, asked: Int, hasTime: Bool) async throws {
    let proof = GenuineProof(
      environment: .production, bundleId: "com.example.game", facts: (1...30).map { .test("\($0)", .offline) })
    try await shop.order("o", transaction: "1")
    try await shop.receipt("r", for: "o")
    let script = AnswerScript.all(1...30, .outOfOrder)
    let summary = try await shop.recheck(
      script, judge: OfflineJudge(hasRoots: true) { _ in (.app, .genuine(proof)) }, limit: .seconds(hasTime ? 30 : 2),
      gate: .gate(failures: failures))
    #expect((summary.endedEarly == nil) == hasTime && script.asked.count == asked, "\(script.asked)")
    // The failed attempt is stored, so that a later night can tell that the question is stuck.
    #expect(try await shop.states() == ["unanswered apple_error 1"])
  }

  /// In an outage, a question that failed on an earlier night waits like all others. If another question was answered
  /// tonight, it uses its retries.
  @Test(arguments: [0, 1]) func aQuestionThatFailedBeforeWaitsForTheEndOfAnOutage(answers: Int) async throws {
    try await shop.order("o", transaction: "1")
    _ = try await shop.recheck(["1": [.outOfOrder]])
    let script = AnswerScript(["1": Array(repeating: ChannelAnswer.outOfOrder, count: 6) + [.found("1")]])
    let summary = try await shop.recheck(
      script, asOf: Self.asOf + .days(1), limit: .seconds(30),
      gate: .gate(answers: answers, failures: 20, step: .seconds(10)))
    #expect(summary.endedEarly == nil && summary.outcomes == [answers == 0 ? .verified : .unanswered: 1])
    #expect(script.asked.count == (answers == 0 ? 7 : 3))
  }

  /// A permit from before an outage is invalid when its question is next.
  @Test func permitsFromBeforeAnOutageAreInvalid() async throws {
    try await shop.orders(1...4)
    let gate = AskingGate.gate(failures: 19)
    let first = Mutex(true)
    let script = AnswerScript.all(1...4, .outOfOrder)
    var channel = ScriptedChannel(script)
    channel.beforeTurn = {
      let isFirst = first.withLock { first in
        defer { first = false }
        return first
      }
      // The other questions wait until the first answer has made the app silent.
      while !isFirst, gate.silent.isEmpty, (try? await Task.sleep(for: .milliseconds(5))) != nil {}
    }
    let summary = try await shop.recheck([channel], limit: .seconds(2), gate: gate)
    #expect(script.asked.count == 1 && summary.outcomes == [.unanswered: 1] && summary.endedEarly != nil)
    #expect(try await shop.states() == ["pending never_checked 3", "unanswered apple_error 1"])
  }
}
