import AppStore
import Logging
import Postgres
import Reconciliation
import Synchronization

/// What a re-check has come to.
package struct RecheckSummary: Sendable {
  package var due = 0
  package var outcomes: [CheckOutcome: Int] = [:]
  /// Requests to Apple by HTTP status; 0 stands for no reply.
  package var httpStatuses: [Int: Int] = [:]
  /// Faults of ours by app, with the remedy. They end the app's re-check and nothing else.
  package var faults: [String: String] = [:]
  /// Why the re-check ended before everything due was asked; nil when it did not.
  package var endedEarly: String?
  /// What sweeping Apple's side has come to; nil when nothing was swept.
  package private(set) var sweep: SweepSummary?

  package init() {}

  /// What a command that only asks ends with.
  package var exitStatus: ExitStatus {
    if !faults.isEmpty { return .configuration }
    let isShort = endedEarly != nil || outcomes[.unanswered] ?? 0 > 0 || sweep?.isShort ?? false
    return isShort ? .incomplete : .complete
  }

  /// Takes in what the sweep before it has come to.
  package mutating func add(_ swept: SweepSummary?) {
    sweep = swept
    httpStatuses.merge(swept?.httpStatuses ?? [:]) { $0 + $1 }
    faults.merge(swept?.faults ?? [:]) { own, _ in own }
  }
}

/// Asks Apple about everything that is due, many at a time, and stores each answer at once.
package struct RecheckStage: Sendable {
  private let queue: CheckQueue
  private let writer: AnswerWriter
  private let channels: [AppChannel]
  private let settings: Settings
  private let logger: Logger
  private let stop: StopSignal
  private let progress: Progress
  private let isOffline: Bool
  private let state = SharedState()

  /// - Parameter isOffline: judges what can be judged without a call, and asks nobody.
  package init(
    queue: CheckQueue, writer: AnswerWriter, channels: [AppChannel], settings: Settings, logger: Logger,
    stop: StopSignal, progress: Progress, isOffline: Bool
  ) {
    self.isOffline = isOffline
    self.queue = queue
    self.writer = writer
    self.channels = channels
    self.settings = settings
    self.logger = logger
    self.stop = stop
    self.progress = progress
  }

  /// What the tasks of one re-check share.
  private final class SharedState: Sendable {
    struct Values {
      var summary = RecheckSummary()
      var breaker: CircuitBreaker
      /// When the breaker first opened without closing since.
      var openSince: Duration?
      var hasGivenUp = false
      var warned: Set<String> = []
    }
    let values: Mutex<Values>

    init() {
      var policy = CircuitBreaker.Policy()
      // A night has a deadline: probe soon, and give up while there is still time for the report.
      policy.firstPause = .seconds(2)
      policy.longestPause = .seconds(16)
      values = Mutex(Values(breaker: CircuitBreaker(policy: policy)))
    }
  }

  /// An outage that lasts this long ends the re-check; what was not asked stays due.
  private static let patience = Duration.seconds(30)
  /// How often one receipt is tried within a run when Apple answers with trouble of its own.
  private static let tries = 3

  /// Runs until nothing is due, or the deadline, an outage or a signal ends it.
  ///
  /// - Throws: `PostgresError` when answers cannot be stored any more.
  package func run(deadline: ContinuousClock.Instant) async throws -> RecheckSummary {
    try await queue.enqueue()
    let due = try await queue.dueCount()
    state.values.withLock { $0.summary.due = due }
    progress.begin("asking Apple", total: due)
    let (answers, sink) = AsyncStream.makeStream(of: CheckResult.self)
    let storing = Task { try await store(answers) }
    let asking: Result<Void, any Error>
    do {
      asking = .success(try await askAll(sink: sink, deadline: deadline))
    } catch {
      asking = .failure(error)
    }
    sink.finish()
    // Whatever ended the asking, what was answered is stored first.
    try await storing.value
    try await queue.release()
    progress.end()
    try asking.get()
    return state.values.withLock { $0.summary }
  }

  private func askAll(sink: AsyncStream<CheckResult>.Continuation, deadline: ContinuousClock.Instant) async throws {
    enum Finished { case check, patience }
    try await withThrowingTaskGroup(of: Finished.self) { group in
      var underWay = 0
      var waiting: [DueCheck] = []
      var early: String?
      while true {
        early = reasonToEnd(deadline)
        if early != nil { break }
        if waiting.isEmpty { waiting = try await queue.claim().reversed() }
        if waiting.isEmpty || underWay >= settings.concurrency {
          // Nothing left and nothing under way: everything that was due has been asked.
          if underWay == 0 { break }
          _ = try await group.next()
          underWay -= 1
          continue
        }
        guard let next = waiting.popLast() else { continue }
        underWay += 1
        group.addTask {
          try await check(next, sink: sink, deadline: deadline)
          return .check
        }
      }
      if let early {
        state.values.withLock { $0.summary.endedEarly = early }
        // Answers that are on their way are worth waiting for, but not for ever.
        group.addTask {
          try? await Task.sleep(for: .seconds(10))
          return .patience
        }
        while underWay > 0, case .check = try await group.next() { underWay -= 1 }
        group.cancelAll()
      }
    }
  }

  private func reasonToEnd(_ deadline: ContinuousClock.Instant) -> String? {
    if stop.stopped != nil { return "stopped by a signal" }
    if ContinuousClock.now >= deadline { return "the deadline of recheck.maxDuration passed" }
    return state.values.withLock { values in
      if values.hasGivenUp { return "Apple did not answer for \(Self.patience.components.seconds) seconds" }
      // With every app faulty there is nobody left to ask about.
      return values.summary.faults.count == channels.count ? "the configuration of every app is refused by Apple" : nil
    }
  }

  private func check(
    _ due: DueCheck, sink: AsyncStream<CheckResult>.Continuation, deadline: ContinuousClock.Instant
  ) async throws {
    guard let channel = channel(for: due) else { return }
    if let known = channel.judgeOffline(due) {
      finish(known, sink: sink)
      return
    }
    if isOffline { return }
    for attempt in 1... {
      guard let permit = await permit(app: channel.app.name, deadline: deadline) else { return }
      guard let answer = try? await channel.ask(due) else {
        record(.abandoned, permit: permit)
        return
      }
      note(answer, permit: permit, app: channel.app.name)
      guard let result = channel.result(of: answer, for: due) else { return }
      if attempt < Self.tries, isWorthAnotherTry(answer), reasonToEnd(deadline) == nil {
        let pause = Backoff(base: .milliseconds(200), cap: .seconds(2)).delay(
          attempt: attempt, random: .random(in: 0..<1))
        if (try? await Task.sleep(for: pause)) != nil { continue }
      }
      finish(result, sink: sink)
      return
    }
  }

  /// The app of an order, or the only one. A receipt that fits none of several apps is asked about with the first: its
  /// bundle is in Apple's answer.
  private func channel(for due: DueCheck) -> AppChannel? {
    channels.first { $0.app.bundleId == due.bundleId } ?? channels.first
  }

  /// Waits while the breaker is open; nil when the re-check ends or the app's configuration was refused.
  private func permit(app: String, deadline: ContinuousClock.Instant) async -> CircuitBreaker.Permit? {
    while true {
      if reasonToEnd(deadline) != nil { return nil }
      let now = RateGate.Clock.continuous.uptime()
      let admission = state.values.withLock { values -> CircuitBreaker.Admission? in
        if values.summary.faults[app] != nil { return nil }
        if let since = values.openSince, now - since > Self.patience {
          values.hasGivenUp = true
          return nil
        }
        return values.breaker.admit(now: now)
      }
      switch admission {
      case .none: return nil
      case .some(.granted(let permit)): return permit
      case .some(.refused(let wait)):
        // Short naps: a signal or the deadline must not wait for a long pause.
        guard (try? await Task.sleep(for: min(wait, .milliseconds(500)))) != nil else { return nil }
      }
    }
  }

  private func record(_ result: CircuitBreaker.CallResult, permit: CircuitBreaker.Permit) {
    let now = RateGate.Clock.continuous.uptime()
    let opened = state.values.withLock { values in
      values.breaker.record(result, permit: permit, now: now)
      let wasOpen = values.openSince != nil
      values.openSince = values.breaker.isOpen ? values.openSince ?? now : nil
      return values.breaker.isOpen && !wasOpen
    }
    if opened { logger.warning("Apple is not answering; requests pause and probes go on") }
  }

  private func note(_ answer: ReceiptAnswer, permit: CircuitBreaker.Permit, app: String) {
    record(answer.health, permit: permit)
    let news = state.values.withLock { values -> [String] in
      values.summary.httpStatuses[answer.httpStatus ?? 0, default: 0] += 1
      if case .systemicFault(let fault) = answer.outcome { values.summary.faults[app] = fault.message }
      return answer.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app)"]) }
  }

  /// Apple's passing troubles are often gone a moment later. A timeout has already cost its time.
  private func isWorthAnotherTry(_ answer: ReceiptAnswer) -> Bool {
    guard case .unanswered(let silence) = answer.outcome else { return false }
    switch silence.reason {
    case .appleError, .rateLimited: return true
    case .unreachable: return silence.detail != "timeout"
    }
  }

  private func finish(_ result: CheckResult, sink: AsyncStream<CheckResult>.Continuation) {
    state.values.withLock { $0.summary.outcomes[result.outcome, default: 0] += 1 }
    sink.yield(result)
    progress.advance()
  }

  /// Writes what has gathered while the last batch was written.
  private func store(_ answers: AsyncStream<CheckResult>) async throws {
    let gathered = Mutex<[CheckResult]>([])
    let (wake, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    async let gathering: Void = {
      for await answer in answers {
        gathered.withLock { $0.append(answer) }
        bell.yield()
      }
      bell.finish()
    }()
    for await _ in wake {
      let batch = gathered.withLock { batch in
        defer { batch.removeAll(keepingCapacity: true) }
        return batch
      }
      try await writer.write(batch)
    }
    await gathering
    try await writer.write(gathered.withLock { $0 })
  }
}
