import Run

/// Runs `work`, which requests pages from Apple, and cancels it soon after `isOver` becomes true.
func withTimeLimit(
  _ isOver: @escaping @Sendable () -> Bool, stop: StopSignal, _ work: @escaping @Sendable () async throws -> Void
) async throws {
  let (afterDeadline, afterSignal) = (Duration.seconds(10), Duration.milliseconds(2_500))
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask(operation: work)
    group.addTask {
      // Sleeps in short steps to notice the signal or the deadline; then gives the work time to end.
      while !isOver() { try await Task.sleep(for: .milliseconds(250)) }
      try await Task.sleep(for: stop.stopped == nil ? afterDeadline : afterSignal)
    }
    // Cancels the remaining task: the wait, or requests that Apple does not answer.
    _ = try await group.next()
    group.cancelAll()
  }
}
