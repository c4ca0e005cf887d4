import AppStore
import AuditStore
import Logging
import Reconciliation
import Run
import Settings
import Synchronization

/// Asks Apple about all due checks, many at a time, and stores each answer at once. Receipts are judged offline even
/// after the deadline, because Apple's signature is enough for `paid`.
package struct RecheckStage: Sendable {
  let queue: CheckQueue
  let settings: Settings
  let logger: Logger
  let stop: StopSignal
  let progress: WorkProgress
  let isOffline: Bool
  let gate: AskingGate
  let sink = AnswerSink()
  let shared = SharedQuestions()
  let state = SharedState()
  private let writer: AnswerWriter
  let preparation: Preparation

  package init(
    queue: CheckQueue, writer: AnswerWriter, judge: OfflineJudge, channels: [any AppleChannel], settings: Settings,
    logger: Logger, stop: StopSignal, progress: WorkProgress, gate: AskingGate, isOffline: Bool
  ) {
    (self.isOffline, self.queue, self.writer, self.settings) = (isOffline, queue, writer, settings)
    (self.logger, self.stop, self.progress, self.gate) = (logger, stop, progress, gate)
    preparation = Preparation(queue: queue, judge: judge, channels: channels)
  }

  final class SharedState: Sendable {
    struct Values {
      var summary = RecheckSummary()
      var warned: Set<String> = []
    }
    let values = Mutex(Values())
  }

  private static let drainPeriod = (deadline: Duration.seconds(10), signal: Duration.milliseconds(2_500))
  /// After this time since a signal, statements are cancelled.
  private static let cutOff = Duration.seconds(4)

  /// Runs until no check is due, or the deadline or a signal ends it. `critical` subjects are asked about once more.
  /// Throws `StopSignal.Stopped` if a signal cut the work off.
  package func run(
    deadline: ContinuousClock.Instant, critical: Set<CheckSubject> = [], unknownFrom: Instant? = nil
  ) async throws -> RecheckSummary {
    do {
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask {
          try await work(deadline: deadline, critical: critical, unknownFrom: unknownFrom)
          return true
        }
        group.addTask {
          // Renews four times per lease, so that two renewals may fail. A stopped process loses its lease.
          while (try? await Task.sleep(for: .microseconds(queue.worker.lease.microseconds / 4))) != nil {
            // Errors are ignored, because a lost database ends the asking in the other task.
            try? await queue.renew()
          }
          return false
        }
        group.addTask {
          try await stop.wait()
          // Gives a running statement time to end by itself.
          try await Task.sleep(for: Self.cutOff)
          return false
        }
        _ = try await group.next()
        group.cancelAll()
      }
    } catch {
      try stop.check()
      throw error
    }
    return state.values.withLock { $0.summary }
  }

  private func work(
    deadline: ContinuousClock.Instant, critical: Set<CheckSubject>, unknownFrom: Instant?
  ) async throws {
    do {
      try await queue.enqueue(from: unknownFrom, judge: preparation.judge.identity)
    } catch let fault as ExchangedPayloads {
      let faults = Dictionary(settings.apps.map { ($0.name, fault.description) }) { first, _ in first }
      state.values.withLock { $0.summary.faults = faults }
      return
    }
    try await queue.askAboutOrder()
    if !critical.isEmpty { try await queue.ask(about: critical) }
    let due = try await queue.dueCount()
    state.values.withLock { $0.summary.due = due }
    let asking = try await progress.during(isOffline ? "judging receipts offline" : "asking Apple", total: due) {
      try await storeAnswersAndAsk(deadline: deadline)
    }
    try asking?.get()
    let faults = try await SystemicGuard(asOf: queue.asOf, settings: settings).decide(
      worker: queue.worker, isWhole: queue.isWhole && !isOffline, store: queue.store, source: queue.source)
    state.values.withLock { values in
      values.summary.faults = gate.faults.merging(faults) { "\($0) \($1)" }
    }
  }

  private func storeAnswersAndAsk(deadline: ContinuousClock.Instant) async throws -> Result<Void, any Error>? {
    try await withThrowingTaskGroup(of: Result<Void, any Error>?.self) { group in
      group.addTask {
        try await sink.store(with: writer)
        return nil
      }
      group.addTask {
        // Answers are stored first, however the asking ends.
        defer { sink.finish() }
        do { return .success(try await askAll(deadline: deadline)) } catch { return .failure(error) }
      }
      var asking: Result<Void, any Error>?
      while let ended = try await group.next() { asking = ended ?? asking }
      return asking
    }
  }

  // MARK: - The asking loop

  private enum Event {
    case ended(CheckInProgress, AskingLoop.Ending)
    case tick, waitLimit
  }

  /// Performs the actions of the loop, and returns to it the events.
  private func askAll(deadline: ContinuousClock.Instant) async throws {
    try await withThrowingTaskGroup(of: Event.self) { group in
      let tick: @Sendable () async -> Event = {
        // Wakes the loop for a signal, the deadline, and the end of a rate limit or of a breaker's pause, which is no
        // event because other workers and probes move it. A cancelled sleep ends the group.
        try? await Task.sleep(for: .milliseconds(250))
        return .tick
      }
      group.addTask(operation: tick)
      var loop = AskingLoop(
        concurrency: settings.concurrency, batchSize: settings.batchSize, isWhole: queue.isWhole, isOffline: isOffline,
        lanes: preparation.channels.map { AskingGate.Lane(app: $0.app.name, side: .production) },
        memory: Preparation.budget, now: .now)
      asking: while true {
        let event: AskingLoop.Event
        switch loop.next(.init(now: .now, reasonToEnd: reasonToEnd(deadline), places: places)) {
        case .take: event = .took(try await preparation.take() ?? [])
        case .takeNew: event = .tookNew(try await takeNew())
        case .takeAgain(let subjects):
          // Flushes first, so that preliminary facts are not stored twice.
          await sink.flush()
          event = .tookAgain(try await preparation.take(again: subjects))
        case .read(let checks): event = .read(try await questions(about: checks))
        case .ask(let check):
          group.addTask { .ended(check, await ask(check, deadline: deadline)) }
          continue
        case .look: event = .looked(try await queue.remainder())
        case .reacquire(let isLast):
          try await queue.resume()
          let checks = try await takeNew()
          if checks.isEmpty { try await queue.pause() }
          event = .reacquired(checks, isLast: isLast)
        case .announceWait:
          let sessions = try await queue.sessions().map(String.init)
          logger.info(
            "\(Self.waitMessage)",
            metadata: ["sessions": "\(sessions.isEmpty ? "none that asks" : sessions.joined(separator: " "))"])
          continue
        case .end(let reason, let left, let isWaiting):
          guard try await end(reason, left, isWaiting: isWaiting) else { break asking }
          let drainPeriod = stop.stopped == nil ? Self.drainPeriod.deadline : Self.drainPeriod.signal
          group.addTask {
            // Waits a limited time for answers under way. The wait is cancelled if they arrive sooner.
            try? await Task.sleep(for: drainPeriod)
            return .waitLimit
          }
          continue
        case .wait:
          switch try await group.next() {
          case .ended(let check, let ending): event = .ended(check, ending)
          case .tick:
            if !group.isCancelled { group.addTask(operation: tick) }
            continue
          case .waitLimit:
            group.cancelAll()
            continue
          case nil:
            // A cancelled loop has no tick, and would never wait again.
            try Task.checkCancellation()
            event = .drained
          }
        case .finish(let isContinuedByOthers):
          if isContinuedByOthers { state.values.withLock { $0.summary.isContinuedByOtherWorkers = true } }
          break asking
        }
        loop.handle(event, now: .now)
      }
      group.cancelAll()
    }
  }

  /// Logged once when the wait for other workers begins.
  static let waitMessage =
    "other processes have taken all remaining checks: waiting for their answers, or for checks that they release"

  /// The number of questions that may start on a lane. Unlimited for an ended app, whose checks end themselves.
  private func places(on lane: AskingGate.Lane) -> Int {
    guard !gate.isOver(for: lane.app), let channel = preparation.channels.first(where: { $0.app.name == lane.app })
    else { return .max }
    return channel.isRateLimited(on: lane.side) ? 0 : gate.places(on: lane)
  }

  private func takeNew() async throws -> [CheckInProgress] {
    await sink.flush()
    queue.restartReading()
    return try await preparation.take() ?? []
  }

  /// Records the early end. Returns false if other workers have asked about all remaining checks.
  private func end(_ reason: String, _ left: [CheckInProgress], isWaiting: Bool) async throws -> Bool {
    let remainder = try await !isWaiting || stop.stopped != nil ? nil : queue.remainder()
    if case .nothing = remainder { return false }
    state.values.withLock { values in
      values.summary.endedEarly = reason
      if case .others = remainder { values.summary.isContinuedByOtherWorkers = true }
    }
    if case .free = remainder {
      try await queue.resume()
      try await judgeRemainingReceipts(left)
    } else if !isWaiting {
      try await judgeRemainingReceipts(left)
    }
    return true
  }

  /// Reads checks. Returns those to ask about, with their questions.
  private func questions(about taken: [CheckInProgress]) async throws -> [CheckInProgress] {
    var asked: [CheckInProgress] = []
    var ids: Set<String> = []
    for var check in try await preparation.read(taken) {
      guard await addQuestions(to: &check, isAsking: !isOffline) else { continue }
      if !check.questions.contains(where: \.carriesPayload) {
        // The payload is judged and not sent, so memory need not hold it.
        (check.payload, check.shop.payloadBytes) = (nil, 0)
      }
      for case .transaction(let id) in check.questions.map(\.matter) { ids.insert(id) }
      asked.append(check)
    }
    let reported = try await queue.reportedTransactions(withIDs: ids.sorted())
    if reported.isEmpty { return asked }
    for index in asked.indices { asked[index].reported = queue.usable(reported, for: asked[index].row) }
    return asked
  }

  /// Adds the channel's questions. Without questions the offline judgement is the result, as for a signed proof beyond
  /// the horizon, which only proves ownership, unless the run is about its order. If Apple is not asked, signed facts
  /// are stored. Returns true to ask.
  private func addQuestions(to check: inout CheckInProgress, isAsking: Bool) async -> Bool {
    guard let channel = preparation.channel(for: check) else { return false }
    let isBeyond =
      !queue.isOfOrder && check.genuine != nil && check.row.history.isBeyond(settings.duenessPolicy)
    check.questions = isBeyond ? [] : channel.questions(about: check)
    if check.questions.isEmpty {
      await finish(channel.result(of: check, answers: []), of: channel)
    } else if !isAsking {
      await storePreliminaryResult(of: &check)
    }
    guard isAsking, !check.questions.isEmpty else { return false }
    shared.add(check.questions, of: channel.app.name)
    return true
  }

  /// Judges unread receipts offline when Apple may no longer be asked.
  private func judgeRemainingReceipts(_ left: [CheckInProgress]) async throws {
    var left = left.filter { $0.subject.kind == .receipt && $0.row.containedCount == 0 }
    while preparation.judge.hasRoots, stop.stopped == nil {
      if left.isEmpty { left = try await preparation.take(.unread) ?? [] }
      if left.isEmpty { return }
      var budget = ByteBudget(limit: Preparation.budget)
      for var check in try await preparation.read(budget.take(from: &left)) {
        _ = await addQuestions(to: &check, isAsking: false)
      }
    }
  }

  func reasonToEnd(_ deadline: ContinuousClock.Instant) -> String? {
    if stop.stopped != nil { return "stopped by a signal" }
    if ContinuousClock.now >= deadline {
      let silent = gate.silent.joined(separator: ", ")
      let why = silent.isEmpty ? "" : ", while Apple did not answer for \(silent)"
      return "the deadline of recheck.maxDuration passed\(why)"
    }
    return gate.end
  }
}
