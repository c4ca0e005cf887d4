import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import Synchronization

/// Sweeps Apple's side of each app: what Apple has notified of since the last sweep. Every page is stored when it comes,
/// together with the cursor behind it.
package struct SweepStage: Sendable {
  /// What the stage was made for.
  package struct Plan: Sendable {
    package var asOf: Instant
    /// How far back the first sweep goes.
    package var refundWindow: Span
    /// How many pages of one type are asked for at a time, at most: Apple takes up to 6 s for each, and 25 a second are what
    /// it gives by default.
    package var pagesUnderWay = 150
    /// How long a page is asked for at most where others of the app were answered tonight, and only those of its type are
    /// not. An outage ends with the time for sweeping only.
    package var patience = Duration.seconds(600)
    /// The time of day.
    package var now: @Sendable () -> Instant = { Instant.now }

    package init(asOf: Instant, refundWindow: Span) {
      self.asOf = asOf
      self.refundWindow = refundWindow
    }
  }

  private let apps: [SweptApp]
  private let plan: Plan
  private let gate: AskingGate
  private let session: OpenSession
  private let facts: SweptFacts
  private let logger: Logger
  private let stop: StopSignal
  private let progress: WorkProgress
  private let deadline: ContinuousClock.Instant
  /// As the plan has it, and no more than a sixth of the time that there is.
  private let patience: Duration
  private let shared = Shared()

  /// What the tasks of one sweep share.
  private final class Shared: Sendable {
    struct Values {
      var summary = SweepSummary()
      var warned: Set<String> = []
      /// Apps of which a page of notifications came.
      var answered: Set<String> = []
      /// Types of each app that pages are missing of.
      var failing: [String: Set<SweptType>] = [:]
      /// Apps of which nothing is believed that Apple is said to have signed, with the remedy.
      var disbelieved: [String: String] = [:]
    }
    let values = Mutex(Values())
  }

  /// A page that does not come holds up one type only, so that nothing but time is lost by waiting longer each time.
  private static let backoff = Backoff(base: .milliseconds(500), cap: .seconds(60))
  private static let disbelief = """
    No notification on a page of Apple's history is believed, so nothing is known of refunds. Check bundleId and \
    appAppleId, run night-audit trust, and look for a proxy that answers in Apple's place.
    """

  package init(
    apps: [SweptApp], plan: Plan, gate: AskingGate, session: OpenSession, runId: String, logger: Logger,
    stop: StopSignal,
    progress: WorkProgress, deadline: ContinuousClock.Instant
  ) {
    self.apps = apps
    self.plan = plan
    self.gate = gate
    self.session = session
    facts = SweptFacts(session: session, asOf: plan.asOf, runId: runId)
    self.logger = logger
    self.stop = stop
    self.progress = progress
    self.deadline = deadline
    patience = min(plan.patience, max((deadline - .now) / 6, .zero))
  }

  /// Runs until everything up to the as-of is known, or the deadline or a signal ends it.
  ///
  /// Throws `PostgresError` when pages cannot be stored any more.
  package func run() async throws -> SweepSummary {
    try await withTimeLimit({ isOver }, stop: stop, sweepAll)
    return shared.values.withLock { values in
      values.summary.isUnfinished = values.summary.isUnfinished ?? false
      values.summary.faults = gate.faults.merging(values.disbelieved) { "\($0) \($1)" }
      return values.summary
    }
  }

  @Sendable private func sweepAll() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for app in apps { group.addTask { try await sweep(app) } }
      try await group.waitForAll()
    }
  }

  private func sweep(_ app: SweptApp) async throws {
    let table = SweepTable(bundleId: app.bundleId)
    let isSwept = try await facts.withLock(
      bundleId: app.bundleId, isWorthWaiting: { !isOver(for: app) },
      isWaiting: {
        logger.info("another process sweeps this app: waiting for its end", metadata: ["app": "\(app.name)"])
      }
    ) {
      let cursors = try await session.withConnection { try table.cursors($0) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for cursor in cursors { group.addTask { try await sweep(cursor, of: app, in: table) } }
        try await group.waitForAll()
      }
      return true
    }
    if isSwept != nil { return }
    shared.values.withLock { $0.summary.isUnfinished = true }
    logger.warning(
      "another process still sweeps this app, and there was no time to wait for its end",
      metadata: ["app": "\(app.name)"])
  }

  // MARK: - Notifications

  /// What came of asking for the next page of a slice; nil when the task was cancelled.
  private typealias Page = (start: Instant, answer: NotificationAnswer?)

  /// Pages are asked for side by side, and taken in one after the other.
  private func sweep(_ stored: SweepCursor, of app: SweptApp, in table: SweepTable) async throws {
    var cursor = stored
    guard cursor.begin(asOf: plan.asOf, refundWindow: plan.refundWindow) else { return }
    try await store([], cursor, over: stored, in: table)
    var patience = Patience(limit: patience)
    var isAnswered = true
    // Pages under way together are refused together: each of them is a question of its own.
    var refused: Set<Instant> = []
    // Those that are left to the next night: Apple does not answer about them, or wants to be asked when the time is over.
    var left: Set<Instant> = []
    try await withThrowingTaskGroup(of: Page.self) { group in
      var underWay: Set<Instant> = []
      while true {
        while isAnswered, !isOver(for: app), underWay.count < plan.pagesUnderWay,
          let slice = cursor.slices.first(where: { !underWay.contains($0.start) && !left.contains($0.start) })
        {
          underWay.insert(slice.start)
          let (query, wait) = (cursor.query(slice), patience.wait(before: slice.start))
          group.addTask {
            if let wait { await pause(wait, for: app) }
            if isOver(for: app) { return (slice.start, nil) }
            return (slice.start, try? await app.notifications(query, slice.paginationToken))
          }
        }
        guard let page = try await group.next() else { break }
        underWay.remove(page.start)
        // What was abandoned, or asked when all was over, is asked for another time.
        guard isAnswered, let answer = page.answer, cursor.slices.contains(where: { $0.start == page.start }) else {
          continue
        }
        note(answer.trail, of: app)
        // One is passed over, and the overlap reads it again should it come well signed.
        if try await facts.keep(
          answer.disbelieved, of: app.bundleId, cursor.type, isPassedOver: !answer.isDisbelieved)
        {
          shared.values.withLock { $0.summary.hasPassedOver = true }
        }
        let before = cursor
        switch cursor.received(answer, about: page.start, now: plan.now()) {
        case .retry(let silence):
          let hold = silence.retryAfter.map { Duration.microseconds(max(0, ($0 - plan.now()).microseconds)) } ?? .zero
          let isExhausted = patience.isExhausted(by: page.start, silence, hold: hold)
          let type = cursor.type
          let isItsOwn = shared.values.withLock { values in
            values.failing[app.name, default: []].insert(type)
            return values.answered.contains(app.name) && values.failing[app.name] == [type]
          }
          if isExhausted && isItsOwn || hold > .zero && .now + hold >= deadline { left.insert(page.start) }
          continue
        case .fault(let fault):
          let id = "notifications \(cursor.type.rawValue)"
          let isSecondTime = !refused.insert(page.start).inserted
          if gate.refuse(fault, app: app.name, id: id, isSecondTime: isSecondTime) == .askAgain {
            await app.renewCredential()
            continue
          }
          isAnswered = false
        case .disbelieved:
          isAnswered = false
          shared.values.withLock { $0.disbelieved[app.name] = Self.disbelief }
        case .ask, .finish:
          refused.remove(page.start)
          for credential in [nil, AppleFault.Credential.serverAPIKey] { gate.accept(credential, of: app.name) }
        }
        patience.recover(page.start)
        let isWhole = patience.silence == nil
        shared.values.withLock { [type = cursor.type] values in
          values.summary.notifications += answer.notifications.count
          values.answered.insert(app.name)
          if isWhole { values.failing[app.name]?.remove(type) }
        }
        progress.advance(by: answer.notifications.count)
        // What a transaction was when Apple sent the notification is a fact; without one there is no id to ask about.
        let found = answer.notifications.compactMap { try? $0.transaction?.get().fact }
        try await store(found, cursor, over: before, in: table)
        if !isAnswered { group.cancelAll() }
      }
    }
    shared.values.withLock { [type = cursor.type] in _ = $0.failing[app.name]?.remove(type) }
    if isAnswered, let silence = patience.silence, !Task.isCancelled {
      if shared.values.withLock({ $0.warned.insert("\(app.name): \(silence.detail)").inserted }) {
        logger.warning(
          "Apple did not answer about all notifications; the next night asks again",
          metadata: ["app": "\(app.name)", "type": "\(cursor.type.rawValue)", "reason": "\(silence.detail)"])
      }
      let before = cursor
      cursor.giveUp(silence)
      try await store([], cursor, over: before, in: table)
    }
    let (isUnfinished, hasGaps) = (cursor.shortfall != nil, !cursor.gaps.isEmpty)
    shared.values.withLock { values in
      if isUnfinished { values.summary.isUnfinished = true }
      if hasGaps { values.summary.hasPassedOver = true }
    }
  }

  /// How long the pages of a type are asked for, and how long to wait before asking again.
  private struct Patience {
    /// A page that does not come.
    private struct Failing {
      var since: ContinuousClock.Instant
      var attempts = 0
      var silence: Silence
      /// Before when Apple does not want to be asked again.
      var hold: ContinuousClock.Instant
    }

    let limit: Duration
    private var failing: [Instant: Failing] = [:]

    init(limit: Duration) { self.limit = limit }

    /// Why pages do not come; nil when none is missing.
    var silence: Silence? { failing.min { $0.key < $1.key }?.value.silence }

    /// Takes in that a page did not come; true when that has lasted as long as it may.
    ///
    /// - Parameter hold: how long Apple does not want to be asked for it again.
    mutating func isExhausted(by start: Instant, _ silence: Silence, hold: Duration) -> Bool {
      let since = failing[start]?.since ?? .now
      failing[start] = Failing(
        since: since, attempts: (failing[start]?.attempts ?? 0) + 1, silence: silence, hold: .now + hold)
      return .now - since >= limit
    }

    mutating func recover(_ start: Instant) { failing[start] = nil }

    func wait(before start: Instant) -> Duration? {
      failing[start].map { page in
        max(SweepStage.backoff.delay(attempt: page.attempts, random: .random(in: 0..<1)), page.hold - .now)
      }
    }
  }

  private func store(
    _ found: [TransactionFact], _ cursor: SweepCursor, over stored: SweepCursor, in table: SweepTable
  ) async throws {
    let reading = SweptFacts.Reading.sweep(of: table.bundleId, cursor, after: stored)
    let count = try await facts.store(found, of: reading) { try table.save(cursor, over: stored, on: $0) }
    shared.values.withLock { $0.summary.facts += count }
  }

  // MARK: - Endings

  private var isOver: Bool { stop.stopped != nil || ContinuousClock.now >= deadline }

  /// Whether the app is not asked about any more: the night's time is up, or our own configuration was refused.
  private func isOver(for app: SweptApp) -> Bool {
    isOver || Task.isCancelled || gate.faults[app.name] != nil
  }

  /// Sleeps in short steps, so that a signal or the deadline ends a long pause.
  private func pause(_ span: Duration, for app: SweptApp) async {
    let end = ContinuousClock.now + span
    while !isOver(for: app), .now < end { try? await Task.sleep(for: min(end - .now, .milliseconds(250))) }
  }

  private func note(_ trail: ServerAPITrail, of app: SweptApp) {
    let news = shared.values.withLock { values -> [String] in
      values.summary.note(trail)
      return trail.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app.name)"]) }
  }
}
