import AppStore
import AuditStore
import Reconciliation
import Run

/// A check that Apple is asked about: whom, and what.
struct Inquiry: Sendable {
  var check: JudgedCheck
  var channel: any AppleChannel
  var questions: [Question]
  /// How much of the budget its payload takes.
  var payloadBytes = 0
  /// What Apple has lately said, by transaction id.
  var told: [String: ToldTransaction] = [:]
  /// The answers so far, in the order of the questions.
  var answers: [ChannelAnswer] = []
  /// What became of the next question so far; nil before it was put.
  var attempt: Attempt?

  /// A question that was put in vain, and is put again.
  struct Attempt: Sendable {
    var trials: Trials
    /// The answer that it was, should nobody be asked any more.
    var trouble: ChannelAnswer?
    /// Whether it was refused with its credential.
    var wasRefused = false
  }

  /// What is to be answered next; nil when all is.
  var next: Question? { answers.count < questions.count ? questions[answers.count] : nil }

  /// Whether a question of it has failed as often as it may: what is left has one try.
  var hasFailed: Bool { answers.contains { $0.silence != nil } }

  /// Whether Apple was asked already tonight.
  var isBegun: Bool { attempt != nil || answers.contains { $0.toldAt == nil } }

  /// The answer to a question that need not be put: what Apple has lately said about the same transaction of the same app.
  ///
  /// A notification answers a look-up. A receipt is asked about all the same: that no refund was notified proves nothing.
  /// Of one that nobody here can judge, nothing but Apple's answer about it says what it brings.
  func answer(to question: Question) -> ChannelAnswer? {
    if case .claim = check.judgement { return nil }
    guard case .transaction(let id) = question.matter, let told = told[id],
      told.channel == .serverApi || check.due.subject.kind == .lookup,
      told.bundleId == nil || told.bundleId == channel.app.bundleId,
      check.genuine.map({ $0.environment == told.environment }) ?? true
    else { return nil }
    var answer = ChannelAnswer(.genuine(environment: told.environment, bundleId: told.bundleId, facts: []))
    answer.toldAt = told.at
    return answer
  }
}
