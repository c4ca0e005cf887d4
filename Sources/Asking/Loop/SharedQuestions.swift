import Synchronization

/// The questions of the checks in memory. Apple is asked once about a transaction that several checks of an app have.
final class SharedQuestions: Sendable {
  private struct Key: Hashable {
    var app: String
    var question: Question
  }

  private struct State {
    /// The checks that have the question, until they end.
    var checks = 0
    var isAsked = false
    var answer: ChannelAnswer?
    var waiting: [CheckedContinuation<ChannelAnswer?, Never>] = []
  }

  private let states = Mutex<[Key: State]>([:])

  /// Adds the questions of a check, before any of them is asked.
  func add(_ questions: [Question], of app: String) {
    states.withLock { states in
      for question in questions { states[Key(app: app, question: question), default: State()].checks += 1 }
    }
  }

  /// Removes the questions of a check that has ended.
  func remove(_ questions: [Question], of app: String) {
    states.withLock { states in
      for question in questions {
        let key = Key(app: app, question: question)
        guard let checks = states[key]?.checks else { continue }
        if checks > 1 { states[key]?.checks -= 1 } else { states[key] = nil }
      }
    }
  }

  /// The answer to another check, if need be after a wait. nil: the caller asks, and calls ``finish(_:of:with:)``.
  func answer(to question: Question, of app: String) async -> ChannelAnswer? {
    let key = Key(app: app, question: question)
    return await withCheckedContinuation { (continuation: CheckedContinuation<ChannelAnswer?, Never>) in
      let (waits, answer) = states.withLock { states -> (Bool, ChannelAnswer?) in
        guard let state = states[key] else { return (false, nil) }
        if let answer = state.answer { return (false, answer) }
        if state.isAsked { states[key]?.waiting.append(continuation) } else { states[key]?.isAsked = true }
        return (state.isAsked, nil)
      }
      if !waits { continuation.resume(returning: answer) }
    }
  }

  /// Passes an answer on. After a missing answer or a refusal, each check asks for itself, because retries and refusals
  /// are counted by check.
  func finish(_ question: Question, of app: String, with answer: ChannelAnswer?) {
    let key = Key(app: app, question: question)
    let shared = answer.flatMap { $0.silence == nil && !$0.isFault ? $0 : nil }
    let waiting = states.withLock { states -> [CheckedContinuation<ChannelAnswer?, Never>] in
      guard let state = states[key] else { return [] }
      states[key]?.isAsked = false
      states[key]?.waiting = []
      if state.checks > 1 { states[key]?.answer = shared ?? state.answer }
      return state.waiting
    }
    for continuation in waiting { continuation.resume(returning: shared) }
  }
}
