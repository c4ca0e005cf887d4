/// What is known of asking about one proof: all that decides whether, when and how urgently it is asked about again.
public struct CheckHistory: Hashable, Sendable {
  /// When the proof came: a receipt's date, or that of the youngest order that waits for a look-up.
  public var dated: Instant
  /// As-of of the run that took it in as it is now.
  public var knownSince: Instant
  /// Whether the shop's own attempt failed or never happened.
  public var isUrgent = true
  /// Whether anybody waits for the answer and can be asked: false for a look-up that no order needs any more, and for one
  /// of an app that has no key.
  public var isWanted = true
  public var outcome = CheckOutcome.pending
  /// nil when verified.
  public var reason: PaymentReason? = .neverChecked
  /// Whether the outcome is what the proof says by itself, and nobody who could say more was asked.
  public var isOffline = false
  /// How often it was asked in a row without a final answer, plus the answer if there was one.
  public var attempts: Int32 = 0
  /// As-of of the last run that asked.
  public var lastAttempt: Instant?
  /// As-of of the run that got the last answer, or when Apple said it, if that was before.
  public var answeredAt: Instant?
  /// As-of of the run that got this outcome first, all answers since having been the same; of a refusal that is held, of the
  /// run in which it is counted.
  public var outcomeSince: Instant?
  /// As-of of the first question since the last answer that stayed without one.
  public var unansweredSince: Instant?
  /// From when on an answer is wanted, however fresh the last one is.
  ///
  /// The as-of of an audit that would report a critical finding for the first time on an older answer, the night after an
  /// answer that lacks purchases of the one before, or the as-of of a run that judges a refusal again.
  public var criticalSince: Instant?

  public init(dated: Instant, knownSince: Instant) {
    self.dated = dated
    self.knownSince = knownSince
  }

  /// Takes in what a question has come to.
  ///
  /// - Parameters:
  ///   - outcome: `pending` says that nothing was asked and changes nothing.
  ///   - saidAt: when Apple said it, if that was before the run.
  ///   - asOf: of the run that asked.
  public mutating func note(
    _ outcome: CheckOutcome, reason: PaymentReason?, isOffline: Bool, saidAt: Instant? = nil, asOf: Instant
  ) {
    if outcome == .pending { return }
    lastAttempt = asOf
    guard outcome != .unanswered else {
      attempts = wasFinal ? 1 : attempts + 1
      unansweredSince = unansweredSince ?? asOf
      // What was answered stays answered while Apple is silent. What was held because it was one of too many was not, nor was
      // what Apple had said before the proof was there.
      if answeredAt.map({ $0 < knownSince }) ?? true || self.outcome == .pending || self.outcome == .unanswered
        || self.reason == .systemic
      {
        answeredAt = nil
        self.outcome = outcome
        self.reason = reason
        self.isOffline = isOffline
      }
      return
    }
    attempts = wasFinal ? 1 : attempts + 1
    if self.outcome != outcome { outcomeSince = asOf }
    self.outcome = outcome
    self.reason = reason
    self.isOffline = isOffline
    answeredAt = saidAt ?? asOf
    if reason != .systemic { unansweredSince = nil }
    criticalSince = nil
  }

  /// Forgets what was concluded: payload, id or app are others now, so that the answers were about something else.
  public mutating func renew(asOf: Instant) {
    var renewed = CheckHistory(dated: dated, knownSince: asOf)
    renewed.isUrgent = isUrgent
    renewed.isWanted = isWanted
    self = renewed
  }

  /// Whether the last answer says that Apple has accepted the proof, though it does not say what it brings: Apple knew whose
  /// it was; and what contradicted an acceptance once does not undo it by saying so twice.
  public var tellsOfAcceptance: Bool { reason == .accountGone || reason == .contradiction }

  /// Judges a conclusion again in a run of that as-of: it rests on root certificates or a program that have changed.
  public mutating func judgeAgain(asOf: Instant) {
    if outcome == .unanswered { renew(asOf: asOf) } else { criticalSince = asOf }
  }

  /// Whether nothing is left of an earlier row of attempts.
  private var wasFinal: Bool {
    guard unansweredSince == nil else { return false }
    switch outcome {
    case .verified, .rejected: return true
    case .pending, .unanswered, .review, .notFound: return false
    }
  }

  /// Whether Apple has not found it in two runs, so that it accuses somebody.
  var isNotFoundTwice: Bool {
    guard outcome == .notFound, reason == .notFound, let since = outcomeSince, let last = lastAttempt else {
      return false
    }
    return since < last
  }
}
