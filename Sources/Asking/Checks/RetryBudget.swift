import AppStore
import Reconciliation

/// The retry budget of one question. It tells the question's own failures from an outage. A few questions that Apple
/// never answers look like one when no other question is left, and the night would wait for its end.
struct RetryBudget {
  /// The tries of a question in one run. Failures while Apple answers no question cost no try.
  private static let most = 3
  /// A question that also failed on an earlier night waits at most this long for an outage to end.
  static let waitLimit = Duration.seconds(600)

  private(set) var count = 0
  /// The last failure.
  var trouble: ChannelAnswer?
  /// True if the credential was refused. The question is then asked again with a new one.
  var wasRefused = false
  private let hasFailedBefore: Bool
  /// True if another question of the proof has used up its tries; this one then has one try.
  private let isFurther: Bool
  /// True if other questions were answered between two failures of this one.
  private var otherQuestionsWereAnswered = false
  /// The number of answered questions on the lane at the last failure; nil before it.
  private var answered: Int?

  init(_ history: CheckHistory, asOf: Instant, isFurther: Bool) {
    hasFailedBefore = history.unansweredSince.map { $0 < asOf } ?? false
    self.isFurther = isFurther
  }

  /// The effect of another failure on the circuit breaker. Repeated failures of one question count among the failed
  /// calls, but they do not show an outage.
  mutating func meaning(on lane: AskingGate.Condition) -> CircuitBreaker.CallResult {
    if isFurther { return .abandoned }
    guard let before = answered else { return .failure }
    otherQuestionsWereAnswered = otherQuestionsWereAnswered || lane.answered > before
    if let unansweredDuration = lane.unansweredDuration {
      return isItsOwn(on: lane, unansweredDuration) ? .abandoned : .failure
    }
    return lane.answered > 0 ? .repeatedFailure : .failure
  }

  /// Counts a failure. Returns true if it belongs to an outage.
  mutating func fail(on lane: AskingGate.Condition) -> Bool {
    answered = lane.answered
    if let unansweredDuration = lane.unansweredDuration, !isItsOwn(on: lane, unansweredDuration) { return true }
    count += 1
    return false
  }

  private func isItsOwn(on lane: AskingGate.Condition, _ unansweredDuration: Duration) -> Bool {
    isFurther || otherQuestionsWereAnswered
      || hasFailedBefore && (lane.answered > 0 || unansweredDuration >= Self.waitLimit)
  }

  var hasRetriesLeft: Bool { !isFurther && count < Self.most }
}
