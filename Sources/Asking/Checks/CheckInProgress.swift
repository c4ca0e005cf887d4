import AppStore
import AuditStore
import Reconciliation
import Run
import Settings

/// A check that is being asked about: its channel, its questions and the answers so far.
struct CheckInProgress: Sendable {
  var check: JudgedCheck
  var channel: any AppleChannel
  var questions: [Question]
  var payloadBytes = 0
  /// Recent statements of Apple by transaction ID.
  var reported: [String: ReportedTransaction] = [:]
  var answers: [ChannelAnswer] = []
  /// The attempts at the next question; nil before the first one.
  var attempt: Attempt?

  struct Attempt: Sendable {
    var trials: RetryBudget
    var trouble: ChannelAnswer?
    var wasRefused = false
  }

  var next: Question? { answers.count < questions.count ? questions[answers.count] : nil }

  /// True if one question has used up its tries. Each remaining question then has one try.
  var hasFailed: Bool { answers.contains { $0.silence != nil } }

  /// True if Apple was asked in this run.
  var isBegun: Bool { attempt != nil || answers.contains { $0.statedAt == nil } }

  /// The answer to a question, taken from a recent statement about the same transaction and app. A notification answers
  /// look-ups only, because a missing refund notification proves nothing about a receipt. An unverifiable receipt is
  /// always asked about: only the answers show what it contains.
  func answer(to question: Question) -> ChannelAnswer? {
    if case .claim = check.judgement { return nil }
    guard case .transaction(let id) = question.matter, let statement = reported[id],
      statement.channel == .serverApi || check.due.subject.kind == .lookup,
      statement.bundleId == nil || statement.bundleId == channel.app.bundleId,
      check.genuine.map({ $0.environment == statement.environment }) ?? true
    else { return nil }
    var answer = ChannelAnswer(.genuine(environment: statement.environment, bundleId: statement.bundleId, facts: []))
    answer.statedAt = statement.at
    return answer
  }
}
