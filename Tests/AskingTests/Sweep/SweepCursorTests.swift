import Reconciliation
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Answers to a cursor, and its next requests.
@Suite struct SweepCursorTests {
  private let asOf = Instant(seconds: 1_795_143_600)
  private let refundWindow = Span.days(120)

  private func answer(
    _ end: NotificationAnswer.End, token: String? = nil, unverifiable: Int = 0
  ) -> NotificationAnswer {
    var answer = NotificationAnswer(paginationToken: token, end: end)
    answer.unverifiable = (0..<unverifiable).map {
      NotificationAnswer.UnverifiableNotification(jws: "\($0)", reason: "forged")
    }
    return answer
  }

  private func ask(_ start: Instant, _ end: Instant, token: String? = nil, type: SweptType = .refund)
    -> SweepCursor.Next
  {
    .ask(type.query(start: start, end: end, now: start), paginationToken: token)
  }

  private func swept(_ until: Instant, type: SweptType = .refund) -> SweepCursor {
    var cursor = SweepCursor(type: type)
    cursor.sweptUntil = until
    cursor.lastAttempt = until
    return cursor
  }

  @Test func theFirstSweepGoesBackForTheRefundWindow() {
    var cursor = SweepCursor(type: .refund)
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(120), asOf))
    #expect(cursor.afterAnswer(answer(.complete), now: asOf) == .finish)
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil && cursor.window == nil)
  }

  @Test func theFirstSweepGoesBackNoFurtherThanAppleKeepsNotifications() {
    var cursor = SweepCursor(type: .refund)
    #expect(cursor.begun(asOf: asOf, refundWindow: .days(400)) == ask(asOf - .days(180) + .hours(1), asOf))
  }

  @Test(arguments: SweptType.allCases)
  func laterSweepsOverlap(_ type: SweptType) {
    var cursor = swept(asOf - .days(1), type: type)
    #expect(
      cursor.begun(asOf: asOf, refundWindow: refundWindow)
        == ask(asOf - .days(1) - type.overlap, asOf, type: type))
  }

  @Test func upgradesAreAskedForByTheirSubtype() {
    let query = SweptType.upgraded.query(start: asOf - .days(1), end: asOf, now: asOf)
    #expect(query.type == "DID_CHANGE_RENEWAL_PREF" && query.subtype == "UPGRADE")
    for type in SweptType.allCases where type != .upgraded {
      let query = type.query(start: asOf - .days(1), end: asOf, now: asOf)
      #expect(query.type == type.rawValue && query.subtype == nil)
    }
  }

  @Test func aSweptWindowIsNotReadAgain() {
    var cursor = swept(asOf)
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == nil)
    #expect(cursor.begun(asOf: asOf - .days(3), refundWindow: refundWindow) == nil)
    #expect(cursor == swept(asOf))
  }

  @Test func anAsOfInTheFutureSweepsNoFurtherThanTheClock() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    #expect(cursor.afterAnswer(answer(.complete), now: asOf - .days(10)) == .finish)
    #expect(cursor.sweptUntil == asOf - .days(10) && !cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == nil)
  }

  @Test func pagesFollowTheirToken() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    let start = asOf - .days(120)
    #expect(cursor.afterAnswer(answer(.pageLimit, token: "a"), now: asOf) == ask(start, asOf, token: "a"))
    #expect(cursor.afterAnswer(answer(.pageLimit, token: "b"), now: asOf) == ask(start, asOf, token: "b"))
    // A repeated token.
    #expect(cursor.afterAnswer(answer(.pageLimit, token: "a"), now: asOf) == .finish)
    #expect(cursor.shortfall == .appleError && cursor.sweptUntil == nil && cursor.window == nil)
  }

  @Test func anUnfinishedWindowIsCompletedFirst() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    _ = cursor.afterAnswer(answer(.pageLimit, token: "a"), now: asOf)
    #expect(cursor.isShort(of: asOf, isOfRun: false))
    let next = asOf + .days(1)
    #expect(cursor.begun(asOf: next, refundWindow: refundWindow) == ask(asOf - .days(120), asOf, token: "a"))
    #expect(cursor.afterAnswer(answer(.complete), now: next) == ask(asOf - .days(7), next))
    #expect(cursor.sweptUntil == asOf && cursor.isShort(of: next, isOfRun: false))
    #expect(cursor.afterAnswer(answer(.complete), now: next) == .finish)
    #expect(cursor.sweptUntil == next && !cursor.isShort(of: next, isOfRun: false))
  }

  @Test func aWindowThatBeginsAfterTheCursorIsOpenedAnew() {
    var cursor = swept(asOf - .days(2))
    cursor.window = SweepCursor.Window(start: asOf - .hours(2), end: asOf - .hours(1))
    cursor.slices = [SweepSlice(start: asOf - .hours(2), end: asOf - .hours(1))]
    #expect(
      cursor.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(2) - SweptType.refund.overlap, asOf))
  }

  @Test func anUnverifiableNotificationDoesNotStopTheCursor() {
    var cursor = swept(asOf - .days(1))
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    _ = cursor.afterAnswer(answer(.pageLimit, token: "a", unverifiable: 1), now: asOf)
    #expect(cursor.afterAnswer(answer(.complete), now: asOf) == .finish)
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil && cursor.window == nil)
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == nil)
    // The overlap reads it again.
    let next = asOf + .days(1)
    #expect(cursor.begun(asOf: next, refundWindow: refundWindow) == ask(asOf - .days(7), next))
  }

  @Test func aPageOfUnverifiableNotificationsHoldsTheCursorBack() {
    var cursor = swept(asOf - .days(1))
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    #expect(cursor.afterAnswer(answer(.complete, unverifiable: 20), now: asOf) == .unverifiable)
    #expect(cursor.sweptUntil == asOf - .days(1) && cursor.shortfall == .notBelieved && cursor.window == nil)
    #expect(cursor.isShort(of: asOf, isOfRun: false))
    // A second run in the same night asks again.
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(8), asOf))
  }

  /// Notifications older than Apple's history are noted as a gap before the first request.
  @Test func gapsBeforeTheWindowAreRecorded() {
    var cursor = swept(asOf - .days(300))
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(180) + .hours(1), asOf))
    let gap = SweepCursor.Gap(start: asOf - .days(300), end: asOf - .days(180) + .hours(1))
    #expect(cursor.gaps == [gap])
    #expect(cursor.afterAnswer(answer(.complete), now: asOf) == .finish)
    #expect(cursor.sweptUntil == asOf && cursor.shortfall == nil && cursor.gaps == [gap])
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == nil)
    // The first sweep leaves no gap.
    var first = SweepCursor(type: .refund)
    #expect(first.begun(asOf: asOf, refundWindow: .days(400)) == ask(asOf - .days(180) + .hours(1), asOf))
    #expect(first.afterAnswer(answer(.complete), now: asOf) == .finish)
    #expect(first.shortfall == nil && first.gaps == [])
    // The part of the overlap that Apple no longer keeps was read before, so that there is no gap.
    var late = swept(asOf - .days(179))
    #expect(late.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(180) + .hours(1), asOf))
    #expect(late.gaps == [])
  }

  @Test func aForgottenTokenRestartsTheWindowOnce() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    _ = cursor.afterAnswer(answer(.pageLimit, token: "a"), now: asOf)
    #expect(cursor.afterAnswer(answer(.restartWindow), now: asOf) == ask(asOf - .days(120), asOf))
    #expect(cursor.gaps == [])
    #expect(cursor.afterAnswer(answer(.restartWindow), now: asOf) == .finish)
    #expect(cursor.shortfall == .outOfReach)
  }

  @Test func aWindowThatHasBecomeTooOldIsCutShort() {
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    let late = asOf + .days(100)
    let reach = late - .days(180) + .hours(1)
    #expect(cursor.afterAnswer(answer(.restartWindow), now: late) == ask(reach, asOf))
    #expect(cursor.gaps == [SweepCursor.Gap(start: asOf - .days(120), end: reach)])
    var tooLate = SweepCursor(type: .refund)
    _ = tooLate.begun(asOf: asOf, refundWindow: refundWindow)
    #expect(tooLate.afterAnswer(answer(.restartWindow), now: asOf + .days(181)) == .finish)
    #expect(tooLate.shortfall == .outOfReach)
  }

  @Test func anUnansweredSweepKeepsItsWindow() {
    let silence = Silence(reason: .rateLimited, detail: "HTTP 429")
    var cursor = SweepCursor(type: .refund)
    _ = cursor.begun(asOf: asOf, refundWindow: refundWindow)
    _ = cursor.afterAnswer(answer(.pageLimit, token: "a"), now: asOf)
    #expect(cursor.afterAnswer(answer(.unanswered(silence), token: "a"), now: asOf) == .retry(silence))
    cursor.giveUp(silence)
    #expect(cursor.shortfall == .rateLimited && cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.begun(asOf: asOf, refundWindow: refundWindow) == ask(asOf - .days(120), asOf, token: "a"))
  }

  @Test func aNightIsIncompleteIfTheCursorIsBehind() {
    #expect(SweepCursor(type: .refund).isShort(of: asOf, isOfRun: false))
    #expect(!swept(asOf).isShort(of: asOf, isOfRun: false))
    // Half a day after a night nothing is missing yet; a day later, notifications are missing.
    #expect(!swept(asOf - .hours(12)).isShort(of: asOf, isOfRun: false))
    // A run sweeps by itself, because an earlier sweep does not reach its as-of.
    #expect(swept(asOf - .minutes(10)).isShort(of: asOf, isOfRun: true))
    #expect(!swept(asOf).isShort(of: asOf, isOfRun: true))
    #expect(swept(asOf - .days(1)).isShort(of: asOf, isOfRun: false))
    // A later failure does not concern an earlier night.
    var cursor = swept(asOf)
    cursor.lastAttempt = asOf + .days(1)
    cursor.shortfall = .unreachable
    #expect(!cursor.isShort(of: asOf, isOfRun: false))
    #expect(cursor.isShort(of: asOf + .days(1), isOfRun: false))
    // A later sweep that was begun does not complete an earlier night.
    var begun = swept(asOf - .minutes(40))
    begun.lastAttempt = asOf + .hours(1)
    begun.shortfall = .unfinished
    #expect(begun.isShort(of: asOf, isOfRun: false))
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

  fileprivate mutating func begun(asOf: Instant, refundWindow: Span) -> Next? {
    begin(asOf: asOf, refundWindow: refundWindow) ? next : nil
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
