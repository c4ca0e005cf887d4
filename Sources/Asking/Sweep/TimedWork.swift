import Run

/// Runs `work`, which requests pages from Apple, and cancels it soon after `isOver` becomes true.
func withTimeLimit(
  _ isOver: @escaping @Sendable () -> Bool, stop: StopSignal, _ work: @escaping @Sendable () async throws -> Void
) async throws {
  let (afterDeadline, afterSignal) = (Duration.seconds(10), Duration.milliseconds(2_500))
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask(operation: work)
    group.addTask {
      await pause(until: nil, unless: isOver)
      // Gives the work time to end.
      try await Task.sleep(for: stop.stopped == nil ? afterDeadline : afterSignal)
    }
    // Cancels the remaining task: the wait, or requests that Apple does not answer.
    _ = try await group.next()
    group.cancelAll()
  }
}

/// Sleeps until `end`, or without one until `isOver` or the task is cancelled.
///
/// In short steps, so that a signal or the deadline ends a long pause.
func pause(until end: ContinuousClock.Instant?, unless isOver: () -> Bool) async {
  let step = Duration.milliseconds(250)
  while !isOver(), !Task.isCancelled, end.map({ ContinuousClock.now < $0 }) ?? true {
    try? await Task.sleep(for: end.map { min($0 - .now, step) } ?? step)
  }
}
