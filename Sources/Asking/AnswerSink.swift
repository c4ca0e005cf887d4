import Reconciliation
import Synchronization

/// Takes answers in and has them stored: while one batch is being written the next one gathers, so an answer waits for one
/// commit at most. Whoever asks looks whether it keeps up.
final class AnswerSink: Sendable {
  /// An answer that is not stored within this holds up the next question.
  static let patience = Duration.milliseconds(500)
  /// How many answers are written in one transaction at most.
  private static let longestBatch = 500

  private struct State {
    var gathered: [CheckResult] = []
    /// Since when the oldest answer that is not stored waits.
    var waitingSince: ContinuousClock.Instant?
    var isWriting = false
    var isClosed = false
    var flushed: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())
  private let bell: AsyncStream<Void>.Continuation
  private let wake: AsyncStream<Void>

  init() { (wake, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

  /// Takes an answer in.
  func put(_ result: CheckResult) {
    state.withLock { state in
      state.gathered.append(result)
      state.waitingSince = state.waitingSince ?? .now
    }
    bell.yield()
  }

  /// Whether what was answered is stored soon enough to ask for more.
  var keepsUp: Bool {
    state.withLock { state in state.waitingSince.map { .now - $0 < Self.patience } ?? true }
  }

  /// Returns when everything that was taken in so far is stored, or nothing is stored any more.
  func flush() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.isClosed || state.gathered.isEmpty && !state.isWriting { return true }
        state.flushed.append(continuation)
        return false
      }
      if isIdle { continuation.resume() } else { bell.yield() }
    }
  }

  /// No answer follows.
  func finish() { bell.finish() }

  /// Stores until `finish`. Throws what the writer throws; then nothing is taken in any more.
  func store(with writer: AnswerWriter) async throws {
    defer { release(close: true) }
    for await _ in wake { try await storeGathered(writer) }
    try await storeGathered(writer)
  }

  private func storeGathered(_ writer: AnswerWriter) async throws {
    while true {
      let batch = state.withLock { state in
        let batch = Array(state.gathered.prefix(Self.longestBatch))
        state.gathered.removeFirst(batch.count)
        state.isWriting = !batch.isEmpty
        return batch
      }
      if batch.isEmpty { break }
      try await writer.write(batch)
      state.withLock { state in
        state.isWriting = false
        // Those that are left came while the batch was written.
        state.waitingSince = state.gathered.isEmpty ? nil : .now
      }
    }
    release(close: false)
  }

  private func release(close: Bool) {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      if close { state.isClosed = true }
      guard state.isClosed || state.gathered.isEmpty && !state.isWriting else { return [] }
      defer { state.flushed = [] }
      return state.flushed
    }
    for continuation in waiting { continuation.resume() }
  }
}
