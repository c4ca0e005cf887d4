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
