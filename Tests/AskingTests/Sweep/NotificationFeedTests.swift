import Foundation
import Logging
import Postgres
import Reconciliation
import Synchronization
import TestSupport
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// Sweeps into a real database, from a scripted Apple.
@Suite struct NotificationFeedTests {
  private let asOf = RecheckFixture.asOf
  private let feed: FeedFixture

  init() async throws { feed = try await FeedFixture() }

  @Test func aQuietNightCostsOnePageForEachType() async throws {
    let types = SweptType.allCases.map(\.rawValue).sorted()
    let summary = try await feed.sweep(asOf)
    #expect(summary.pages == types.count && !summary.isShort && summary.faults.isEmpty)
    #expect(feed.apple.requests.map(\.type).sorted() == types)
    // Neither the same night nor an earlier one is read again.
    for days in [0, 10] as [Int64] { try await feed.sweep(asOf - .days(days)) }
    #expect(feed.apple.requests.count == types.count)
    let swept = "SELECT count(*) FROM night_audit.sweeps WHERE reason IS NULL"
    #expect(try await feed.value(swept) == "\(types.count)")
  }

  @Test func sweptTransactionsHaveNoOrder() async throws {
    for number in 0..<45 {
      try feed.apple.notify(.oneTimeCharge, .sale("t\(number)", signed: asOf - .days(2) + .seconds(Int64(number))))
    }
    let summary = try await feed.sweep(asOf)
    #expect(summary.notifications == 45 && summary.facts == 45)
    #expect(feed.apple.takeRequests(.oneTimeCharge).count == 3)
    let stored = "SELECT count(*) FROM night_audit.transactions WHERE channel = 'notification'"
    #expect(try await feed.value(stored) == "45")
    #expect(try await feed.value("SELECT count(*) FROM night_audit.receipt_transactions") == "0")
  }

  @Test func overlapsAreReadAgainAndStoredOnce() async throws {
    try feed.apple.notify(.refund, .sale("t1", signed: asOf - .days(3), revoked: asOf - .days(3)))
    #expect(try await feed.sweep(asOf).facts == 1)
    // One notification appears late, another is new.
    try feed.apple.notify(.refund, .sale("t2", signed: asOf - .days(2), revoked: asOf - .days(2)))
    try feed.apple.notify(.refund, .sale("t3", signed: asOf + .hours(3), revoked: asOf + .hours(3)))
    let summary = try await feed.sweep(asOf + .days(1))
    #expect(summary.notifications == 3 && summary.facts == 2)
    let requests = feed.apple.takeRequests(.refund)
    #expect(requests.map(\.start) == [asOf - .days(120), asOf - .days(7)])
    #expect(requests.map(\.end) == [asOf, asOf + .days(1)])
    #expect(try await feed.value("SELECT count(*) FROM night_audit.evidence") == "3")
    #expect(try await feed.cursor(.refund)?.sweptUntil == asOf + .days(1))
  }

  /// A reversal is the only evidence of a refund from before the first sweep.
  @Test func aReversalProvesARefund() async throws {
    var reversal = TransactionFact.sale("t1", signed: asOf - .days(1))
    reversal.reversesRefund = true
    try feed.apple.notify(.refundReversed, reversal)
    try feed.apple.notify(.refundReversed, .sale("t2", signed: asOf - .days(1)))
    try await feed.sweep(asOf)
    let withdrawn = try #require(
      try await feed.value(
        """
        SELECT string_agg(transaction_id || ' ' || coalesce(revocation_withdrawn_at::text, '-'), ', ' ORDER BY transaction_id)
        FROM night_audit.transactions
        """))
    #expect(withdrawn.hasPrefix("t1 20") && withdrawn.hasSuffix(", t2 -"), "\(withdrawn)")
    // Neither later facts nor a rebuild change this.
    for id in ["t1", "t2"] { try feed.apple.notify(.oneTimeCharge, .sale(id, signed: asOf - .hours(1))) }
    try await feed.sweep(asOf + .hours(1))
    #expect(try await feed.value("SELECT count(revocation_withdrawn_at) FROM night_audit.transactions") == "1")
    let derived = try await feed.session.withConnection { try Rebuild.run(isRepairing: false, on: $0) }
    // The sweep belongs to no recorded run.
    #expect(derived.transactions == 2 && derived.missingTransactions + derived.differentTransactions == 0, "\(derived)")
  }

  /// The app, whose page of refunds with this token never comes. `action` runs when it is requested.
  private func app(
    silentAbout silentToken: @escaping @Sendable (String?) -> Bool, _ action: @escaping @Sendable () -> Void
  ) -> SweptApp {
    var app = feed.apple.app()
    let page = app.notifications
    app.notifications = { query, token throws(CancellationError) in
      guard query.type == "REFUND", silentToken(token) else { return try await page(query, token) }
      action()
      let (answers, _) = AsyncStream.makeStream(of: Never.self)
      for await _ in answers {}
      throw CancellationError()
    }
    return app
  }

  /// A page is requested once the one before it is stored. The next sweep requests the page under way again, and no other.
  @Test(.timeLimit(.minutes(2))) func aKilledSweepGoesOnWhereItWas() async throws {
    for number in 0..<65 {
      let date = asOf - .days(9) + .seconds(Int64(number))
      try feed.apple.notify(.refund, .sale("t\(number)", signed: date, revoked: date))
    }
    let (requested, request) = AsyncStream.makeStream(of: Void.self)
    let app = app(silentAbout: { $0?.hasSuffix("+20") ?? false }) { request.yield() }
    let stage = feed.stage(asOf, apps: [app], limit: .seconds(600))
    let killed = Task { try await stage.sweep() }
    for await _ in requested { break }
    killed.cancel()
    _ = await killed.result
    await stage.session.close()
    let stored = "SELECT count(*) || ' ' || count(DISTINCT transaction_id) FROM night_audit.evidence"
    #expect(try await feed.value(stored) == "20 20")

    _ = feed.apple.takeRequests(.refund)
    #expect(try await !feed.sweep(asOf + .days(1)).isShort)
    #expect(try await feed.value(stored) == "65 65")
    let requests = feed.apple.takeRequests(.refund)
    #expect(requests.map { $0.token?.split(separator: "+").last } == ["20", "40", "60", nil])
    #expect(requests.map(\.end) == [asOf, asOf, asOf, asOf + .days(1)])
  }

  /// Requests that are cut off some time after a signal record no end of their types.
  @Test func aSweepThatASignalCutsOffIsShort() async throws {
    let stop = StopSignal()
    let app = app(silentAbout: { _ in true }) { stop.stop(.terminated) }
    let summary = try await feed.stage(asOf, apps: [app], stop: stop, drainPeriod: .zero, limit: .seconds(600)).sweep()
    #expect(summary.isShort)
  }

  /// Each slice waits until all of them are requested, which would never happen one after the other.
  @Test(.timeLimit(.minutes(2))) func slicesAreReadSideBySideAndGoOnAfterAnEnd() async throws {
    let count = 3_000
    try await feed.sweep(asOf - .days(1))
    for number in 0..<count {
      let signed = asOf - .days(1) + .seconds(Int64(number * 86_400 / count))
      try feed.apple.notify(.oneTimeCharge, .sale("t\(number)", signed: signed))
    }
    let stop = StopSignal()
    let meeting = Barrier(of: 4)
    feed.apple.trouble { request in
      let isSlice = request.type == "ONE_TIME_CHARGE" && request.end - request.start < .hours(20)
      if isSlice, request.token?.hasSuffix("+100") == true { stop.stop(.terminated) }
      return nil
    }
    var app = feed.apple.app()
    let page = app.notifications
    app.notifications = { query, token throws(CancellationError) in
      let isSlice = query.end - query.start < .hours(20)
      if query.type == "ONE_TIME_CHARGE", token == nil, isSlice { await meeting.come() }
      return try await page(query, token)
    }
    let first = try await feed.sweep(asOf, apps: [app], stop: stop)
    #expect(first.isShort && meeting.hasMet)
    let left = try #require(try await feed.cursor(.oneTimeCharge))
    #expect(left.slices.count > 1 && left.slices.contains { $0.paginationToken != nil })
    #expect(left.sweptUntil == asOf - .days(1) && left.shortfall == .unfinished)

    feed.apple.noTrouble()
    let stored = try await feed.value("SELECT count(*) FROM night_audit.transactions")
    let second = try await feed.sweep(asOf)
    #expect(!second.isShort && second.facts == count - (Int(stored ?? "") ?? 0))
    #expect(try await feed.value("SELECT count(*) FROM night_audit.transactions") == "\(count)")
    #expect(try await feed.value("SELECT count(*) FROM night_audit.sweep_slices") == "0")
    #expect(try await feed.cursor(.oneTimeCharge)?.sweptUntil == asOf)
  }

  @Test func anUnverifiableNotificationIsStoredAndSkipped() async throws {
    try await feed.sweep(asOf)
    try feed.apple.notify(.refund, .sale("t1", signed: asOf + .hours(1), revoked: asOf))
    feed.apple.notifyForged(.refund, at: asOf + .hours(2))
    let summary = try await feed.sweep(asOf + .days(1))
    // The verified notification is evidence nevertheless.
    #expect(summary.isShort && summary.facts == 1)
    let cursor = try await feed.cursor(.refund)
    #expect(cursor?.sweptUntil == asOf + .days(1) && cursor?.shortfall == nil)
    #expect(summary.faults.isEmpty)
    let kept = """
      SELECT count(*) || ' ' || min(reason) || ' ' || extract(epoch FROM min(passed_over_at))::bigint
      FROM night_audit.disbelieved_notifications
      """
    let expected = "1 forged \((asOf + .days(1)).seconds)"
    #expect(try await feed.value(kept) == expected)
    // The next night reads it again, and is complete.
    #expect(try await !feed.sweep(asOf + .days(2)).isShort)
    #expect(try await feed.value(kept) == expected)
    // A corrected notification is evidence within the overlap.
    feed.apple.mendForgeries()
    try feed.apple.notify(.refund, .sale("t2", signed: asOf + .hours(2), revoked: asOf))
    let mended = try await feed.sweep(asOf + .days(3))
    #expect(!mended.isShort && mended.facts == 1)
  }

  @Test func aPageOfUnverifiableNotificationsIsAFault() async throws {
    try await feed.sweep(asOf)
    for hour in 1...3 { feed.apple.notifyForged(.refund, at: asOf + .hours(Int64(hour))) }
    let summary = try await feed.sweep(asOf + .days(1))
    #expect(summary.isShort && summary.faults.keys.sorted() == ["game"])
    #expect(try await feed.cursor(.refund)?.sweptUntil == asOf)
    let skipped = "SELECT count(*) || ' ' || count(passed_over_at) FROM night_audit.disbelieved_notifications"
    #expect(try await feed.value(skipped) == "3 0")
    // Beside a verified notification, the run moves past the unverifiable ones.
    try feed.apple.notify(.refund, .sale("t1", signed: asOf + .hours(4), revoked: asOf))
    #expect(try await feed.sweep(asOf + .days(2)).isShort)
    #expect(try await feed.value(skipped) == "3 3")
    #expect(try await !feed.sweep(asOf + .days(3)).isShort)
  }

  /// One page without an answer is left to the next night, and does not delay others. If nothing is answered, the sweep
  /// waits.
  @Test(arguments: [true, false]) func oneUnansweredPageDoesNotDelayOthers(isAlone: Bool) async throws {
    try feed.apple.notify(.oneTimeCharge, .sale("bought", signed: asOf - .days(2)))
    try await feed.sweep(asOf)
    for number in 0..<30 {
      let date = asOf + .hours(1) + .seconds(Int64(number))
      try feed.apple.notify(.refund, .sale("t\(number)", signed: date, revoked: date))
    }
    let trouble = NotificationAnswer.End.unanswered(Silence(reason: .appleError, detail: "HTTP 500"))
    feed.apple.trouble { request in
      isAlone ? request.type == "REFUND" && request.token != nil ? trouble : nil : trouble
    }
    _ = feed.apple.takeRequests(.didRenew)
    let summary = try await feed.sweep(asOf + .days(1), limit: .seconds(isAlone ? 60 : 3))
    #expect(summary.isShort && summary.facts == (isAlone ? 20 : 0))
    #expect(try await feed.cursor(.refund)?.shortfall == .appleError)
    #expect(try await feed.cursor(.didRenew)?.shortfall == (isAlone ? nil : .appleError))
    #expect((feed.apple.takeRequests(.didRenew).count > 1) != isAlone)
  }

  /// An outage in the middle of a sweep, with several silent types, is waited for.
  @Test func anOutageDuringASweepIsAwaited() async throws {
    let silent: Set<String> = ["REFUND", "DID_RENEW"]
    let end = ContinuousClock.now + .seconds(2)
    feed.apple.trouble { request in
      guard silent.contains(request.type), .now < end else { return nil }
      return .unanswered(Silence(reason: .unreachable, detail: "timeout"))
    }
    let summary = try await feed.sweep(asOf, waitLimit: .seconds(1))
    #expect(!summary.isShort)
    for type in [SweptType.refund, .didRenew] { #expect(try await feed.cursor(type)?.sweptUntil == asOf) }
  }

  /// The sweep waits as long as Apple asks for, and leaves the page to the next night if that is too long.
  @Test(arguments: [(Span.seconds(2), 2), (.minutes(10), 1)])
  func retryAfterSchedulesTheNextPageRequest(hold: Span, requests: Int) async throws {
    try feed.apple.notify(.didRenew, .sale("t1", signed: asOf - .days(1)))
    let asked = Mutex<[ContinuousClock.Instant]>([])
    feed.apple.trouble { request in
      guard request.type == "REFUND" else { return nil }
      let times = asked.withLock { asked in
        asked.append(.now)
        return asked
      }
      if times.count > 1 { #expect(times[1] - times[0] >= .seconds(2)) }
      let silence = Silence(reason: .appleError, detail: "HTTP 503", retryAfter: asOf + hold)
      return times.count == 1 ? .unanswered(silence) : nil
    }
    let summary = try await feed.sweep(asOf, waitLimit: .seconds(600))
    #expect(asked.withLock { $0.count } == requests && summary.facts == 1)
    #expect(try await feed.cursor(.refund)?.shortfall == (requests > 1 ? nil : .appleError))
    #expect(try await feed.cursor(.refund)?.window == nil || requests == 1)
  }

  @Test func aFaultOfOneAppLeavesTheOthersAlone() async throws {
    let faulty = ScriptedApple()
    faulty.trouble { _ in .fault(.accessRefused) }
    try feed.apple.notify(.refund, .sale("t1", signed: asOf - .days(1), revoked: asOf - .days(1)))
    let summary = try await feed.sweep(asOf, apps: [faulty.app("broken"), feed.apple.app()])
    #expect(summary.faults.keys.sorted() == ["broken"] && summary.facts == 1)
    #expect(try await feed.cursor(.refund)?.sweptUntil == asOf)
    let swept = "SELECT count(*) FROM night_audit.sweeps WHERE bundle_id = 'com.example.broken' AND reason IS NULL"
    #expect(try await feed.value(swept) == "0")
  }

  /// An expired token is refused for every page on its way.
  @Test func everyPageThatIsRefusedOnceIsAskedForAgain() async throws {
    for number in 0..<45 {
      try feed.apple.notify(.oneTimeCharge, .sale("t\(number)", signed: asOf - .days(2) + .hours(Int64(number))))
    }
    let refused = Mutex<Set<ScriptedApple.Request>>([])
    feed.apple.trouble { request in
      let isNew = refused.withLock { $0.insert(request).inserted }
      return isNew ? .fault(.tokenRefused(.production)) : nil
    }
    let summary = try await feed.sweep(asOf)
    #expect(summary.faults.isEmpty && !summary.isShort && summary.facts == 45, "\(summary)")
    #expect(refused.withLock { $0.count } > SweptType.allCases.count)
  }

  /// Runs an action while another process sweeps the app.
  private func whileAnotherSweeps(_ body: () async throws -> Void) async throws {
    let session = OpenSession(open: feed.shop.connect)
    let lease = try await SweepLease(bundleId: "com.example.game", span: .hours(1), session: session)
    #expect(try await lease.take())
    try await body()
    await lease.release()
    await session.close()
  }

  @Test func aConcurrentSweepIsAwaitedUntilTheDeadline() async throws {
    try await whileAnotherSweeps {
      let summary = try await feed.sweep(asOf, limit: .milliseconds(600))
      #expect(summary.isShort && summary.isUnfinished == true)
    }
    #expect(feed.apple.requests.isEmpty)
    try await feed.sweep(asOf)
    #expect(feed.apple.requests.count == SweptType.allCases.count)
  }

  @Test func aNightSweepsAfterAConcurrentSweepEnds() async throws {
    let (isSweeping, began) = AsyncStream.makeStream(of: Void.self)
    let (mayEnd, end) = AsyncStream.makeStream(of: Void.self)
    async let other: Void = whileAnotherSweeps {
      began.yield()
      for await _ in mayEnd { break }
    }
    for await _ in isSweeping { break }
    try feed.apple.notify(.refund, .sale("t1", signed: asOf - .hours(6), revoked: asOf - .hours(6)))
    async let night = feed.sweep(asOf)
    while try await feed.value(
      "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_advisory_unlock%' AND pid <> pg_backend_pid()")
      != "1"
    {
      await Task.yield()
    }
    end.yield()
    let summary = try await night
    try await other
    #expect(!summary.isShort && summary.facts == 1)
    #expect(try await feed.cursor(.refund)?.sweptUntil == asOf)
  }
}
