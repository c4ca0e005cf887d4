import AsyncAlgorithms
import Reconciliation

/// Takes answers in and has them stored, all of half a second in one transaction. Whoever asks waits while a batch
/// is written, so that no more is asked than can be kept.
struct AnswerSink: Sendable {
  private enum Item: Sendable {
    case answer(CheckResult)
    /// Ended when everything before it is stored.
    case mark(AsyncStream<Never>.Continuation)
  }

  /// How long an answer waits for others at most: it is committed within that time.
  private static let interval = Duration.milliseconds(500)
  /// How many answers are written in one transaction at most.
  private static let longestBatch = 500

  private let channel = AsyncChannel<Item>()
  /// Told when somebody waits for what is stored.
  private let hurry = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// Takes an answer in. It is stored even when the task that asked was cancelled meanwhile.
  func put(_ result: CheckResult) async { await send(.answer(result)) }

  /// Returns when everything that was taken in so far is stored, or the task is cancelled because nothing is any more.
  func flush() async {
    let (stored, mark) = AsyncStream.makeStream(of: Never.self)
    await send(.mark(mark))
    hurry.continuation.yield()
    for await _ in stored {}
  }

  /// No answer follows.
  func finish() { channel.finish() }

  /// Stores until `finish`. Throws what the writer throws; then nothing is taken in any more.
  func store(with writer: AnswerWriter) async throws {
    defer { channel.finish() }
    let writer = try await writer.inNewRound()
    let signal = merge(hurry.stream, AsyncTimerSequence(interval: Self.interval, clock: .continuous).map { _ in })
    for await items in channel.chunks(ofCount: Self.longestBatch, or: signal) {
      let answers = items.compactMap { if case .answer(let result) = $0 { result } else { nil } }
      if !answers.isEmpty { try await writer.write(answers) }
      for case .mark(let mark) in items { mark.finish() }
    }
  }

  /// A channel drops what a cancelled task sends, so that another task does.
  private func send(_ item: Item) async { await Task { await channel.send(item) }.value }
}
