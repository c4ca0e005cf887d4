import Run

/// Runs `work`, which asks Apple for pages, and cancels it soon after the time for it is over.
///
/// - Parameter isOver: whether nothing more is to be asked for.
func withTimeLimit(
  _ isOver: @escaping @Sendable () -> Bool, stop: StopSignal, _ work: @escaping @Sendable () async throws -> Void
) async throws {
  // How long pages that are on their way are worth waiting for: after the deadline, and after a signal.
  let (afterDeadline, afterSignal) = (Duration.seconds(10), Duration.milliseconds(2_500))
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask(operation: work)
    group.addTask {
      // Sleeps in short steps to notice the signal or the deadline; then gives the work time to end.
      while !isOver() { try await Task.sleep(for: .milliseconds(250)) }
      try await Task.sleep(for: stop.stopped == nil ? afterDeadline : afterSignal)
    }
    // Cancelling ends whichever is left: the wait, or pages that Apple does not deliver.
    _ = try await group.next()
    group.cancelAll()
  }
}
