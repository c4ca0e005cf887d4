import AppStore
import AuditStore
import Logging
import Reconciliation
import Run
import Synchronization

/// Asks Apple about everything that is due, many at a time, and stores each answer at once.
///
/// What receipts say by themselves is stored even when nobody may be asked any more: Apple's signature is enough for
/// `paid`, and needs no call.
package struct RecheckStage: Sendable {
  private let queue: CheckQueue
  private let writer: AnswerWriter
  private let judge: OfflineJudge
  private let channels: [any AppleChannel]
  private let settings: Settings
  private let logger: Logger
  private let stop: StopSignal
  private let progress: WorkProgress
  private let isOffline: Bool
  private let gate: AskingGate
  private let state = SharedState()

  /// - Parameters:
  ///   - faults: apps whose configuration Apple has refused already, with the remedy; they are not asked.
  ///   - isOffline: judges what can be judged without a call, and asks nobody.
  package init(
    queue: CheckQueue, writer: AnswerWriter, judge: OfflineJudge, channels: [any AppleChannel], settings: Settings,
    logger: Logger, stop: StopSignal, progress: WorkProgress, faults: [String: String] = [:], isOffline: Bool
  ) {
    self.isOffline = isOffline
    self.queue = queue
    self.writer = writer
    self.judge = judge
    self.channels = channels
    self.settings = settings
    self.logger = logger
    self.stop = stop
    self.progress = progress
    gate = AskingGate(apps: channels.map(\.app.name), faults: faults)
  }

  /// What the tasks of one re-check share.
  private final class SharedState: Sendable {
    struct Values {
      var summary = RecheckSummary()
      var warned: Set<String> = []
    }
    let values = Mutex(Values())
  }

  /// How often one question is put within a run when Apple answers with trouble of its own.
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
    return state.values.withLock { values in
      values.summary.faults = gate.faults
      values.summary.endedEarly = values.summary.endedEarly ?? gate.outage
      return values.summary
    }
  }

  // MARK: - Many at a time

  private enum Event { case check, tick, patience }

  private func askAll(sink: AsyncStream<CheckResult>.Continuation, deadline: ContinuousClock.Instant) async throws {
    try await withThrowingTaskGroup(of: Event.self) { group in
      // Without it nobody would notice a signal or the deadline while every question waits for a bucket that Apple shut.
      let tick: @Sendable () async -> Event = {
        // Cancelled, it ticks at once, and the group is at its end.
        try? await Task.sleep(for: .milliseconds(250))
        return .tick
      }
      group.addTask(operation: tick)
      var underWay = 0
      var waiting: [Inquiry] = []
      var isDrained = false
      var hasEnded = false
      while true {
        if !hasEnded, !(isDrained && waiting.isEmpty && underWay == 0), let reason = reasonToEnd(deadline) {
          hasEnded = true
          state.values.withLock { $0.summary.endedEarly = reason }
          for inquiry in waiting { setAside(inquiry.check, sink: sink) }
          waiting = []
          try await readTheRest(sink: sink)
          isDrained = true
          // Answers that are on their way are worth waiting for, but not for ever.
          group.addTask {
            // Cancelled when the answers came sooner.
            try? await Task.sleep(for: .seconds(10))
            return .patience
          }
        }
        if waiting.isEmpty, !isDrained {
          let claimed = try await queue.claim()
          isDrained = claimed.isEmpty
          waiting = try await inquiries(about: claimed, sink: sink).reversed()
          if waiting.isEmpty { continue }
        }
        if underWay < settings.concurrency, let next = waiting.popLast() {
          underWay += 1
          group.addTask {
            await ask(next, sink: sink, deadline: deadline)
            return .check
          }
          continue
        }
        if underWay == 0 { break }
        switch try await group.next() {
        case .check: underWay -= 1
        case .tick: if !group.isCancelled { group.addTask(operation: tick) }
        case .patience: group.cancelAll()
        case nil: underWay = 0
        }
      }
      group.cancelAll()
    }
  }

  /// Judges receipts by themselves, settles those about which nobody need be asked, and gives what is to be asked about the
  /// others.
  private func inquiries(
    about claimed: [DueCheck], sink: AsyncStream<CheckResult>.Continuation
  ) async throws -> [Inquiry] {
    var inquiries: [Inquiry] = []
    var ids: Set<String> = []
    for due in claimed {
      let check = JudgedCheck(due, judge: judge)
      guard let channel = channel(for: check) else { continue }
      let questions = channel.questions(about: check)
      if questions.isEmpty {
        finish(channel.result(of: check, answers: []), sink: sink)
      } else if isOffline {
        setAside(check, sink: sink)
      } else {
        inquiries.append(Inquiry(check: check, channel: channel, questions: questions))
        for case .transaction(let id) in questions.map(\.matter) { ids.insert(id) }
      }
    }
    let told = try await queue.told(about: ids.sorted())
    if !told.isEmpty {
      for index in inquiries.indices {
        inquiries[index].told = queue.usable(told, for: inquiries[index].check.due.subject)
      }
    }
    return inquiries
  }

  /// Nobody is asked any more: judges the receipts that nobody has looked at, each by itself.
  private func readTheRest(sink: AsyncStream<CheckResult>.Continuation) async throws {
    while judge.hasRoots, stop.stopped == nil {
      let unread = try await queue.claim(.unread)
      if unread.isEmpty { return }
      for due in unread {
        let check = JudgedCheck(due, judge: judge)
        guard let channel = channel(for: check) else { continue }
        if channel.questions(about: check).isEmpty {
          finish(channel.result(of: check, answers: []), sink: sink)
        } else {
          setAside(check, sink: sink)
        }
      }
    }
  }

  private func reasonToEnd(_ deadline: ContinuousClock.Instant) -> String? {
    if stop.stopped != nil { return "stopped by a signal" }
    if ContinuousClock.now >= deadline { return "the deadline of recheck.maxDuration passed" }
    return gate.end
  }

  /// The app that a signature or an order names, or the only one. A receipt that fits none of several apps is asked about
  /// with the first: its bundle is in Apple's answer.
  private func channel(for check: JudgedCheck) -> (any AppleChannel)? {
    channels.first { $0.app.bundleId == check.bundleId } ?? channels.first { $0.app.bundleId == check.due.bundleId }
      ?? channels.first
  }

  // MARK: - One check

  private func ask(
    _ inquiry: Inquiry, sink: AsyncStream<CheckResult>.Continuation, deadline: ContinuousClock.Instant
  ) async {
    let (check, channel) = (inquiry.check, inquiry.channel)
    let isOne = inquiry.questions.count == 1
    // What many answers are gathered for is stored as it comes: a killed run asks only for the rest.
    if !isOne { setAside(check, sink: sink) }
    var answers: [ChannelAnswer] = []
    for question in inquiry.questions {
      if let told = inquiry.answer(to: question) {
        answers.append(told)
        continue
      }
      guard let answer = await answer(to: question, from: channel, deadline: deadline) else {
        if isOne { setAside(check, sink: sink) }
        return
      }
      answers.append(answer)
      if !isOne, case .genuine(_, _, let facts) = answer.meaning, !facts.isEmpty {
        var part = check.result(.pending, .neverChecked, channel: .serverApi)
        part.facts = facts
        sink.yield(part)
      }
    }
    var result = channel.result(of: check, answers: answers)
    if !isOne { result.facts = [] }
    finish(result, sink: sink)
  }

  /// Apple's answer; nil when nobody is asked any more.
  private func answer(
    to question: Question, from channel: any AppleChannel, deadline: ContinuousClock.Instant
  ) async -> ChannelAnswer? {
    let lane = AskingGate.Lane(app: channel.app.name, side: question.first)
    for attempt in 1... {
      guard let permit = await permit(lane, deadline: deadline) else { return nil }
      guard let answer = try? await channel.ask(question) else {
        gate.abandon(permit)
        return nil
      }
      note(answer, permit: permit, app: channel.app.name)
      if case .fault = answer.meaning { return nil }
      if attempt < Self.tries, answer.isWorthAnotherTry, reasonToEnd(deadline) == nil {
        let pause = Backoff(base: .milliseconds(200), cap: .seconds(2)).delay(
          attempt: attempt, random: .random(in: 0..<1))
        // A server in trouble needs a moment; cancelled in it, the answer that there is stands.
        if (try? await Task.sleep(for: pause)) != nil { continue }
      }
      return answer
    }
    return nil
  }

  /// Waits while the breaker is open; nil when the re-check ends or the app's part of it has.
  private func permit(_ lane: AskingGate.Lane, deadline: ContinuousClock.Instant) async -> AskingGate.Permit? {
    while reasonToEnd(deadline) == nil {
      switch gate.admit(lane) {
      case .over: return nil
      case .granted(let permit): return permit
      case .refused(let wait):
        // Short naps: a signal or the deadline must not wait for a long pause.
        guard (try? await Task.sleep(for: min(wait, .milliseconds(500)))) != nil else { return nil }
      }
    }
    return nil
  }

  private func note(_ answer: ChannelAnswer, permit: AskingGate.Permit, app: String) {
    if let lane = gate.note(answer, permit) {
      logger.warning(
        "Apple is not answering; requests pause and probes go on",
        metadata: ["app": "\(lane.app)", "side": "\(lane.side)"])
    }
    let news = state.values.withLock { values -> [String] in
      if !answer.asked.isEmpty { values.summary.httpStatuses[answer.httpStatus ?? 0, default: 0] += 1 }
      return answer.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app)"]) }
  }

  /// Stores what a receipt says by itself; the check stays due.
  private func setAside(_ check: JudgedCheck, sink: AsyncStream<CheckResult>.Continuation) {
    if let preliminary = check.preliminaryResult { sink.yield(preliminary) }
  }

  private func finish(_ result: CheckResult, sink: AsyncStream<CheckResult>.Continuation) {
    state.values.withLock { $0.summary.outcomes[result.outcome, default: 0] += 1 }
    sink.yield(result)
    progress.advance()
  }

  // MARK: - Storing

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
