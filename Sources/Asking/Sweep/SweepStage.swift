import AppStore
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import Synchronization

/// Sweeps Apple's side of each app: what Apple has notified of since the last sweep, then the purchases of customers for
/// whom something is open. Every page is stored when it comes, together with the cursor behind it.
package struct SweepStage: Sendable {
  /// What the stage was made for.
  package struct Plan: Sendable {
    package var asOf: Instant
    /// How far back the first sweep goes.
    package var refundWindow: Span
    /// When a customer's history is read again.
    package var staleAfter: Span
    /// How many pages of one type are asked for at a time, at most: Apple takes up to 6 s for each, and 25 a second are what
    /// it gives by default.
    package var pagesUnderWay = 150
    /// How long a page is asked for at most where others of the app were answered tonight, and only those of its type are
    /// not. An outage ends with the time for sweeping only.
    package var patience = Duration.seconds(600)
    /// The time of day.
    package var now: @Sendable () -> Instant = { Instant.now }

    package init(asOf: Instant, refundWindow: Span, staleAfter: Span) {
      self.asOf = asOf
      self.refundWindow = refundWindow
      self.staleAfter = staleAfter
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
  /// How long pages under way are waited for once the time is up, and after a signal.
  private static let farewell = (deadline: Duration.seconds(10), signal: Duration.milliseconds(2_500))
  private static let disbelief = """
    No notification on a page of Apple's history is believed, so nothing is known of refunds. Check bundleId and \
    appAppleId, run night-audit trust, and look for a proxy that answers in Apple's place.
    """
  /// How many pages of one customer are read in one night.
  private static let pagesPerCustomer = 50

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
    enum Finished { case sweep, patience }
    try await withThrowingTaskGroup(of: Finished.self) { group in
      group.addTask {
        try await sweepAll()
        return .sweep
      }
      group.addTask {
        // Short naps for the signal or the deadline; then pages that are on their way are worth waiting for, not for ever.
        while !isOver { try await Task.sleep(for: .milliseconds(250)) }
        try await Task.sleep(for: stop.stopped == nil ? Self.farewell.deadline : Self.farewell.signal)
        return .patience
      }
      // Cancelling ends whichever is left: the wait, or pages that Apple does not deliver.
      _ = try await group.next()
      group.cancelAll()
    }
    return shared.values.withLock { values in
      values.summary.faults = gate.faults.merging(values.disbelieved) { "\($0) \($1)" }
      return values.summary
    }
  }

  private func sweepAll() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for app in apps { group.addTask { try await sweep(app) } }
      try await group.waitForAll()
    }
  }

  private func sweep(_ app: SweptApp) async throws {
    let table = SweepTable(bundleId: app.bundleId)
    let swept: Void? = try await facts.withLock(bundleId: app.bundleId) {
      let cursors = try await session.withConnection { try table.cursors($0) }
      let isAnswered = try await withThrowingTaskGroup(of: Bool.self) { group in
        for cursor in cursors { group.addTask { try await sweep(cursor, of: app, in: table) } }
        return try await group.reduce(true) { $0 && $1 }
      }
      // Whoever is refused about all is refused about one; but one type's trouble is no customer's.
      if isAnswered { try await readHistories(of: app) }
    }
    if swept == nil { logger.info("another worker sweeps this app", metadata: ["app": "\(app.name)"]) }
  }

  // MARK: - Notifications

  /// What came of asking for the next page of a slice; nil when the task was cancelled.
  private typealias Page = (start: Instant, answer: NotificationAnswer?)

  /// False when Apple refuses to answer, or is not believed.
  ///
  /// Pages are asked for side by side, and taken in one after the other.
  private func sweep(_ stored: SweepCursor, of app: SweptApp, in table: SweepTable) async throws -> Bool {
    var cursor = stored
    guard cursor.begin(asOf: plan.asOf, refundWindow: plan.refundWindow) else { return true }
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
          shared.values.withLock { $0.summary.isShort = true }
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
    if cursor.shortfall != nil || !cursor.gaps.isEmpty { shared.values.withLock { $0.summary.isShort = true } }
    return isAnswered
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
    let count = try await facts.store(found) { try table.save(cursor, over: stored, on: $0) }
    shared.values.withLock { $0.summary.facts += count }
  }

  // MARK: - Customers

  private func readHistories(of app: SweptApp) async throws {
    let histories = CustomerHistories(bundleId: app.bundleId)
    let customers = try await session.withConnection {
      try histories.due(asOf: plan.asOf, staleAfter: plan.staleAfter, $0)
    }
    for customer in customers where !isOver(for: app) {
      // A customer who gets no answer waits longest next time, and the others have their turn.
      guard try await read(customer, of: app, in: histories) else { break }
    }
  }

  /// Reads what has changed for one customer. False when Apple does not answer.
  private func read(
    _ customer: CustomerHistories.Customer, of app: SweptApp, in histories: CustomerHistories
  ) async throws -> Bool {
    var customer = customer
    var isDisbelieved = false
    for _ in 1...Self.pagesPerCustomer where !isOver(for: app) {
      guard let answer = try? await app.history(customer.transactionId, customer.revision) else { return false }
      note(answer.trail, of: app)
      let page = CustomerHistories.outcome(of: answer, after: customer.revision)
      // An earlier page held something that was passed over: this night does not know everything.
      isDisbelieved = isDisbelieved || answer.refused > 0
      let outcome = page == .read && isDisbelieved ? .short(.notBelieved) : page
      let hasPassedOver = answer.refused > 0 && answer.revision != customer.revision
      customer.revision = answer.revision
      let count = try await facts.store(answer.transactions.map(\.fact)) { [customer] in
        try histories.save(customer, asOf: plan.asOf, outcome, hasPassedOver: hasPassedOver, on: $0)
      }
      shared.values.withLock { values in
        values.summary.facts += count
        if outcome == .read { values.summary.histories += 1 }
        if case .short = outcome { values.summary.isShort = true }
      }
      switch outcome {
      case .more: continue
      case .read, .short(.notBelieved): return true
      case .short: return false
      }
    }
    return true
  }

  // MARK: - Endings

  private var isOver: Bool { stop.stopped != nil || ContinuousClock.now >= deadline }

  /// Whether the app is not asked about any more: the night's time is up, or our own configuration was refused.
  private func isOver(for app: SweptApp) -> Bool {
    isOver || Task.isCancelled || gate.faults[app.name] != nil
  }

  /// Short naps: a signal or the deadline must not wait for a long pause.
  private func pause(_ span: Duration, for app: SweptApp) async {
    let end = ContinuousClock.now + span
    while !isOver(for: app), .now < end { try? await Task.sleep(for: min(end - .now, .milliseconds(250))) }
  }

  private func note(_ trail: ServerAPITrail, of app: SweptApp) {
    let news = shared.values.withLock { values -> [String] in
      values.summary.pages += 1
      if !trail.asked.isEmpty { values.summary.httpStatuses[trail.httpStatus ?? 0, default: 0] += trail.asked.count }
      return trail.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app.name)"]) }
  }
}
