import AppStore
import Reconciliation

/// How far the notifications of one type are known, and the window that is being read: each page goes in, what to do
/// next comes out. It asks nobody and knows no clock.
package struct SweepCursor: Hashable, Sendable {
  /// A stretch of Apple's notification history that is being read page by page.
  package struct Window: Hashable, Sendable {
    package var start: Instant
    package var end: Instant
    /// Where to go on; nil: from the start.
    package var paginationToken: String?
    /// How many notifications of the window are not believed.
    package var refused = 0
  }

  package enum Step: Hashable, Sendable {
    /// Ask for the page that the token stands for; nil: for the first page.
    case ask(NotificationQuery, paginationToken: String?)
    /// Nothing came: ask the same again after a while, or give up.
    case retry(Silence)
    case finish
    /// Nothing that Apple is said to have signed is believed.
    case disbelieved
    /// Our own fault, the same for all notifications of the app.
    case fault(AppleFault)
  }

  package let type: SweptType
  /// Everything that Apple signed before is known; nil before the first window is done.
  package var sweptUntil: Instant?
  /// As-of of the last attempt.
  package var lastAttempt: Instant?
  /// Why the last attempt fell short; nil when it did not.
  package var shortfall: SweepShortfall?
  package var window: Window?
  private var seenTokens: Set<String> = []
  private var mayRestart = true
  /// What this night has to say although the cursor moves on.
  private var remark: SweepShortfall?

  package init(type: SweptType) { self.type = type }

  /// Begins to sweep up to the as-of, or goes on where an earlier run was ended.
  ///
  /// - Parameter refundWindow: how far the first sweep goes back, at most as far as Apple keeps notifications.
  /// - Returns: nil when everything up to the as-of is known.
  package mutating func begin(asOf: Instant, refundWindow: Span) -> Step? {
    if window == nil {
      let wasSweptFor = lastAttempt == asOf && shortfall == nil
      if wasSweptFor || sweptUntil.map({ $0 >= asOf }) ?? false { return nil }
      let start = sweptUntil.map { $0 - type.overlap } ?? asOf - refundWindow
      open(type.query(start: start, end: asOf, now: asOf))
    }
    lastAttempt = asOf
    // Stored before anything is asked: a kill leaves the truth behind.
    shortfall = .unfinished
    seenTokens = []
    mayRestart = true
    remark = nil
    return ask
  }

  /// - Parameter now: the time of day.
  package mutating func received(_ answer: NotificationAnswer, now: Instant) -> Step {
    guard var current = window, let asOf = lastAttempt else { return .finish }
    // Past a whole page that is not believed the cursor must not move: the fault is not one notification's.
    if answer.isDisbelieved {
      _ = abandon(.notBelieved)
      return .disbelieved
    }
    current.refused += answer.refused
    switch answer.end {
    case .pageLimit:
      guard let token = answer.paginationToken, seenTokens.insert(token).inserted else {
        // The same pages would come for ever.
        return abandon(.appleError)
      }
      current.paginationToken = token
      window = current
      return ask
    case .complete:
      // One that is not believed is passed over: this night says it, and the overlap reads it again should it come well
      // signed.
      if current.refused > 0 { remark = .notBelieved }
      // Of the time in between Apple does not tell any more.
      if let sweptUntil, current.start > sweptUntil { remark = .outOfReach }
      // Of the time to come Apple has told nothing, whatever as-of was asked for.
      sweptUntil = max(sweptUntil ?? current.start, min(current.end, now))
      window = nil
      shortfall = remark
      guard let sweptUntil, current.end < asOf else { return .finish }
      // The window was an earlier night's.
      shortfall = .unfinished
      seenTokens = []
      open(type.query(start: sweptUntil - type.overlap, end: asOf, now: asOf))
      return ask
    case .restartWindow:
      let query = type.query(start: current.start, end: current.end, now: now)
      guard mayRestart, query.start < query.end else { return abandon(.outOfReach) }
      mayRestart = false
      seenTokens = []
      open(query)
      return ask
    case .unanswered(let silence):
      window = current
      return .retry(silence)
    case .fault(let fault):
      shortfall = .refused
      return .fault(fault)
    }
  }

  /// Leaves the window for the next run, which goes on with the page that did not come.
  package mutating func giveUp(_ silence: Silence) { shortfall = SweepShortfall(silence) }

  private mutating func open(_ query: NotificationQuery) { window = Window(start: query.start, end: query.end) }

  /// The next run reads from the cursor again.
  private mutating func abandon(_ shortfall: SweepShortfall) -> Step {
    window = nil
    self.shortfall = shortfall
    return .finish
  }

  /// The next page. The window stays what it was when it was opened, however late it has become.
  private var ask: Step {
    guard let window else { return .finish }
    let query = type.query(start: window.start, end: window.end, now: window.start)
    return .ask(query, paginationToken: window.paginationToken)
  }
}

extension SweepCursor {
  /// A sweep that is older than this is another night's.
  private static let nightly = RetrySchedule.span(afterAttempt: .max)

  /// Whether a night of that as-of is incomplete for want of this sweep: it was tried and fell short, or the last one is
  /// from another night.
  package func isShort(of asOf: Instant) -> Bool {
    if lastAttempt == asOf { return shortfall != nil }
    return sweptUntil.map { $0 <= asOf - Self.nightly } ?? true
  }
}
