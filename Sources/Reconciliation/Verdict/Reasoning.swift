/// The reasons of a judgement, in words.
/// The rules write them while they decide. An audit of all orders asks for none, and no sentence is made.
public struct Reasoning: Sendable {
  public struct Step: Sendable {
    public var rule: VerdictRule
    /// nil: the rule did not apply, and the next one was tried.
    public var verdict: Verdict?
    public var because: String
  }

  let isWanted: Bool
  public private(set) var steps: [Step] = []
  public private(set) var disposition = ""
  public private(set) var declined: [FindingKind: String] = [:]

  init(isWanted: Bool) { self.isWanted = isWanted }

  mutating func take(_ rule: VerdictRule, _ verdict: Verdict?, _ because: Because) {
    if isWanted { steps.append(Step(rule: rule, verdict: verdict, because: because.text)) }
  }

  mutating func recordDisposition(_ because: Because) { disposition = because.text }

  mutating func take(_ declinedReasons: [FindingKind: String]) { declined = declinedReasons }
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

extension Span {
  /// The largest whole unit, rounded down: `3 days`, `1 hour`, `20 minutes`.
  public var words: String {
    let seconds = magnitude.wholeSeconds
    let (count, unit): (Int64, String) =
      switch seconds {
      case 172_800...: (seconds / 86_400, "day")
      case 7_200...: (seconds / 3_600, "hour")
      case 120...: (seconds / 60, "minute")
      default: (seconds, "second")
      }
    return "\(count) \(unit)\(count == 1 ? "" : "s")"
  }
}
