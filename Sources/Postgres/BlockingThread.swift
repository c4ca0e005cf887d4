import Dispatch

/// Opens the connections of a `withBlockingThread` body. Cancellation of the waiting task cancels the statements of all
/// of them.
public struct BlockingScope: Sendable {
  let interruption: Interruption

  /// True if the task was cancelled; for loops that compute between statements.
  public var isCancelled: Bool { interruption.isCancelled }

  /// As `BlockingConnection.connect`; also throws `.cancelled`.
  public func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile = .store,
    notices: PostgresNoticeHandler? = nil
  ) throws(PostgresError) -> BlockingConnection {
    try .connect(
      conninfo, applicationName: applicationName, profile: profile, interruption: interruption, notices: notices)
  }
}

/// Runs `body` on a thread of its own, where it may block, and waits for it without blocking.
///
/// It is for work that reads several connections at once, such as the merge of ordered streams.
public func withBlockingThread<R: Sendable>(
  _ body: @Sendable (BlockingScope) throws -> R
) async throws -> R {
  let scope = BlockingScope(interruption: Interruption())
  return try await withTaskCancellationHandler {
    try await BlockingThread().run { try body(scope) }
  } onCancel: {
    scope.interruption.cancel()
  }
}

// An actor moves the calling task itself to the thread, which keeps its task-local values.
private actor BlockingThread {
  private let executor = BlockingExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

  func run<R: Sendable>(_ body: () throws -> R) rethrows -> R { try body() }
}

/// A serial executor on a private queue, whose jobs may block because the queue has a thread outside the cooperative
/// pool. `DispatchSerialQueue` would do the same, but does not exist on Linux.
final class BlockingExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "night-audit.postgres")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
