import AppStore
import Reconciliation

/// How often one question has failed tonight, and whether that is its own trouble or everybody's.
///
/// A few questions that Apple never answers, with nothing else left to ask, look like an outage, and the night would wait for
/// its end.
struct Trials {
  /// How often a question is put within a run when Apple answers with trouble of its own. While Apple answers nobody the trouble
  /// is not the question's, and costs it no try.
  private static let most = 3
  /// How long Apple must have been silent before a question that failed on an earlier night, too, waits no longer for the end
  /// of what looks like an outage.
  static let patience = Duration.seconds(600)

  /// Failures that were the question's own.
  private(set) var count = 0
  /// Whether nobody has answered it on an earlier night.
  private let hasFailedBefore: Bool
  /// Whether another question of the same proof has failed as often as it may: what is left has one try.
  private let isFurther: Bool
  /// Whether others were answered between two failures of its own.
  private var wereOthersAnswered = false
  /// How many questions were answered when it failed last; nil before it did.
  private var answered: Int?

  /// - Parameters:
  ///   - history: what earlier nights have made of it.
  ///   - isFurther: whether another question of the same proof has failed as often as it may.
  init(_ history: CheckHistory, asOf: Instant, isFurther: Bool) {
    hasFailedBefore = history.unansweredSince.map { $0 < asOf } ?? false
    self.isFurther = isFurther
  }

  /// What another failure says of Apple's health. The first one says all that there is to say: that the same question fails again
  /// says of how many calls fail, but not that nobody is answered.
  mutating func meaning(on lane: AskingGate.Condition) -> CircuitBreaker.CallResult {
    if isFurther { return .abandoned }
    guard let before = answered else { return .failure }
    wereOthersAnswered = wereOthersAnswered || lane.answered > before
    if let silentFor = lane.silentFor { return isItsOwn(on: lane, silentFor) ? .abandoned : .failure }
    return lane.answered > 0 ? .repeatedFailure : .failure
  }

  /// Counts a failure.
  ///
  /// - Returns: whether it is an outage's.
  mutating func fail(on lane: AskingGate.Condition) -> Bool {
    answered = lane.answered
    if let silentFor = lane.silentFor, !isItsOwn(on: lane, silentFor) { return true }
    count += 1
    return false
  }

  private func isItsOwn(on lane: AskingGate.Condition, _ silentFor: Duration) -> Bool {
    isFurther || wereOthersAnswered || hasFailedBefore && (lane.answered > 0 || silentFor >= Self.patience)
  }

  /// Whether the question may be put once more.
  var isLeft: Bool { !isFurther && count < Self.most }
}
