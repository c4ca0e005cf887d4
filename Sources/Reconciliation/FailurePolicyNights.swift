/// What a proof's next answer is to the guard against refusals that are too many, by what was answered about it before.
public enum AnswerStanding: Hashable, Sendable {
  /// Nobody has answered.
  case first
  /// It was answered, but never verified, rejected or not found: only a person could take that further.
  case undecided
  /// Its refusal is held, and counted in the run of that as-of.
  case held(Refusal, since: Instant)
  /// It was refused, and that has accused its customer; nil: what was refused was another payload, or for what no kind
  /// counts.
  case refused(Refusal?)
  case verified

  /// - Parameters:
  ///   - outcome: what is known of the proof.
  ///   - refused: how the same payload was refused before, which has accused somebody, and it was not verified since.
  ///   - held: the refusal that is held, and the as-of of the run that it is held in; nil when none is.
  public init(after outcome: CheckOutcome, refused: Refusal?, held: (refusal: Refusal, since: Instant)?) {
    if let held {
      self = .held(held.refusal, since: held.since)
      return
    }
    switch outcome {
    case .verified: self = refused == nil ? .verified : .refused(refused)
    case .rejected, .notFound: self = .refused(refused)
    case .review: self = refused == nil ? .undecided : .refused(refused)
    case .pending, .unanswered: self = refused == nil ? .first : .refused(refused)
    }
  }

  /// What an answer counts for. A refusal that repeats itself is no news, whatever else comes that night: were it counted
  /// among others like it alone, they would be too many for ever. One of another kind is.
  ///
  /// - Parameters:
  ///   - refusal: what was refused, when that accuses a customer.
  ///   - denial: what Apple refused although it has signed or accepted it.
  ///   - asOf: of the run that asks.
  public func weight(
    of outcome: CheckOutcome, refusal: Refusal?, denial: Refusal?, asOf: Instant
  ) -> AnswerWeight {
    let isNews: Bool
    switch self {
    case .first:
      return AnswerWeight(isCounted: true, refusal: refusal ?? denial, heldSince: refusal == nil ? nil : asOf)
    case .undecided:
      return AnswerWeight(
        isCounted: outcome != .review || denial != nil, refusal: refusal ?? denial,
        heldSince: refusal == nil ? nil : asOf)
    case .held(let before, let since):
      if refusal == before { return AnswerWeight(isCounted: false, refusal: nil, heldSince: since) }
      isNews = true
    case .refused(let before): isNews = refusal != before
    // What is verified still, and of another app or transaction than its order now names, is the order's matter.
    case .verified: isNews = outcome != .verified
    }
    if isNews, let refusal { return AnswerWeight(isCounted: true, refusal: refusal, heldSince: asOf) }
    return AnswerWeight(isCounted: denial != nil, refusal: denial, heldSince: nil)
  }
}

/// What one answer counts for in its night.
public struct AnswerWeight: Hashable, Sendable {
  /// Whether it is one of the first answers.
  public var isCounted: Bool
  /// As what it counts besides, when it is counted.
  public var refusal: Refusal?
  /// As-of of the run in which a refusal counts that is held until it is known whether too many were refused alike; nil when
  /// nothing is held.
  public var heldSince: Instant?

  public init(isCounted: Bool, refusal: Refusal?, heldSince: Instant?) {
    self.isCounted = isCounted
    self.refusal = refusal
    self.heldSince = heldSince
  }
}

/// The first answers about one app, run by run, and what has become of those that were refused: tells which of the refusals
/// that are held were too many to be the customers' doing.
public struct AnsweredRuns: Sendable {
  /// Refusals that are held alike.
  public struct Held: Hashable, Sendable {
    /// As-of of the run in which they were counted.
    public var since: Instant
    /// As-of of the run that asked about them last.
    public var asked: Instant

    public init(since: Instant, asked: Instant) {
      self.since = since
      self.asked = asked
    }

    /// Whether they were refused once more after they were counted.
    public var isAskedAgain: Bool { since < asked }
  }

  /// A night's answers come in as many pieces as there are re-checks before it, and attempts at it. What was held longer ago
  /// has been asked about again since.
  public static let night = RetrySchedule.nightly

  /// As they were told, by as-of.
  public var told: [Instant: FirstAnswers] = [:]
  /// How many of a run's refusals are refusals still. Told of runs of which something was asked about again.
  public var stillRefused: [Instant: [Refusal: Int]] = [:]
  /// How many receipts are genuine by their signature and wait for Apple's word. That is an answer, too: were it none, the
  /// false ones, which wait for nobody, would be alone in an outage.
  public var waiting = 0
  /// All that is held.
  public var held: Set<Held> = []
  private let asOf: Instant
  private let share: Share

  /// - Parameters:
  ///   - asOf: of the run that decides.
  ///   - share: of the first answers (`audit.systemicShare`); all of them switch it off.
  public init(asOf: Instant, share: Share) {
    self.asOf = asOf
    self.share = share
  }

  /// The kinds of refusal that were no customers' doing. What goes on from a night before accuses nobody tonight either,
  /// however few of its kind tonight has of its own.
  public func systemic(_ held: Held) -> Set<Refusal> {
    var kinds = ownKinds(held)
    for other in self.held where !held.isAskedAgain && other.isAskedAgain && other.asked > held.since - Self.night {
      kinds.formUnion(ownKinds(other))
    }
    return kinds
  }

  /// What is wrong and what to do, about what is held.
  public func complaint(app: String, about held: Held) -> String? {
    counted(held).lazy.compactMap { $0.complaint(app: app, share: share) }.first
  }

  /// What is wrong with this run's own answers.
  public func complaint(app: String) -> String? {
    told[asOf] == nil
      ? nil : sum(asOf...asOf, Held(since: asOf, asked: asOf)).complaint(app: app, share: share)
  }

  private func ownKinds(_ held: Held) -> Set<Refusal> { Set(counted(held).flatMap { $0.systemic(share: share) }) }

  /// The answers that count for what is held: its run's own, those of its night so far, and all since.
  private func counted(_ held: Held) -> [FirstAnswers] {
    let begin = held.since - Self.night + Span(microseconds: 1)
    return [held.since...held.since, begin...held.since, begin...max(held.since, asOf)].map { sum($0, held) }
  }

  private func sum(_ span: ClosedRange<Instant>, _ held: Held) -> FirstAnswers {
    var sum = FirstAnswers()
    for (run, answers) in told where span.contains(run) {
      sum.count += answers.count
      sum.refusals.merge(refusals(run, answers, held), uniquingKeysWith: +)
    }
    // They wait tonight.
    if span.upperBound > asOf - Self.night { sum.count += waiting }
    return sum
  }

  /// A run's refusals, for what is held: what was asked about again meanwhile counts by what it was answered then. What was
  /// not is judged by what was told.
  private func refusals(_ run: Instant, _ answers: FirstAnswers, _ held: Held) -> [Refusal: Int] {
    guard held.isAskedAgain, run == held.since || run <= held.asked - Self.night else { return answers.refusals }
    let still = stillRefused[run] ?? [:]
    var refusals: [Refusal: Int] = [:]
    for (kind, count) in answers.refusals { refusals[kind] = min(count, still[kind] ?? 0) }
    return refusals
  }
}
