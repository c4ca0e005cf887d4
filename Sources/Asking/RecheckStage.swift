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
  let state = SharedState()
  private let writer: AnswerWriter
  private let preparation: Preparation
  private let budget = ByteBudget(limit: Preparation.budget)

  package init(
    queue: CheckQueue, writer: AnswerWriter, judge: OfflineJudge, channels: [any AppleChannel], settings: Settings,
    logger: Logger, stop: StopSignal, progress: WorkProgress, gate: AskingGate, isOffline: Bool
  ) {
    self.isOffline = isOffline
    self.queue = queue
    self.writer = writer
    self.settings = settings
    self.logger = logger
    self.stop = stop
    self.progress = progress
    self.gate = gate
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
      if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
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
    let faultMessages = try await SystemicGuard(asOf: queue.asOf, settings: settings).decide(
      worker: queue.worker, isWhole: queue.isWhole && !isOffline, store: queue.store, source: queue.source)
    state.values.withLock { values in
      values.summary.faults = gate.faults.merging(faultMessages) { "\($0) \($1)" }
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
    case check(Ending, payloadBytes: Int)
    case tick, waitLimit
  }

  private func askAll(deadline: ContinuousClock.Instant) async throws {
    try await withThrowingTaskGroup(of: Event.self) { group in
      let tick: @Sendable () async -> Event = {
        // Wakes the loop for a signal, the deadline and the end of a rate limit. A cancelled sleep ends the group.
        try? await Task.sleep(for: .milliseconds(250))
        return .tick
      }
      group.addTask(operation: tick)
      var inProgress = 0
      var taken: [Preparation.Taken] = []
      var ready: [CheckInProgress] = []
      var lists = WaitingLists()
      var isDrained = false
      var looked = ContinuousClock.now
      // Set while other workers hold all due checks. If one dies, this worker takes over its checks.
      var wait: IdleWait?
      var hasEnded = false
      var isAllSettled = true
      while true {
        let isDone =
          isDrained && taken.isEmpty && ready.isEmpty && lists.isEmpty && inProgress == 0 && isAllSettled && wait == nil
        if !hasEnded, !isDone, let reason = reasonToEnd(deadline) {
          hasEnded = true
          let remainder = try await wait == nil || stop.stopped != nil ? nil : queue.remainder()
          // Other workers have asked about all remaining checks.
          if case .nothing = remainder { break }
          state.values.withLock { values in
            values.summary.endedEarly = reason
            if case .others = remainder { values.summary.isContinuedByOtherWorkers = true }
          }
          switch remainder {
          case nil: if wait == nil { try await judgeRemainingReceipts(taken) }
          case .free:
            try await queue.resume()
            try await judgeRemainingReceipts(taken)
          case .nothing, .others: break
          }
          taken = []
          isDrained = true
          let drainPeriod = stop.stopped == nil ? Self.drainPeriod.deadline : Self.drainPeriod.signal
          group.addTask {
            // Waits a limited time for answers under way. The wait is cancelled if they arrive sooner.
            try? await Task.sleep(for: drainPeriod)
            return .waitLimit
          }
        }
        // At the end all checks leave the lists, because each one records its failed attempts.
        for checkInProgress in lists.leave({ hasEnded ? .max : places(on: $0) }) {
          budget.takeBack(checkInProgress.payloadBytes)
          ready.append(checkInProgress)
        }
        if ready.isEmpty, taken.isEmpty, !hasEnded {
          let recalled = lists.recall(atMost: settings.batchSize, places)
          if !recalled.isEmpty {
            // Flushes first, so that preliminary facts are not stored twice.
            await sink.flush()
            taken = try await preparation.take(again: recalled)
          } else if !isDrained, mayTakeBatch(lists) {
            taken = try await preparation.take() ?? []
            isDrained = taken.isEmpty
          }
        }
        if ready.isEmpty, !taken.isEmpty, budget.hasRoom {
          let before = taken.count
          ready = try await checksInProgress(&taken).reversed()
          if ready.isEmpty, taken.count < before { continue }
        }
        if hasEnded || inProgress < settings.concurrency, let next = ready.popLast() {
          inProgress += 1
          group.addTask { .check(await ask(next, deadline: deadline), payloadBytes: next.payloadBytes) }
          continue
        }
        if inProgress == 0 {
          if hasEnded { break }
          if taken.isEmpty, !lists.isEmpty, looked + Self.lookInterval < .now, mayTakeBatch(lists) {
            taken = try await takeMore()
            looked = .now
          } else if taken.isEmpty, lists.isEmpty {
            guard let left = try await takeRemainder(&wait, isAllSettled: isAllSettled) else { break }
            taken = left
          }
          if !taken.isEmpty {
            (isDrained, wait) = (false, nil)
            continue
          }
        }
        switch try await group.next() {
        case .check(let ending, let payloadBytes):
          inProgress -= 1
          budget.releaseBytes(payloadBytes)
          switch ending {
          case .settled: break
          case .over: isAllSettled = false
          case .waits(var checkInProgress, let lane):
            if !checkInProgress.isBegun { await storePreliminaryResult(&checkInProgress) }
            lists.add(checkInProgress, on: lane)
          }
        case .tick: if !group.isCancelled { group.addTask(operation: tick) }
        case .waitLimit: group.cancelAll()
        case nil: inProgress = 0
        }
      }
      group.cancelAll()
    }
  }

  /// The number of questions that may start on a lane. Unlimited for an ended app, whose checks end themselves.
  private func places(on lane: AskingGate.Lane) -> Int {
    guard !gate.isOver(for: lane.app), let channel = preparation.channels.first(where: { $0.app.name == lane.app })
    else { return .max }
    return channel.isRateLimited(on: lane.side) ? 0 : gate.places(on: lane)
  }

  /// True if another batch is worth taking: a lane is open, or no check waits that could probe one.
  private func mayTakeBatch(_ lists: WaitingLists) -> Bool {
    if lists.isEmpty { return true }
    let apps = preparation.channels.map(\.app.name)
    return !lists.isFull && apps.contains { places(on: AskingGate.Lane(app: $0, side: .production)) > 0 }
  }

  private func takeMore() async throws -> [Preparation.Taken] {
    await sink.flush()
    queue.restartReading()
    return try await preparation.take() ?? []
  }

  /// Takes checks for a worker that has none left: newly due ones, or checks that other workers release. Empty while
  /// other workers hold all due checks; nil if no check is due or the wait is over.
  private func takeRemainder(_ wait: inout IdleWait?, isAllSettled: Bool) async throws -> [Preparation.Taken]? {
    if let wait, !wait.isOver { return [] }
    if wait == nil {
      let taken = try await takeMore()
      // A worker that has given up on its own checks must not take over other workers' checks.
      if !taken.isEmpty || isOffline || !isAllSettled { return taken.isEmpty ? nil : taken }
    }
    switch try await queue.remainder() {
    case .nothing:
      if wait == nil { return nil }
      // Filters are read again, because answers of other workers have made checks due.
      let taken = try await reacquireChecks()
      return taken.isEmpty ? nil : taken
    case .others: break
    case .free:
      let taken = try await reacquireChecks()
      // A free check that could not be leased is locked for a moment.
      if !taken.isEmpty { return taken }
    }
    if wait == nil {
      let sessions = try await queue.sessions().map(String.init)
      logger.info(
        "\(Self.waitMessage)",
        metadata: ["sessions": "\(sessions.isEmpty ? "none that asks" : sessions.joined(separator: " "))"])
    }
    let further = wait?.further ?? IdleWait(isWhole: queue.isWhole)
    wait = further
    if further.mayKeepWaiting { return [] }
    state.values.withLock { $0.summary.isContinuedByOtherWorkers = true }
    return nil
  }

  /// Logged once when the wait for other workers begins.
  static let waitMessage =
    "other processes have taken all remaining checks: waiting for their answers, or for checks that they release"

  private func reacquireChecks() async throws -> [Preparation.Taken] {
    try await queue.resume()
    let taken = try await takeMore()
    if taken.isEmpty { try await queue.pause() }
    return taken
  }

  /// The pause between two looks at the queue while all known checks wait.
  private static let lookInterval = Duration.seconds(10)

  private func checksInProgress(_ taken: inout [Preparation.Taken]) async throws -> [CheckInProgress] {
    var checksInProgress: [CheckInProgress] = []
    var ids: Set<String> = []
    for (check, bytes) in try await preparation.read(&taken, within: budget) {
      guard let channel = preparation.channel(for: check) else {
        budget.releaseBytes(bytes)
        continue
      }
      let questions = questions(about: check, of: channel)
      if questions.isEmpty || isOffline {
        if questions.isEmpty {
          await finish(channel.result(of: check, answers: []), of: channel)
        } else {
          await storePreliminaryResult(check)
        }
        budget.releaseBytes(bytes)
        continue
      }
      var checkInProgress = CheckInProgress(check: check, channel: channel, questions: questions, payloadBytes: bytes)
      if !questions.contains(where: \.carriesPayload) {
        // The payload is judged and not sent, so memory need not hold it.
        checkInProgress.check.due.forgetPayload()
        checkInProgress.payloadBytes = 0
        budget.releaseBytes(bytes)
      }
      for case .transaction(let id) in questions.map(\.matter) { ids.insert(id) }
      checksInProgress.append(checkInProgress)
    }
    let reported = try await queue.reportedTransactions(withIDs: ids.sorted())
    if !reported.isEmpty {
      for index in checksInProgress.indices {
        checksInProgress[index].reported = queue.usable(reported, for: checksInProgress[index].check.due.context.row)
      }
    }
    return checksInProgress
  }

  /// The channel's questions. None for a signed proof that was already beyond the horizon: it only proves ownership.
  private func questions(about check: JudgedCheck, of channel: any AppleChannel) -> [Question] {
    if check.genuine != nil, check.due.context.row.history.isBeyond(settings.duenessPolicy) { return [] }
    return channel.questions(about: check)
  }

  /// Judges unread receipts offline when Apple may no longer be asked.
  private func judgeRemainingReceipts(_ left: [Preparation.Taken]) async throws {
    var left = left.filter { $0.context.row.subject.kind == .receipt && $0.context.row.containedCount == 0 }
    while preparation.judge.hasRoots, stop.stopped == nil {
      if left.isEmpty { left = try await preparation.take(.unread) ?? [] }
      if left.isEmpty { return }
      for (check, bytes) in try await preparation.read(&left, within: ByteBudget(limit: Preparation.budget)) {
        guard let channel = preparation.channel(for: check) else { continue }
        if questions(about: check, of: channel).isEmpty {
          await finish(channel.result(of: check, answers: []), of: channel)
        } else {
          await storePreliminaryResult(check)
        }
        _ = bytes
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
