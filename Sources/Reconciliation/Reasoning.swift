/// What was considered on the way to a judgement, in words.
///
/// The rules that decide write it while they decide, so that it cannot say anything else than they do. The audit of a
/// million orders asks for none of it, and no sentence is made.
public struct Reasoning: Sendable {
  /// One rule of the verdict that was considered.
  public struct Step: Sendable {
    public var rule: VerdictRule
    /// nil: the rule did not hold, and the next one was considered.
    public var verdict: Verdict?
    /// Why it held or did not, as a sentence.
    public var because: String
  }

  let isWanted: Bool
  /// The rules of the verdict up to the one that held.
  public private(set) var steps: [Step] = []
  /// Why payment and goods put the order into its bucket.
  public private(set) var disposition = ""
  /// Kinds of finding that do not stand on the order, each with its reason.
  public private(set) var declined: [FindingKind: String] = [:]

  init(isWanted: Bool) { self.isWanted = isWanted }

  mutating func take(_ rule: VerdictRule, _ verdict: Verdict?, _ because: Because) {
    if isWanted { steps.append(Step(rule: rule, verdict: verdict, because: because.text)) }
  }

  mutating func tellDisposition(_ because: Because) { disposition = because.text }

  mutating func take(_ reasonsAgainst: [FindingKind: String]) { declined = reasonsAgainst }
}

/// The reason of one decision, made only where somebody wants to read it.
struct Because {
  let isWanted: Bool
  private(set) var text = ""

  init(isWanted: Bool) { self.isWanted = isWanted }

  /// Passes an answer through and notes its reason.
  mutating func noting<Answer>(_ answer: Answer, _ text: @autoclosure () -> String) -> Answer {
    if isWanted { self.text = text() }
    return answer
  }
}

extension Span {
  /// The span in its largest whole unit, rounded down: `3 days`, `1 hour`, `20 minutes`.
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
