/// The result of asking about a proof so far.
public enum CheckOutcome: String, Hashable, CaseIterable, Sendable {
  case pending
  /// Authentic by Apple's answer or by its signature.
  case verified
  case rejected
  /// Asked without a usable answer. The retry schedule applies.
  case unanswered
  /// Answered by Apple, but only a person can decide.
  case review
  /// A look-up by ID without a result in production and sandbox.
  case notFound = "not_found"
}

extension Vocabularies {
  public static let outcome = Vocabulary<CheckOutcome>()
}

/// The history of one check: everything that decides its due date and rank.
public struct CheckHistory: Hashable, Sendable {
  /// A receipt's date, or the date of the youngest order that waits for a look-up.
  public var dated: Instant
  /// The as-of of the run that took up its present content.
  public var knownSince: Instant
  /// True if the shop's own attempt failed or never happened.
  public var isUrgent = true
  /// False for a look-up that no order needs any more or whose app has no key, and for a receipt that the shop has
  /// deleted or whose app is not configured.
  public var isWanted = true
  public var outcome = CheckOutcome.pending
  public var reason: PaymentReason? = .neverChecked
  /// True if the outcome was decided offline, without a question to Apple.
  public var isOffline = false
  public var attempts: Int32 = 0
  public var lastAttempt: Instant?
  /// The as-of of the run with the last answer, or Apple's earlier date of that answer.
  public var answeredAt: Instant?
  /// The as-of of the first run with this outcome; for a pending refusal, of the run that counts it.
  public var outcomeSince: Instant?
  public var unansweredSince: Instant?
  /// The instant from which a new answer is wanted, however fresh the last one is.
  /// Reasons: a new critical finding, an answer that lacks earlier purchases (the next night), a repeated judgement.
  public var criticalSince: Instant?
  /// The as-of of the run that opened the oldest accusation resting on the check; nil if none is open.
  /// It decides due dates and no verdict.
  public var accusedSince: Instant?

  public init(dated: Instant, knownSince: Instant) {
    self.dated = dated
    self.knownSince = knownSince
  }

  /// Records an attempt. `pending` means that nothing was asked.
  /// - Parameter appleDate: Apple's date of the answer, if earlier than the run.
  public mutating func note(
    _ outcome: CheckOutcome, reason: PaymentReason?, isOffline: Bool, appleDate: Instant? = nil, asOf: Instant
  ) {
    if outcome == .pending { return }
    lastAttempt = asOf
    guard outcome != .unanswered else {
      attempts = wasFinal ? 1 : attempts + 1
      unansweredSince = unansweredSince ?? asOf
      // An answer stays valid during silence, except a systemic refusal or one from before the proof existed.
      if answeredAt.map({ $0 < knownSince }) ?? true || self.outcome == .pending || self.outcome == .unanswered
        || self.reason == .systemic
      {
        answeredAt = nil
        (self.outcome, self.reason, self.isOffline) = (outcome, reason, isOffline)
      }
      return
    }
    attempts = wasFinal ? 1 : attempts + 1
    if self.outcome != outcome { outcomeSince = asOf }
    (self.outcome, self.reason, self.isOffline) = (outcome, reason, isOffline)
    answeredAt = appleDate ?? asOf
    if isLastAnswerUnusable {
      unansweredSince = unansweredSince ?? asOf
    } else if reason != .systemic {
      unansweredSince = nil
    }
    criticalSince = nil
  }

  /// Starts over because payload, ID or app changed, and earlier answers were about something else.
  public mutating func renew(asOf: Instant) {
    var renewed = CheckHistory(dated: dated, knownSince: asOf)
    renewed.isUrgent = isUrgent
    renewed.isWanted = isWanted
    renewed.accusedSince = accusedSince
    self = renewed
  }

  /// True if Apple has accepted the proof without stating its content.
  public var impliesAcceptance: Bool { reason == .accountGone || reason == .contradiction }

  /// Repeats a judgement because root certificates or the program have changed.
  public mutating func judgeAgain(asOf: Instant) {
    if outcome == .unanswered { renew(asOf: asOf) } else { criticalSince = asOf }
  }

  /// True if the last attempt got an answer that says nothing about the proof, such as a refused credential. The answer
  /// stays owed like one that never came, and Apple is asked again the next night.
  var isLastAnswerUnusable: Bool {
    outcome == .review && reason == .appleError && !isOffline && answeredAt == lastAttempt
  }

  private var wasFinal: Bool {
    guard unansweredSince == nil else { return false }
    switch outcome {
    case .verified, .rejected: return true
    case .pending, .unanswered, .review, .notFound: return false
    }
  }

  /// True if two runs got this answer, so that it accuses a customer.
  var isNotFoundTwice: Bool {
    guard outcome == .notFound, reason == .notFound, let since = outcomeSince, let last = lastAttempt else {
      return false
    }
    return since < last
  }
}
