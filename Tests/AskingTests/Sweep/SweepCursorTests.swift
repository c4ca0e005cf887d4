import Reconciliation
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Transcripts of a cursor with one slice: the answers to it, and its next requests.
@Suite struct SweepCursorTests {
  private let asOf = RecheckFixture.asOf

  private func answer(_ end: NotificationAnswer.End, token: String? = nil, unverifiable: Int = 0) -> NotificationAnswer
  {
    var answer = NotificationAnswer(paginationToken: token, end: end)
    answer.unverifiable = (0..<unverifiable).map {
      NotificationAnswer.UnverifiableNotification(jws: "\($0)", reason: "forged")
    }
    return answer
  }

  private func page(_ token: String) -> NotificationAnswer { answer(.pageLimit, token: token) }
  private var last: NotificationAnswer { answer(.complete) }

  /// A request for a window, by default up to the as-of.
  private func ask(
    _ start: Instant, _ end: Instant? = nil, token: String? = nil, type: SweptType = .refund
  ) -> SweepCursor.Next {
    .ask(type.query(start: start, end: end ?? asOf, now: start), paginationToken: token)
  }

  private func swept(_ until: Instant, type: SweptType = .refund) -> SweepCursor {
    var cursor = SweepCursor(type: type)
    (cursor.sweptUntil, cursor.lastAttempt) = (until, until)
    return cursor
  }

  @Test func theFirstSweepGoesBackForTheRefundWindowAsFarAsAppleKeepsNotifications() {
    for (window, start) in [(120, asOf - .days(120)), (400, asOf - .days(180) + .hours(1))] as [(Int64, Instant)] {
      var cursor = SweepCursor(type: .refund)
      #expect(cursor.sweep(asOf, refundWindow: .days(window), last) == [ask(start), .finish])
      #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil && cursor.window == nil && cursor.gaps == [])
    }
  }

  @Test(arguments: SweptType.allCases)
  func laterSweepsOverlap(_ type: SweptType) {
    var cursor = swept(asOf - .days(1), type: type)
    #expect(cursor.sweep(asOf) == [ask(asOf - .days(1) - type.overlap, type: type)])
  }

  @Test func upgradesAreAskedForByTheirSubtype() {
    for type in SweptType.allCases {
      let query = type.query(start: asOf - .days(1), end: asOf, now: asOf)
      #expect(query.type == (type == .upgraded ? "DID_CHANGE_RENEWAL_PREF" : type.rawValue))
      #expect(query.subtype == (type == .upgraded ? "UPGRADE" : nil))
    }
  }

  @Test func aSweptWindowIsNotReadAgain() {
    var cursor = swept(asOf)
    for days in [0, 3] as [Int64] { #expect(cursor.sweep(asOf - .days(days)) == []) }
    #expect(cursor == swept(asOf))
  }

  @Test func anAsOfInTheFutureSweepsNoFurtherThanTheClock() {
    var cursor = SweepCursor(type: .refund)
    #expect(cursor.sweep(asOf, now: asOf - .days(10), last).last == .finish)
    #expect(cursor.sweptUntil == asOf - .days(10) && !cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.sweep(asOf) == [])
  }

  @Test func pagesFollowTheirTokenAndARepeatedTokenEndsTheWindow() {
    var cursor = SweepCursor(type: .refund)
    let start = asOf - .days(120)
    #expect(
      cursor.sweep(asOf, page("a"), page("b"), page("a"))
        == [ask(start), ask(start, token: "a"), ask(start, token: "b"), .finish])
    #expect(cursor.shortfall == .appleError && cursor.sweptUntil == nil && cursor.window == nil)
  }

  @Test func anUnfinishedWindowIsCompletedFirst() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.sweep(asOf, page("a"))
    #expect(cursor.isShort(of: asOf, isOfRun: false))
    let next = asOf + .days(1)
    #expect(cursor.sweep(next, last) == [ask(asOf - .days(120), token: "a"), ask(asOf - .days(7), next)])
    #expect(cursor.sweptUntil == asOf && cursor.isShort(of: next, isOfRun: false))
    #expect(cursor.afterAnswer(last, now: next) == .finish)
    #expect(cursor.sweptUntil == next && !cursor.isShort(of: next, isOfRun: false))
  }

  @Test func aWindowThatBeginsAfterTheCursorIsOpenedAnew() {
    var cursor = swept(asOf - .days(2))
    cursor.window = SweepCursor.Window(start: asOf - .hours(2), end: asOf - .hours(1))
    cursor.slices = [SweepSlice(start: asOf - .hours(2), end: asOf - .hours(1))]
    #expect(cursor.sweep(asOf) == [ask(asOf - .days(2) - SweptType.refund.overlap)])
  }

  /// The overlap of the next night reads it again.
  @Test func anUnverifiableNotificationDoesNotStopTheCursor() {
    var cursor = swept(asOf - .days(1))
    #expect(cursor.sweep(asOf, answer(.pageLimit, token: "a", unverifiable: 1), last).last == .finish)
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil && cursor.window == nil)
    #expect(cursor.sweep(asOf) == [])
    #expect(cursor.sweep(asOf + .days(1)) == [ask(asOf - .days(7), asOf + .days(1))])
  }

  /// A second run in the same night asks again.
  @Test func aPageOfUnverifiableNotificationsHoldsTheCursorBack() {
    var cursor = swept(asOf - .days(1))
    #expect(cursor.sweep(asOf, answer(.complete, unverifiable: 20)).last == .unverifiable)
    #expect(cursor.sweptUntil == asOf - .days(1) && cursor.shortfall == .notBelieved && cursor.window == nil)
    #expect(cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.sweep(asOf) == [ask(asOf - .days(8))])
  }

  /// Notifications older than Apple's history are noted as a gap before the first request. The part of an overlap that
  /// Apple no longer keeps was read before, so that it is no gap.
  @Test func gapsBeforeTheWindowAreRecorded() {
    let reach = asOf - .days(180) + .hours(1)
    var cursor = swept(asOf - .days(300))
    #expect(cursor.sweep(asOf, last) == [ask(reach), .finish])
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil)
    #expect(cursor.gaps == [SweepCursor.Window(start: asOf - .days(300), end: reach)])
    #expect(cursor.sweep(asOf) == [])
    var late = swept(asOf - .days(179))
    #expect(late.sweep(asOf) == [ask(reach)])
    #expect(late.gaps == [])
  }

  @Test func aForgottenTokenRestartsTheWindowOnce() {
    var cursor = SweepCursor(type: .refund)
    let start = asOf - .days(120)
    #expect(
      cursor.sweep(asOf, page("a"), answer(.restartWindow), answer(.restartWindow))
        == [ask(start), ask(start, token: "a"), ask(start), .finish])
    #expect(cursor.gaps == [] && cursor.shortfall == .appleError)
  }

  @Test func aWindowThatHasBecomeTooOldIsCutShort() {
    var cursor = SweepCursor(type: .refund)
    let late = asOf + .days(100)
    let reach = late - .days(180) + .hours(1)
    #expect(cursor.sweep(asOf, now: late, answer(.restartWindow)).last == ask(reach))
    #expect(cursor.gaps == [SweepCursor.Window(start: asOf - .days(120), end: reach)])
    var tooLate = SweepCursor(type: .refund)
    #expect(tooLate.sweep(asOf, now: asOf + .days(181), answer(.restartWindow)).last == .finish)
    #expect(tooLate.shortfall == .outOfReach)
  }

  @Test func anUnansweredSweepKeepsItsWindow() {
    let silence = Silence(reason: .rateLimited, detail: "HTTP 429")
    var cursor = SweepCursor(type: .refund)
    #expect(cursor.sweep(asOf, page("a"), answer(.unanswered(silence), token: "a")).last == .retry(silence))
    cursor.giveUp(silence)
    #expect(cursor.shortfall == .rateLimited && cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.sweep(asOf) == [ask(asOf - .days(120), token: "a")])
  }

  @Test func aNightIsIncompleteIfTheCursorIsBehind() {
    // A later failure does not concern an earlier night, and a later sweep that was begun does not complete one.
    var failed = swept(asOf)
    (failed.lastAttempt, failed.shortfall) = (asOf + .days(1), .unreachable)
    var begun = swept(asOf - .minutes(40))
    (begun.lastAttempt, begun.shortfall) = (asOf + .hours(1), .unfinished)
    let cases: [(cursor: SweepCursor, night: Instant, isOfRun: Bool, isShort: Bool)] = [
      (SweepCursor(type: .refund), asOf, false, true), (swept(asOf), asOf, false, false),
      // Half a day after a night nothing is missing yet; a day later, notifications are missing.
      (swept(asOf - .hours(12)), asOf, false, false), (swept(asOf - .days(1)), asOf, false, true),
      // A run sweeps by itself, because an earlier sweep does not reach its as-of.
      (swept(asOf - .minutes(10)), asOf, true, true), (swept(asOf), asOf, true, false),
      (failed, asOf, false, false), (failed, asOf + .days(1), false, true), (begun, asOf, false, true),
    ]
    for (number, expected) in cases.enumerated() {
      #expect(
        expected.cursor.isShort(of: expected.night, isOfRun: expected.isOfRun) == expected.isShort, "case \(number)")
    }
  }
}

extension SweepCursor {
  /// The next action of a cursor with one slice.
  fileprivate enum Next: Hashable {
    case ask(NotificationQuery, paginationToken: String?)
    case retry(Silence)
    case finish
    case unverifiable
    case fault(AppleFault)
  }

  /// Begins the sweep of a night, and takes answers. Returns the actions, none if there is nothing to read.
  fileprivate mutating func sweep(
    _ asOf: Instant, refundWindow: Span = .days(120), now: Instant? = nil, _ answers: NotificationAnswer...
  ) -> [Next] {
    guard begin(asOf: asOf, refundWindow: refundWindow) else { return [] }
    var actions = [next]
    for answer in answers { actions.append(afterAnswer(answer, now: now ?? asOf)) }
    return actions
  }

  fileprivate mutating func afterAnswer(_ answer: NotificationAnswer, now: Instant) -> Next {
    switch received(answer, about: slices[0].start, now: now) {
    case .ask: next
    case .retry(let silence): .retry(silence)
    case .finish: .finish
    case .unverifiable: .unverifiable
    case .fault(let fault): .fault(fault)
    }
  }

  private var next: Next { .ask(query(slices[0]), paginationToken: slices[0].paginationToken) }
}
