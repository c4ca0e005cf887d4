extension VerdictRule {
  /// A rule that was tried, and its result.
  public struct Step: Sendable {
    public var rule: VerdictRule
    /// nil: the rule did not apply, and the next one was tried.
    public var verdict: Verdict?
    public var because: String
  }
}

/// The reason of one decision, made only if wanted.
struct Because {
  let isWanted: Bool
  private(set) var text = ""

  init(isWanted: Bool) { self.isWanted = isWanted }

  mutating func noting<Answer>(_ answer: Answer, _ text: @autoclosure () -> String) -> Answer {
    if isWanted { self.text = text() }
    return answer
  }
}
