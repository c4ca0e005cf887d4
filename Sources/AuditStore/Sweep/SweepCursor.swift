import AppStore
import Reconciliation

/// How far notifications of one type are known. Takes pages and returns the next step, without requests or a clock.
package struct SweepCursor: Hashable, Sendable {
  package struct Window: Hashable, Sendable {
    package var start: Instant
    package var end: Instant
  }

  package enum Step: Hashable, Sendable {
    case ask
    /// No answer: retry later, or give up.
    case retry(Silence)
    case finish
    /// No signature on the page verifies.
    case unverifiable
    /// A configuration fault, the same for all types of the app.
    case fault(AppleFault)
  }

  package let type: SweptType
  /// All notifications signed before are known; nil before the first window is read.
  package var sweptUntil: Instant?
  package var lastAttempt: Instant?
  package var shortfall: SweepShortfall?
  package var window: Window?
  package var slices: [SweepSlice] = []
  package private(set) var gaps: [Window] = []

  package init(type: SweptType) { self.type = type }

  /// Starts a sweep up to the as-of, or resumes an earlier one; false if everything is known. `refundWindow` is how far
  /// the first sweep goes back, limited by Apple's history.
  package mutating func begin(asOf: Instant, refundWindow: Span) -> Bool {
    let start = sweptUntil.map { $0 - type.overlap } ?? asOf - refundWindow
    let next = type.query(start: start, end: asOf, now: asOf)
    // A stored window that begins after the cursor would hide what lies between them; no run leaves one.
    if let window, window.start <= next.start {
      slices = slices.isEmpty ? [SweepSlice(start: window.start, end: window.end)] : slices.map(\.unseen)
    } else {
      let wasSweptFor = lastAttempt == asOf && shortfall == nil
      if window == nil, wasSweptFor || sweptUntil.map({ $0 >= asOf }) ?? false { return false }
      open(next)
    }
    lastAttempt = asOf
    // Stored before any request, so that a killed run leaves the correct state.
    shortfall = .unfinished
    return true
  }

  /// The query for a slice. It is built as of the slice's start, so it does not change with time.
  package func query(_ slice: SweepSlice) -> NotificationQuery {
    type.query(start: slice.start, end: slice.end, now: slice.start)
  }

  package mutating func received(_ answer: NotificationAnswer, about start: Instant, now: Instant) -> Step {
    guard let place = slices.firstIndex(where: { $0.start == start }) else { return .ask }
    // The cursor does not move past a page without any valid signature, because the fault is not one notification's.
    if answer.isDisbelieved {
      _ = abandon(.notBelieved)
      return .unverifiable
    }
    switch answer.end {
    case .pageLimit:
      guard slices[place].turn(answer) else { return abandon(.appleError) }
      slices.replaceSubrange(place...place, with: slices[place].parts)
      return .ask
    case .complete:
      slices.remove(at: place)
      return slices.isEmpty ? finishWindow(now: now) : .ask
    case .restartWindow:
      let query = type.query(start: start, end: slices[place].end, now: now)
      guard query.start < query.end else { return abandon(.outOfReach) }
      guard slices[place].restart(from: query.start) else { return abandon(.appleError) }
      noteGap(from: start, until: query.start)
      return .ask
    case .unanswered(let silence): return .retry(silence)
    case .fault(let fault):
      shortfall = .refused
      return .fault(fault)
    }
  }

  private mutating func finishWindow(now: Instant) -> Step {
    guard let window, let asOf = lastAttempt else { return .finish }
    // At most up to now, because Apple has no notifications of the future, whatever the as-of.
    let until = max(sweptUntil ?? window.start, min(window.end, now))
    (sweptUntil, self.window, shortfall) = (until, nil, nil)
    guard window.end < asOf else { return .finish }
    // The window was begun by an earlier night.
    shortfall = .unfinished
    open(type.query(start: until - type.overlap, end: asOf, now: asOf))
    return .ask
  }

  /// Keeps the window, so that the next run continues with the missing pages.
  package mutating func giveUp(_ silence: Silence) { shortfall = SweepShortfall(silence) }

  private mutating func open(_ query: NotificationQuery) {
    window = Window(start: query.start, end: query.end)
    slices = [SweepSlice(start: query.start, end: query.end)]
    if let sweptUntil { noteGap(from: sweptUntil, until: query.start) }
  }

  private mutating func noteGap(from start: Instant, until end: Instant) {
    let start = max(start, sweptUntil ?? start)
    if start < end { gaps.append(Window(start: start, end: end)) }
  }

  /// Drops the window, so that the next run starts at the cursor again.
  private mutating func abandon(_ shortfall: SweepShortfall) -> Step {
    window = nil
    slices = []
    self.shortfall = shortfall
    return .finish
  }
}

extension SweepCursor {
  /// An older sweep belongs to another night.
  private static let nightly = RetrySchedule.span(afterAttempt: .max)

  /// True if a night of that as-of is incomplete because its sweep was, or ended before the as-of. `isOfRun`: a run of
  /// that as-of must have swept; otherwise a sweep of the same night is enough.
  package func isShort(of asOf: Instant, isOfRun: Bool) -> Bool {
    if lastAttempt == asOf { return shortfall != nil }
    // An attempt of a later run does not concern that night.
    if isOfRun || lastAttempt.map({ $0 > asOf }) ?? false { return sweptUntil.map { $0 < asOf } ?? true }
    return sweptUntil.map { $0 <= asOf - Self.nightly } ?? true
  }
}
