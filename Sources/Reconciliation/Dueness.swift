/// When a proof is asked about next, and before which others. The one rule of it: what is stored, counted and explained is
/// what `init(of:policy:)` says.
public struct Dueness: Hashable, Sendable {
  /// The configuration's part of the rule.
  public struct Policy: Hashable, Sendable {
    /// Age at which an answer is asked for again (`recheck.staleAfter`).
    public var staleAfter: Span
    /// For how long after its date Apple is likely to refund a purchase (`recheck.refundWindow`).
    public var refundWindow: Span
    /// How far back orders are audited (`audit.lookback`).
    public var lookback: Span

    public init(staleAfter: Span, refundWindow: Span, lookback: Span) {
      self.staleAfter = staleAfter
      self.refundWindow = refundWindow
      self.lookback = lookback
    }

    /// How old a proof may be and be about what is audited, or what Apple is likely to refund.
    public var horizon: Span { max(lookback, refundWindow) }
  }

  /// Who is asked about first; what ranks equal goes by `from`. The numbers are stored.
  public enum Rank: Int16, Hashable, CaseIterable, Sendable {
    /// Without a usable answer, and the shop's own attempt failed or never happened.
    case urgent = 0
    /// Without a usable answer.
    case open = 1
    /// A critical finding would be reported for the first time on an older answer, or the last answer lacks purchases that
    /// the answer before had.
    case critical = 2
    /// Refused by Apple: the refusal accuses somebody until Apple takes it back.
    case accusation = 3
    /// Answered, and a refund is still likely.
    case stale = 4
    /// Judged by itself: nobody can say more, or it was beyond the horizon when it became known, and only says whose a payment
    /// is. To judge it costs no question, and none is owed.
    case byItself = 5
  }

  /// It is due in every run whose as-of is not earlier.
  public var from: Instant
  /// It is not due any more in runs whose as-of is this or later; nil: until it is answered.
  public var until: Instant?
  public var rank: Rank

  public init(from: Instant, until: Instant? = nil, rank: Rank) {
    self.from = from
    self.until = until
    self.rank = rank
  }

  /// Whether a run of that as-of asks.
  public func includes(_ asOf: Instant) -> Bool { from <= asOf && until.map { asOf < $0 } ?? true }

  /// nil: never, because nothing can change any more.
  public init?(of check: CheckHistory, policy: Policy) {
    guard check.isWanted, let due = Dueness.unfiltered(check, policy) else { return nil }
    if let until = due.until, until <= due.from { return nil }
    self = due
  }

  private static func unfiltered(_ check: CheckHistory, _ policy: Policy) -> Dueness? {
    let open: Rank = check.isBeyond(policy) ? .byItself : check.isUrgent ? .urgent : .open
    let retry = (check.lastAttempt ?? check.knownSince) + RetrySchedule.span(afterAttempt: Int(check.attempts))
    let nextNight = (check.lastAttempt ?? check.knownSince) + RetrySchedule.nightly
    let isAskedInVain = check.unansweredSince != nil
    let likely = check.dated + policy.refundWindow
    let stale = (check.answeredAt ?? check.knownSince) + policy.staleAfter
    if let since = check.criticalSince {
      let isTried = isAskedInVain && check.lastAttempt.map { since <= $0 } ?? false
      return Dueness(from: isTried ? retry : since, rank: check.isOffline ? .byItself : .critical)
    }
    switch check.outcome {
    // A run of an earlier as-of does not see what is dated later.
    case .pending: return Dueness(from: min(check.dated, check.knownSince), rank: open)
    case .unanswered: return Dueness(from: retry, rank: open)
    case .rejected:
      if isAskedInVain { return Dueness(from: retry, rank: open) }
      // A refusal by the certificates here is repeated only after those, the program or the row have changed.
      return check.isOffline ? nil : accusation(check, policy)
    case .verified:
      if isAskedInVain { return Dueness(from: retry, until: likely, rank: .stale) }
      return Dueness(from: stale, until: likely, rank: check.isOffline ? .byItself : .stale)
    case .notFound:
      if isAskedInVain { return Dueness(from: retry, rank: open) }
      return check.isNotFoundTwice ? accusation(check, policy) : Dueness(from: nextNight, rank: open)
    case .review:
      if isAskedInVain { return Dueness(from: retry, rank: open) }
      guard check.reason == .accountGone else { return Dueness(from: nextNight, rank: open) }
      return Dueness(from: stale, rank: .stale)
    }
  }

  /// How long an accusation is asked about every night.
  static let nightlyAccusations = Span.days(14)
  /// After how long an older accusation is asked about again.
  static let weekly = Span.hours(7 * 24 - 4)

  /// A refusal of Apple's that was wrong once, for a purchase that Apple learnt of later for instance, must not accuse for ever.
  private static func accusation(_ check: CheckHistory, _ policy: Policy) -> Dueness {
    let last = check.lastAttempt ?? check.knownSince
    let isRecent = last - (check.outcomeSince ?? last) < nightlyAccusations
    return Dueness(
      from: last + (isRecent ? RetrySchedule.nightly : weekly), until: check.dated + policy.horizon, rank: .accusation)
  }

  /// Whether Apple owes an answer to a run of that as-of.
  ///
  /// - Parameters:
  ///   - due: what the rule said after the last attempt.
  ///   - unansweredSince: as-of of the first question since the last answer that stayed without one.
  ///   - outcome: of the last answer, which silence leaves as it is.
  ///   - reason: what the last attempt came to.
  ///   - stuckAfter: the age at which silence without an answer before it is a finding, and so no reason any more to call a
  ///     night incomplete.
  public static func isOwed(
    _ due: Dueness?, outcome: CheckOutcome, unansweredSince: Instant?, reason: PaymentReason?, asOf: Instant,
    stuckAfter: Span
  ) -> Bool {
    // Without root certificates nobody is silent: nobody was asked.
    guard let due, reason != .noRoots, due.rank != .byItself, due.until.map({ asOf < $0 }) ?? true else { return false }
    guard let since = unansweredSince else { return due.from <= asOf }
    switch outcome {
    case .pending, .unanswered, .review: return since <= asOf && asOf - since < stuckAfter
    // The order is decided by what was answered, so that no finding says that nobody knows whether it still holds.
    case .verified, .rejected, .notFound: return since <= asOf
    }
  }
}

extension CheckHistory {
  /// Whether the proof was already beyond the horizon when it became known: it only says whose a payment is.
  public func isBeyond(_ policy: Dueness.Policy) -> Bool { dated + policy.horizon <= knownSince }
}

/// When what Apple did not answer for is asked about again, across runs.
public enum RetrySchedule {
  /// Less than from one night to the next: what failed one night is due the next.
  public static let nightly = Span.hours(20)

  /// The time from a failed attempt until the next: 5 minutes, 1 hour, 6 hours, then 20 hours each time.
  ///
  /// - Parameter attempt: which failure this was, from 1.
  public static func span(afterAttempt attempt: Int) -> Span {
    switch attempt {
    case ...1: .minutes(5)
    case 2: .hours(1)
    case 3: .hours(6)
    default: nightly
    }
  }
}
