import AppStore
import Reconciliation

/// How far the notifications of one type are known, and the window that is being read: each page goes in, what to do
/// next comes out. It asks nobody and knows no clock.
package struct SweepCursor: Hashable, Sendable {
  /// A stretch of Apple's notification history that is being read.
  package struct Window: Hashable, Sendable {
    package var start: Instant
    package var end: Instant

    package init(start: Instant, end: Instant) {
      self.start = start
      self.end = end
    }
  }

  /// A time of which Apple does not tell any more.
  package struct Gap: Hashable, Sendable {
    package var start: Instant
    /// Itself outside.
    package var end: Instant
  }

  package enum Step: Hashable, Sendable {
    /// Ask for the next page of each slice that is left.
    case ask
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
  /// What of the window is not read yet, by time.
  package var slices: [SweepSlice] = []
  /// What this run has met and moves over.
  package private(set) var gaps: [Gap] = []

  package init(type: SweptType) { self.type = type }

  /// Begins to sweep up to the as-of, or goes on where an earlier run was ended.
  ///
  /// - Parameter refundWindow: how far the first sweep goes back, at most as far as Apple keeps notifications.
  /// - Returns: false when everything up to the as-of is known.
  package mutating func begin(asOf: Instant, refundWindow: Span) -> Bool {
    if let window {
      slices = slices.isEmpty ? [SweepSlice(start: window.start, end: window.end)] : slices.map(\.unseen)
    } else {
      let wasSweptFor = lastAttempt == asOf && shortfall == nil
      if wasSweptFor || sweptUntil.map({ $0 >= asOf }) ?? false { return false }
      let start = sweptUntil.map { $0 - type.overlap } ?? asOf - refundWindow
      open(type.query(start: start, end: asOf, now: asOf))
    }
    lastAttempt = asOf
    // Stored before anything is asked: a kill leaves the truth behind.
    shortfall = .unfinished
    return true
  }

  /// What is asked for about a slice. It stays what it was when the slice was made, however late it has become.
  package func query(_ slice: SweepSlice) -> NotificationQuery {
    type.query(start: slice.start, end: slice.end, now: slice.start)
  }

  /// - Parameters:
  ///   - start: of the slice that was asked about.
  ///   - now: the time of day.
  package mutating func received(_ answer: NotificationAnswer, about start: Instant, now: Instant) -> Step {
    guard let place = slices.firstIndex(where: { $0.start == start }) else { return .ask }
    // Past a whole page that is not believed the cursor must not move: the fault is not one notification's.
    if answer.isDisbelieved {
      _ = abandon(.notBelieved)
      return .disbelieved
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
      guard query.start < query.end, slices[place].restart(from: query.start) else { return abandon(.outOfReach) }
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
    // Of the time to come Apple has told nothing, whatever as-of was asked for.
    let until = max(sweptUntil ?? window.start, min(window.end, now))
    sweptUntil = until
    self.window = nil
    shortfall = nil
    guard window.end < asOf else { return .finish }
    // The window was an earlier night's.
    shortfall = .unfinished
    open(type.query(start: until - type.overlap, end: asOf, now: asOf))
    return .ask
  }

  /// Leaves the window for the next run, which goes on with the pages that did not come.
  package mutating func giveUp(_ silence: Silence) { shortfall = SweepShortfall(silence) }

  private mutating func open(_ query: NotificationQuery) {
    window = Window(start: query.start, end: query.end)
    slices = [SweepSlice(start: query.start, end: query.end)]
    if let sweptUntil { noteGap(from: sweptUntil, until: query.start) }
  }

  private mutating func noteGap(from start: Instant, until end: Instant) {
    let start = max(start, sweptUntil ?? start)
    if start < end { gaps.append(Gap(start: start, end: end)) }
  }

  /// The next run reads from the cursor again.
  private mutating func abandon(_ shortfall: SweepShortfall) -> Step {
    window = nil
    slices = []
    self.shortfall = shortfall
    return .finish
  }
}

extension SweepCursor {
  /// A sweep that is older than this is another night's.
  private static let nightly = RetrySchedule.span(afterAttempt: .max)

  /// Whether a night of that as-of is incomplete for want of this sweep: it was tried and fell short, or the last one did
  /// not reach the as-of.
  ///
  /// - Parameter isOfRun: whether a run of that as-of had to sweep; else a sweep of the same night will do.
  package func isShort(of asOf: Instant, isOfRun: Bool) -> Bool {
    if lastAttempt == asOf { return shortfall != nil }
    // What a later run has tried says nothing about what was known that night.
    if isOfRun || lastAttempt.map({ $0 > asOf }) ?? false { return sweptUntil.map { $0 < asOf } ?? true }
    return sweptUntil.map { $0 <= asOf - Self.nightly } ?? true
  }
}
