/// The due date and the rank of a check, decided by ``init(of:policy:)`` alone and stored.
public struct Dueness: Hashable, Sendable {
  public struct Policy: Hashable, Sendable {
    /// The age at which an answer is asked for again (`recheck.staleAfter`).
    public var staleAfter: Span
    /// The time after a purchase in which a refund is likely (`recheck.refundWindow`).
    public var refundWindow: Span
    public var lookback: Span

    public init(staleAfter: Span, refundWindow: Span, lookback: Span) {
      (self.staleAfter, self.refundWindow, self.lookback) = (staleAfter, refundWindow, lookback)
    }

    public var horizon: Span { max(lookback, refundWindow) }
  }

  /// The priority of a check. Equal ranks are ordered by `from`. The numbers are stored.
  public enum Rank: Int16, Hashable, CaseIterable, Sendable {
    /// No usable answer, and the shop's own attempt failed or never happened.
    case urgent = 0
    case open = 1
    /// A new critical finding would rest on an older answer, or the last answer lacks earlier purchases.
    case critical = 2
    /// Apple's last answer refuses the proof, or an open finding accuses a customer on it.
    case accusation = 3
    case stale = 4
    /// Judged offline, without a request or an owed answer.
    /// Apple can state no more, or the proof was beyond the horizon when it became known and only decides ownership.
    case judgedOffline = 5
  }

  /// Due in runs whose as-of is this or later.
  public var from: Instant
  /// Not due any more in runs whose as-of is this or later; nil: until it is answered.
  public var until: Instant?
  public var rank: Rank

  public init(from: Instant, until: Instant? = nil, rank: Rank) {
    (self.from, self.until, self.rank) = (from, until, rank)
  }

  public func includes(_ asOf: Instant) -> Bool { from <= asOf && until.map { asOf < $0 } ?? true }

  /// nil: never due, because nothing can change.
  public init?(of check: CheckHistory, policy: Policy) {
    guard check.isWanted, let due = Dueness.unfiltered(check, policy) else { return nil }
    if let until = due.until, until <= due.from { return nil }
    self = due
  }

  private static func unfiltered(_ check: CheckHistory, _ policy: Policy) -> Dueness? {
    let open: Rank = check.isBeyond(policy) ? .judgedOffline : check.isUrgent ? .urgent : .open
    let retry = (check.lastAttempt ?? check.knownSince) + RetrySchedule.span(afterAttempt: Int(check.attempts))
    let nextNight = (check.lastAttempt ?? check.knownSince) + RetrySchedule.nightly
    let isLastAttemptUnanswered = check.unansweredSince != nil && !check.isLastAnswerUnusable
    let likely = check.dated + policy.refundWindow
    let stale = (check.answeredAt ?? check.knownSince) + policy.staleAfter
    if let since = check.criticalSince {
      let wasAskedSince = isLastAttemptUnanswered && check.lastAttempt.map { since <= $0 } ?? false
      return Dueness(from: wasAskedSince ? retry : since, rank: check.isOffline ? .judgedOffline : .critical)
    }
    switch check.outcome {
    // A run of an earlier as-of does not see later rows.
    case .pending: return Dueness(from: min(check.dated, check.knownSince), rank: open)
    case .unanswered: return Dueness(from: retry, rank: open)
    case .rejected:
      if isLastAttemptUnanswered { return Dueness(from: retry, rank: open) }
      // A refusal by local certificates is repeated only after a change of the certificates, the program or the row.
      return check.isOffline ? nil : accusation(check, policy)
    case .verified:
      if check.accusedSince != nil, !check.isOffline {
        var due = accusation(check, policy)
        due.from = isLastAttemptUnanswered ? retry : min(due.from, stale)
        return due
      }
      if isLastAttemptUnanswered { return Dueness(from: retry, until: likely, rank: .stale) }
      return Dueness(from: stale, until: likely, rank: check.isOffline ? .judgedOffline : .stale)
    case .notFound:
      if isLastAttemptUnanswered { return Dueness(from: retry, rank: open) }
      return check.isNotFoundTwice ? accusation(check, policy) : Dueness(from: nextNight, rank: open)
    case .review:
      if isLastAttemptUnanswered { return Dueness(from: retry, rank: open) }
      guard check.reason == .accountGone else { return Dueness(from: nextNight, rank: open) }
      return Dueness(from: stale, rank: .stale)
    }
  }

  /// The time for which an accusation is asked about every night.
  static let nightlyAccusations = Span.days(14)
  static let weekly = Span.hours(7 * 24 - 4)

  /// Asks again because Apple may learn of a purchase later. A wrong answer must not accuse for ever.
  ///
  /// The 14 days begin with the first night of the accusation. A refusal without an open finding counts from itself.
  private static func accusation(_ check: CheckHistory, _ policy: Policy) -> Dueness {
    let last = check.lastAttempt ?? check.knownSince
    let isRecent = last - (check.accusedSince ?? check.outcomeSince ?? last) < nightlyAccusations
    return Dueness(
      from: last + (isRecent ? RetrySchedule.nightly : weekly), until: check.dated + policy.horizon, rank: .accusation)
  }

  /// True if Apple owes an answer to a run of that as-of.
  /// Silence older than `stuckAfter`, without an earlier answer, is a finding and makes no night incomplete.
  public static func isOwed(
    _ due: Dueness?, outcome: CheckOutcome, unansweredSince: Instant?, reason: PaymentReason?, asOf: Instant,
    stuckAfter: Span
  ) -> Bool {
    guard let due, reason != .noRoots, due.rank != .judgedOffline, due.until.map({ asOf < $0 }) ?? true else {
      return false
    }
    guard let since = unansweredSince else { return due.from <= asOf }
    switch outcome {
    case .pending, .unanswered, .review: return since <= asOf && asOf - since < stuckAfter
    // The earlier answer decides the order, so that no finding reports the silence.
    case .verified, .rejected, .notFound: return since <= asOf
    }
  }
}

extension Dueness: FieldCoded {
  public static var blank: Dueness { Dueness(from: .blank, rank: .open) }
  public static var fieldCount: Int { 3 }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&from, "due_from")
    try coder.code(&until, "due_until")
    var number = Int32(rank.rawValue)
    try coder.code(&number, "due_rank")
    if let read = Rank(rawValue: Int16(clamping: number)) { rank = read } else { try coder.fail() }
  }
}

extension CheckHistory {
  public func isBeyond(_ policy: Dueness.Policy) -> Bool { dated + policy.horizon <= knownSince }
}

/// The intervals between attempts without an answer, across runs.
public enum RetrySchedule {
  /// Less than the time between two nights, so that a failure of one night is due the next.
  public static let nightly = Span.hours(20)

  /// The time until the next attempt: 5 minutes, 1 hour, 6 hours, then 20 hours each time.
  public static func span(afterAttempt attempt: Int) -> Span {
    switch attempt {
    case ...1: .minutes(5)
    case 2: .hours(1)
    case 3: .hours(6)
    default: nightly
    }
  }
}
