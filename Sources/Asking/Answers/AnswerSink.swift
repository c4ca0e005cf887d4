import AsyncAlgorithms

/// Collects answers, and stores those of half a second in one transaction. A task that adds an answer waits while a
/// batch is written, so that Apple is not asked faster than answers are stored.
struct AnswerSink: Sendable {
  private enum Item: Sendable {
    case answer(CheckResult)
    case mark(AsyncStream<Never>.Continuation)
  }

  private static let interval = Duration.milliseconds(500)
  private static let longestBatch = 500

  private let channel = AsyncChannel<Item>()
  private let flushRequests = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

  /// Adds an answer. It is stored even if the asking task was cancelled meanwhile.
  func put(_ result: CheckResult) async { await send(.answer(result)) }

  func flush() async {
    let (stored, mark) = AsyncStream.makeStream(of: Never.self)
    await send(.mark(mark))
    flushRequests.continuation.yield()
    for await _ in stored {}
  }

  func finish() { channel.finish() }

  /// Stores answers until `finish`. After an error of the writer, no more answers are accepted.
  func store(with writer: AnswerWriter) async throws {
    defer { channel.finish() }
    let writer = try await writer.startingNewRound()
    let signal = merge(
      flushRequests.stream, AsyncTimerSequence(interval: Self.interval, clock: .continuous).map { _ in })
    for await items in channel.chunks(ofCount: Self.longestBatch, or: signal) {
      let answers = items.compactMap { if case .answer(let result) = $0 { result } else { nil } }
      if !answers.isEmpty { try await writer.write(answers) }
      for case .mark(let mark) in items { mark.finish() }
    }
  }

  /// Sends in a new task, because a channel drops values that a cancelled task sends.
  private func send(_ item: Item) async { await Task { await channel.send(item) }.value }
}
