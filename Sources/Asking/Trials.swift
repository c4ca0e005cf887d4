import Reconciliation

/// How often one question has failed tonight, and whether that is its own trouble or everybody's.
///
/// A few questions that Apple never answers, with nothing else left to ask, look like an outage, and the night would wait for
/// its end.
struct Trials {
  /// Failures that were the question's own.
  private(set) var count = 0
  /// Whether nobody has answered it on an earlier night.
  private let hasFailedBefore: Bool
  /// Whether it is a finding by now that nobody knows what becomes of it, and the next failure no news.
  private let isStuck: Bool
  /// Whether others were answered between two failures of its own.
  private var wereOthersAnswered = false
  /// How many questions were answered when it failed last.
  private var answered: Int?

  /// - Parameters:
  ///   - history: what earlier nights have made of it.
  ///   - stuckAfter: the age at which silence is a finding.
  init(_ history: CheckHistory, asOf: Instant, stuckAfter: Span) {
    hasFailedBefore = history.unansweredSince.map { $0 < asOf } ?? false
    isStuck = history.unansweredSince.map { asOf - $0 >= stuckAfter } ?? false
  }

  /// Takes in how many questions have been answered, before its own answer is one of them.
  mutating func look(at answered: Int) {
    if let before = self.answered, answered > before { wereOthersAnswered = true }
    self.answered = answered
  }

  /// Whether a failure says nothing new about Apple. That many fail now and then still says that Apple is in trouble.
  ///
  /// - Parameter isSilent: whether Apple answers nobody now.
  func isOldTrouble(whileSilent isSilent: Bool) -> Bool {
    isStuck || count > 0 && (hasFailedBefore || wereOthersAnswered && isSilent)
  }

  /// Counts a failure.
  ///
  /// - Returns: whether it is an outage's.
  mutating func fail(whileSilent isSilent: Bool) -> Bool {
    if isSilent, !hasFailedBefore, !wereOthersAnswered { return true }
    count += 1
    return false
  }
}
