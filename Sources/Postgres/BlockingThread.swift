import Dispatch

/// Opens the connections of a `withBlockingThread` body. Cancelling the task that waits for the body cancels the
/// statements of all of them, now and later.
public struct BlockingScope: Sendable {
  let interruption: Interruption

  /// Whether the task was cancelled; for loops that compute between statements.
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
/// For work that reads several connections at once, such as the merge of ordered streams. Throws what `body` throws.
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

/// Takes the calling task itself to another thread, so that its task-local values are there too.
private actor BlockingThread {
  private let executor = BlockingExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

  func run<R: Sendable>(_ body: () throws -> R) rethrows -> R { try body() }
}

/// Runs an actor's jobs one after the other on a private queue, so that they may block: such a queue gets a thread of
/// its own beside the pool that all tasks share. (`DispatchSerialQueue` would do, but does not exist on Linux.)
final class BlockingExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "night-audit.postgres")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
