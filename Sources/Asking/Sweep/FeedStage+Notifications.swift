import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import Settings
import Synchronization

extension FeedStage {
  /// The most pages of one type under way. Apple takes up to 6 s for a page, and allows 25 a second by default.
  private static let pagesUnderWay = 150
  /// Long waits are safe, because a missing page delays its type only.
  private static let pageBackoff = Backoff(base: .milliseconds(500), cap: .seconds(60))
  private static let lookInterval = Duration.milliseconds(250)
  private static let unverifiableNotificationsFault = """
    No notification on a page of Apple's history could be verified, so refunds are not known. Check bundleId and \
    appAppleId, run night-audit trust, and look for a proxy that answers in Apple's place.
    """

  /// Reads the notifications of all apps since the last sweep, until everything up to the as-of is read, or the deadline
  /// or a signal ends it.
  package func sweep() async throws -> SweepSummary {
    let isWhole = try await forEachApp { try await sweep($0) }
    return shared.values.withLock { values in
      values.summary.isUnfinished = values.summary.isUnfinished ?? !isWhole
      values.summary.faults = gate.faults.merging(values.unverifiable) { "\($0) \($1)" }
      return values.summary
    }
  }

  private func sweep(_ app: SweptApp) async throws {
    // Twice the timeout of a request, so that a process that renews nothing loses the sweep.
    let span = Span(microseconds: settings.timeout.microseconds * 2)
    let lease = try await SweepLease(bundleId: app.bundleId, span: span, session: session)
    var isWaiting = false
    while true {
      if try await lease.take() {
        var isLost = false
        do { try await sweep(app, under: lease) } catch is SweepLease.Lost { isLost = true } catch {
          await lease.release()
          throw error
        }
        await lease.release()
        if !isLost { return }
      }
      if isOver(for: app) { break }
      if !isWaiting {
        logger.info("another process sweeps this app: waiting until it ends", metadata: ["app": "\(app.name)"])
      }
      isWaiting = true
      // A lease that runs out is no event. The wait is outside of a statement, because other apps use the session.
      try await Task.sleep(for: Self.lookInterval)
    }
    shared.values.withLock { $0.summary.isUnfinished = true }
    logger.warning(
      "another process still sweeps this app, and the time limit left no time to wait for it",
      metadata: ["app": "\(app.name)"])
  }

  /// Reads all types of notifications. Throws `SweepLease.Lost` if another process took over meanwhile.
  private func sweep(_ app: SweptApp, under lease: SweepLease) async throws {
    let table = SweepTable(bundleId: app.bundleId)
    let cursors = try await session.withConnection { try table.cursors($0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        try await withThrowingTaskGroup(of: Void.self) { types in
          for cursor in cursors { types.addTask { try await sweep(cursor, of: app, in: table, under: lease) } }
          try await types.waitForAll()
        }
      }
      group.addTask {
        // Renews four times per lease, because Apple may be silent for longer than a lease.
        while (try? await Task.sleep(for: .microseconds(lease.span.microseconds / 4))) != nil {
          try await lease.renew()
        }
      }
      try await group.next()
      group.cancelAll()
    }
  }

  // MARK: - Notifications

  private typealias Page = (start: Instant, answer: NotificationAnswer?)

  private func sweep(
    _ stored: SweepCursor, of app: SweptApp, in table: SweepTable, under lease: SweepLease
  ) async throws {
    var cursor = stored
    guard cursor.begin(asOf: asOf, refundWindow: settings.refundWindow) else { return }
    try await store([], cursor, over: stored, in: table, under: lease)
    var retries = PageRetries(limit: waitLimit)
    var isAnswered = true
    // Pages under way are refused together, but each of them is a question of its own.
    var refused: Set<Instant> = []
    // Slices left to the next night: Apple does not answer, or its Retry-After ends after the deadline.
    var left: Set<Instant> = []
    try await withThrowingTaskGroup(of: Page.self) { group in
      var inProgress: Set<Instant> = []
      while true {
        while isAnswered, !isOver(for: app), inProgress.count < min(Self.pagesUnderWay, settings.concurrency),
          let slice = cursor.slices.first(where: { !inProgress.contains($0.start) && !left.contains($0.start) })
        {
          inProgress.insert(slice.start)
          let (query, wait) = (cursor.query(slice), retries.wait(before: slice.start))
          group.addTask {
            if let wait { await pause(until: .now + wait, for: app) }
            if isOver(for: app) { return (slice.start, nil) }
            return (slice.start, try? await app.notifications(query, slice.paginationToken))
          }
        }
        guard let page = try await group.next() else { break }
        inProgress.remove(page.start)
        // An abandoned page, or one requested too late, is requested another time.
        guard isAnswered, let answer = page.answer, cursor.slices.contains(where: { $0.start == page.start }) else {
          continue
        }
        note(answer.trail, of: app)
        // A notification that does not verify is passed over. The overlap of the next sweep reads it again.
        if try await keep(answer.unverifiable, of: app.bundleId, cursor.type, isMarkedSkipped: !answer.isDisbelieved) {
          shared.values.withLock { $0.summary.hasSkipped = true }
        }
        let before = cursor
        switch cursor.received(answer, about: page.start, now: now()) {
        case .retry(let silence):
          let pause = silence.retryAfter.map { Duration.microseconds(max(0, ($0 - now()).microseconds)) } ?? .zero
          let isExhausted = retries.isExhausted(by: page.start, silence, pause: pause)
          let type = cursor.type
          let isItsOwn = shared.values.withLock { values in
            values.failing[app.name, default: []].insert(type)
            return values.answered.contains(app.name) && values.failing[app.name] == [type]
          }
          if isExhausted && isItsOwn || pause > .zero && .now + pause >= deadline { left.insert(page.start) }
          continue
        case .fault(let fault):
          let id = "notifications \(cursor.type.rawValue)"
          let isSecondAttempt = !refused.insert(page.start).inserted
          if gate.refuse(fault, app: app.name, id: id, isSecondAttempt: isSecondAttempt) == .askAgain {
            await app.renewCredential()
            continue
          }
          isAnswered = false
        case .unverifiable:
          isAnswered = false
          shared.values.withLock { $0.unverifiable[app.name] = Self.unverifiableNotificationsFault }
        case .ask, .finish:
          refused.remove(page.start)
          for credential in [nil, AppleFault.Credential.serverAPIKey] { gate.accept(credential, of: app.name) }
          if !answer.notifications.isEmpty { gate.accept(.rootCertificates, of: app.name) }
        }
        retries.recover(page.start)
        let isWhole = retries.silence == nil
        shared.values.withLock { [type = cursor.type] values in
          values.summary.notifications += answer.notifications.count
          values.answered.insert(app.name)
          if isWhole { values.failing[app.name]?.remove(type) }
        }
        progress.advance(by: answer.notifications.count)
        // The transaction as Apple sent it is a fact. A notification without one has no ID to ask about.
        let found = answer.notifications.compactMap { try? $0.transaction?.get() }
        try await store(found, cursor, over: before, in: table, under: lease)
        if !isAnswered { group.cancelAll() }
      }
    }
    shared.values.withLock { [type = cursor.type] in _ = $0.failing[app.name]?.remove(type) }
    if isAnswered, let silence = retries.silence, !Task.isCancelled {
      if shared.values.withLock({ $0.warned.insert("\(app.name): \(silence.detail)").inserted }) {
        logger.warning(
          "Apple did not answer about all notifications; the next night asks again",
          metadata: ["app": "\(app.name)", "type": "\(cursor.type.rawValue)", "reason": "\(silence.detail)"])
      }
      let before = cursor
      cursor.giveUp(silence)
      try await store([], cursor, over: before, in: table, under: lease)
    }
    let (isUnfinished, hasGaps) = (cursor.shortfall != nil, !cursor.gaps.isEmpty)
    shared.values.withLock { values in
      if isUnfinished { values.summary.isUnfinished = true }
      if hasGaps { values.summary.hasSkipped = true }
    }
  }

  private struct PageRetries {
    private struct Failing {
      var since: ContinuousClock.Instant
      var attempts = 0
      var silence: Silence
      /// The earliest time of the next request, by Apple's Retry-After.
      var notBefore: ContinuousClock.Instant
    }

    let limit: Duration
    private var failing: [Instant: Failing] = [:]

    init(limit: Duration) { self.limit = limit }

    var silence: Silence? { failing.min { $0.key < $1.key }?.value.silence }

    /// Records a missing page. Returns true once it has been missing for `limit`.
    mutating func isExhausted(by start: Instant, _ silence: Silence, pause: Duration) -> Bool {
      let since = failing[start]?.since ?? .now
      failing[start] = Failing(
        since: since, attempts: (failing[start]?.attempts ?? 0) + 1, silence: silence, notBefore: .now + pause)
      return .now - since >= limit
    }

    mutating func recover(_ start: Instant) { failing[start] = nil }

    func wait(before start: Instant) -> Duration? {
      failing[start].map { page in
        max(FeedStage.pageBackoff.delay(attempt: page.attempts), page.notBefore - .now)
      }
    }
  }

  private func store(
    _ found: [TransactionFact], _ cursor: SweepCursor, over stored: SweepCursor, in table: SweepTable,
    under lease: SweepLease
  ) async throws {
    try await store(
      found, of: "sweep", "\(table.bundleId)/\(cursor.type.rawValue)",
      readUntil: cursor.sweptUntil == stored.sweptUntil ? nil : cursor.sweptUntil
    ) { connection in
      try lease.renew(on: connection)
      try table.save(cursor, over: stored, on: connection)
    }
  }
}
