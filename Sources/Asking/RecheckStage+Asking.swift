import AppStore
import AuditStore
import Logging
import Reconciliation
import Run
import Settings
import Synchronization

extension RecheckStage {
  func ask(_ next: CheckInProgress, deadline: ContinuousClock.Instant) async -> AskingLoop.Ending {
    guard let channel = preparation.channel(for: next) else { return .done }
    let ending = await ask(next, through: channel, deadline: deadline)
    // A check that waits before its first question is read again.
    if case .waits(let check, _) = ending, check.isBegun { return ending }
    shared.remove(next.questions, of: channel.app.name)
    return ending
  }

  private func ask(
    _ next: CheckInProgress, through channel: any AppleChannel, deadline: ContinuousClock.Instant
  ) async -> AskingLoop.Ending {
    var check = next
    let isOne = check.questions.count == 1
    // Each of several answers is stored as it comes, so that a killed run asks only for the rest.
    if !isOne { await storePreliminaryResult(of: &check) }
    var isOver = false
    asking: while let question = check.next {
      if let known = check.answer(to: question, for: channel.app.bundleId) {
        check.answers.append(known)
        continue
      }
      let step: Step
      if let answer = await shared.answer(to: question, of: channel.app.name) {
        step = .answer(answer)
      } else {
        step = await put(question, of: &check, to: channel, deadline: deadline)
        shared.finish(question, of: channel.app.name, with: step.answer)
      }
      switch step {
      case .answer(let answer):
        check.attempts = nil
        check.answers.append(answer)
        if !isOne, !answer.facts.isEmpty || !answer.furtherFacts.isEmpty {
          var part = check.result(.pending, .neverChecked, channel: .serverApi)
          // An unsigned receipt is assigned to its order only after Apple has confirmed every ID in it.
          (part.facts, part.furtherFacts) =
            part.isUnproven ? ([], answer.facts + answer.furtherFacts) : (answer.facts, answer.furtherFacts)
          await sink.put(part)
        }
      case .waits(let lane):
        if !check.isBegun { await storePreliminaryResult(of: &check) }
        return .waits(check, lane)
      case .over:
        isOver = true
        // A failed question is recorded, even without time for the remaining ones.
        if check.hasFailed { break asking }
        await storePreliminaryResult(of: &check)
        return .over
      }
    }
    var result = channel.result(of: check, answers: check.answers)
    if !isOne {
      result.furtherFacts = []
      // Other facts were stored answer by answer. Those of an unsigned receipt are assigned to its order here.
      if !result.isUnproven { result.facts = [] }
    }
    await finish(result, of: channel)
    return isOver ? .over : .done
  }

  private enum Step {
    /// Apple's answer, or the last failure if Apple may not be asked again.
    case answer(ChannelAnswer)
    case waits(AskingGate.Lane)
    case over

    var answer: ChannelAnswer? {
      switch self {
      case .answer(let answer): answer
      case .waits, .over: nil
      }
    }
  }

  private func put(
    _ question: Question, of check: inout CheckInProgress, to channel: any AppleChannel,
    deadline: ContinuousClock.Instant
  ) async -> Step {
    let lane = AskingGate.Lane(app: channel.app.name, side: question.first)
    var attempts = check.attempts ?? RetryBudget(check.row.history, asOf: queue.asOf, isFurther: check.hasFailed)
    while true {
      let ended = attempts.trouble.map(Step.answer) ?? .over
      if Task.isCancelled || reasonToEnd(deadline) != nil || gate.isOver(for: lane.app) { return ended }
      if channel.isRateLimited(on: lane.side) { return .waits(lane) }
      let permit: AskingGate.Permit
      switch gate.admit(lane) {
      case .over: return ended
      case .refused: return .waits(lane)
      case .granted(let granted): permit = granted
      }
      let isWanted: @Sendable () -> Bool = {
        gate.stands(permit) && !channel.isRateLimited(on: lane.side) && reasonToEnd(deadline) == nil
      }
      guard let answer = try? await channel.ask(question, after: attempts.trouble, while: isWanted) else {
        gate.abandon(permit)
        // Apple has become silent before the question's turn, or may no longer be asked.
        continue
      }
      let failure = attempts.meaning(on: gate.condition(of: lane))
      note(answer, about: check, failure: failure, permit: permit, app: channel.app)
      if case .fault(let fault) = answer.meaning {
        // The shared secret of another app may differ.
        if fault.credential == .sharedSecret, check.statesOtherApp(to: channel.app.bundleId) { return .answer(answer) }
        switch gate.refuse(
          fault, app: channel.app.name, id: check.subject.id.text, isSecondAttempt: attempts.wasRefused)
        {
        case .askAgain:
          attempts.wasRefused = true
          check.attempts = attempts
          await channel.renewCredential()
          continue
        case .park:
          warn(of: fault, app: channel.app, about: check)
          return .answer(answer)
        case .endApp: return .over
        }
      }
      let isOutage = attempts.fail(on: gate.condition(of: lane))
      guard attempts.hasRetriesLeft, answer.isWorthRetrying(inOutage: isOutage), reasonToEnd(deadline) == nil
      else {
        return .answer(answer)
      }
      attempts.trouble = answer
      check.attempts = attempts
      if answer.silence?.reason == .rateLimited,
        let side = [lane.side, lane.side.other].first(where: channel.isRateLimited)
      {
        return .waits(AskingGate.Lane(app: lane.app, side: side))
      }
      let pause = Backoff(base: .milliseconds(200), cap: .seconds(2)).delay(attempt: max(attempts.count, 1))
      // Backs off from a server in trouble. A cancelled wait keeps the answer.
      guard (try? await Task.sleep(for: pause)) != nil else { return .answer(answer) }
      // In an outage the question waits with all others.
      if isOutage { return .waits(lane) }
    }
  }

  private func note(
    _ answer: ChannelAnswer, about check: CheckInProgress, failure: CircuitBreaker.CallResult,
    permit: AskingGate.Permit, app: Settings.App
  ) {
    var isRefusedHere = false
    if case .refused = check.judgement { isRefusedHere = true }
    if let lane = gate.note(answer, permit, isRefusedHere: isRefusedHere, failure: failure, bundleId: app.bundleId) {
      logger.warning(
        "Apple is not answering; requests pause, and single probes continue",
        metadata: ["app": "\(lane.app)", "side": "\(lane.side)"])
    }
    let news = state.values.withLock { values -> [String] in
      if !answer.asked.isEmpty { values.summary.httpStatuses[answer.httpStatus ?? 0, default: 0] += 1 }
      return answer.warnings.filter { values.warned.insert($0).inserted }
    }
    for warning in news { logger.warning("\(warning)", metadata: ["app": "\(app.name)"]) }
  }

  /// Warns once per kind, because one refused question may hide a key that was revoked in the night.
  private func warn(of fault: AppleFault, app: Settings.App, about check: CheckInProgress) {
    let isNew = state.values.withLock { $0.warned.insert("\(fault.kind) \(app.name)").inserted }
    guard isNew else { return }
    logger.warning(
      "Apple refused a request, and may refuse others. Refused checks are marked review. \(fault.message)",
      metadata: ["app": "\(app.name)", "refusal": "\(fault.kind.rawValue)", "about": "\(check.subject.id.text)"])
  }

  /// Stores the signed facts of a receipt; the check stays due.
  func storePreliminaryResult(of check: inout CheckInProgress) async {
    if let preliminary = check.preliminaryResult { await sink.put(preliminary) }
    check.isPreliminaryStored = true
  }

  func finish(_ result: CheckResult, of channel: any AppleChannel) async {
    var result = result
    result.app = channel.app.name
    var history = result.check.row.history
    history.note(
      result.outcome, reason: result.reason, isOffline: result.channel == .offline, appleDate: result.answeredAt,
      asOf: queue.asOf)
    // Counted as in the audit: no answer is owed for a proof older than the lookback.
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
