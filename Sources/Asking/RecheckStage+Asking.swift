import AppStore
import AuditStore
import Logging
import Reconciliation
import Run
import Synchronization

/// One check: its questions, their answers, and what they come to.
extension RecheckStage {
  /// - Returns: false where nobody may be asked any more.
  func ask(_ inquiry: Inquiry, deadline: ContinuousClock.Instant) async -> Bool {
    let (check, channel) = (inquiry.check, inquiry.channel)
    let isOne = inquiry.questions.count == 1
    // What many answers are gathered for is stored as it comes: a killed run asks only for the rest.
    if !isOne { await setAside(check) }
    var answers: [ChannelAnswer] = []
    var isOver = false
    for question in inquiry.questions {
      if let told = inquiry.answer(to: question) {
        answers.append(told)
        continue
      }
      let isFurther = answers.contains { $0.silence != nil }
      guard
        let answer = await answer(
          to: question, about: check, isFurther: isFurther, from: channel, deadline: deadline)
      else {
        // What was asked in vain is noted, though there was no time for the rest.
        isOver = true
        if isFurther { break }
        if isOne { await setAside(check) }
        return false
      }
      answers.append(answer)
      if !isOne, !answer.facts.isEmpty || !answer.told.isEmpty {
        var part = check.result(.pending, .neverChecked, channel: .serverApi)
        // Until all that it names is known to be right, it is not known whose it is.
        (part.facts, part.told) = part.isUnproven ? ([], answer.facts + answer.told) : (answer.facts, answer.told)
        await sink.put(part)
      }
    }
    var result = channel.result(of: check, answers: answers)
    if !isOne {
      result.told = []
      // Of what only Apple's answers prove, this is where it is said whose it is.
      if !result.isUnproven { result.facts = [] }
    }
    await finish(result, of: channel)
    return !isOver
  }

  /// Apple's answer, or the trouble that it came to when nobody may be asked again; nil when there is neither.
  private func answer(
    to question: Question, about check: JudgedCheck, isFurther: Bool, from channel: any AppleChannel,
    deadline: ContinuousClock.Instant
  ) async -> ChannelAnswer? {
    let lane = AskingGate.Lane(app: channel.app.name, side: question.first)
    var wasRefused = false
    var trials = Trials(check.due.context.row.history, asOf: queue.asOf, isFurther: isFurther)
    var trouble: ChannelAnswer?
    while true {
      guard let permit = await permit(lane, deadline: deadline) else { return trouble }
      let isWanted: @Sendable () -> Bool = { gate.stands(permit) && reasonToEnd(deadline) == nil }
      guard let answer = try? await channel.ask(question, while: isWanted) else {
        gate.abandon(permit)
        if Task.isCancelled { return trouble }
        // Apple has become silent before its turn came.
        continue
      }
      let failure = trials.meaning(on: gate.condition(of: lane))
      note(answer, about: check, failure: failure, permit: permit, app: channel.app)
      if case .fault(let fault) = answer.meaning {
        // Another app's secret is another one.
        if fault.credential == .sharedSecret, check.isForeign(to: channel.app.bundleId) { return answer }
        switch gate.refuse(fault, app: channel.app.name, id: check.due.subject.id.text, isSecondTime: wasRefused) {
        case .askAgain:
          wasRefused = true
          await channel.renewCredential()
          continue
        case .park:
          warn(of: fault, app: channel.app, about: check)
          return answer
        case .endApp: return nil
        }
      }
      let isOutage = trials.fail(on: gate.condition(of: lane))
      if trials.isLeft, answer.isWorthAnotherTry(inOutage: isOutage), reasonToEnd(deadline) == nil {
        let pause = Backoff(base: .milliseconds(200), cap: .seconds(2)).delay(
          attempt: max(trials.count, 1), random: .random(in: 0..<1))
        trouble = answer
        // A server in trouble needs a moment; cancelled in it, the answer that there is stands.
        if (try? await Task.sleep(for: pause)) != nil { continue }
      }
      return answer
    }
  }

  /// The right to ask, waited for while Apple is silent; nil when the re-check ends or the app's part of it has.
  private func permit(_ lane: AskingGate.Lane, deadline: ContinuousClock.Instant) async -> AskingGate.Permit? {
    while reasonToEnd(deadline) == nil {
      switch gate.admit(lane) {
      case .over: return nil
      case .granted(let permit): return permit
      case .refused(let pause):
        // Short naps: a signal or the deadline must not wait for a long pause.
        guard (try? await Task.sleep(for: min(pause, .milliseconds(500)))) != nil else { return nil }
      }
    }
    return nil
  }

  private func note(
    _ answer: ChannelAnswer, about check: JudgedCheck, failure: CircuitBreaker.CallResult, permit: AskingGate.Permit,
    app: Settings.App
  ) {
    var isRefusedHere = false
    if case .refused = check.judgement { isRefusedHere = true }
    if let lane = gate.note(
      answer, permit, isRefusedHere: isRefusedHere, failure: failure, bundleId: app.bundleId)
    {
      logger.warning(
        "Apple is not answering; requests pause and probes go on",
        metadata: ["app": "\(lane.app)", "side": "\(lane.side)"])
    }
    let news = state.values.withLock { values -> [String] in
      if !answer.asked.isEmpty { values.summary.httpStatuses[answer.httpStatus ?? 0, default: 0] += 1 }
      return answer.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app.name)"]) }
  }

  /// A refusal that counts as one question's trouble may hide a key that was revoked in the middle of the night: each kind
  /// is told once.
  private func warn(of fault: AppleFault, app: Settings.App, about check: JudgedCheck) {
    let isNew = state.values.withLock { $0.warned.insert("\(fault.kind) \(app.name)").inserted }
    guard isNew else { return }
    logger.warning(
      "Apple refuses a question, and may refuse others: each is for review. \(fault.message)",
      metadata: [
        "app": "\(app.name)", "refusal": "\(fault.kind.rawValue)", "about": "\(check.due.subject.id.text)",
      ])
  }

  /// Stores what a receipt says by itself; the check stays due.
  func setAside(_ check: JudgedCheck) async {
    if let preliminary = check.preliminaryResult { await sink.put(preliminary) }
  }

  func finish(_ result: CheckResult, of channel: any AppleChannel) async {
    var result = result
    result.app = channel.app.name
    var history = result.context.row.history
    history.note(
      result.outcome, reason: result.reason, isOffline: result.channel == .offline, saidAt: result.answeredAt,
      asOf: queue.asOf)
    // As the audit counts it: of what is older than the lookback no answer is awaited.
    let isOwed =
      history.dated >= queue.asOf - settings.lookback
      && Dueness.isOwed(
        Dueness(of: history, policy: settings.duenessPolicy), outcome: history.outcome,
        unansweredSince: history.unansweredSince, reason: history.reason, asOf: queue.asOf,
        stuckAfter: settings.stuckAfter)
    state.values.withLock { values in
      values.summary.outcomes[result.outcome, default: 0] += 1
      if isOwed { values.summary.owed += 1 }
    }
    await sink.put(result)
    progress.advance()
  }
}
