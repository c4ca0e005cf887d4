import Dispatch

/// Opens the connections of a `withBlockingThread` body. Their statements are cancelled with the waiting task.
public struct BlockingScope: Sendable {
  let interruption: Interruption

  public var isCancelled: Bool { interruption.isCancelled }

  public func connect(
    _ conninfo: String, applicationName: String, profile: SessionProfile = .store, notices: PostgresNoticeHandler? = nil
  ) throws(PostgresError) -> BlockingConnection {
    try .connect(
      conninfo, applicationName: applicationName, profile: profile, interruption: interruption, notices: notices)
  }
}

/// Runs `body` on a thread of its own, where it may block, such as for a merge of several streams.
public func withBlockingThread<R: Sendable>(_ body: @Sendable (BlockingScope) throws -> R) async throws -> R {
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

/// Its jobs may block, because its queue has a thread outside the cooperative pool.
final class BlockingExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "night-audit.postgres")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
