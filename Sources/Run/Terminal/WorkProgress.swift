import Foundation
import Logging
import Reconciliation
import Synchronization

/// Shows the progress of long work: one redrawn line on a terminal, otherwise a log line per minute.
package final class WorkProgress: Sendable {
  private let state = Mutex(ProgressState())
  private let isTerminal: Bool
  private let isQuiet: Bool
  private let logger: Logger

  package init(logger: Logger, isQuiet: Bool) {
    (self.logger, self.isQuiet) = (logger, isQuiet)
    let environment = ProcessInfo.processInfo.environment
    isTerminal = isatty(STDERR_FILENO) == 1 && environment["TERM"] != "dumb"
  }

  package func warn(_ message: String) { logger.warning("\(message)") }

  package func begin(_ label: String, total: Int) {
    state.withLock { $0 = ProgressState(label: label, total: total) }
    if !isTerminal, !isQuiet { logger.info("\(label)", metadata: total > 0 ? ["total": "\(total)"] : [:]) }
  }

  /// Shows since when Apple has not answered; on a terminal despite `isQuiet`, because a silent program seems to hang.
  package func during<Result>(_ label: String, total: Int, _ work: () async throws -> Result) async throws -> Result {
    begin(label, total: total)
    defer { end() }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        while !Task.isCancelled {
          // Redraws the progress once a second.
          try? await Task.sleep(for: .seconds(1))
          self.show { $0.isWaiting(.now) }
        }
      }
      defer { group.cancelAll() }
      return try await work()
    }
  }

  package func advance(by steps: Int = 1) {
    show { state in
      (state.done, state.lastStep) = (state.done + steps, (.now, .now))
      return !isQuiet
    }
  }

  private func show(if condition: (inout ProgressState) -> Bool) {
    let now = ContinuousClock.now
    let interval: Duration = isTerminal ? .milliseconds(100) : .seconds(60)
    let shown: ProgressState? = state.withLock { state in
      guard condition(&state), now - (state.lastShown ?? state.began) >= interval else { return nil }
      state.lastShown = now
      return state
    }
    guard let shown else { return }
    if isTerminal {
      Terminal.writeError("\r\u{1B}[K" + shown.line(now))
    } else if !isQuiet {
      logger.info("\(shown.line(now))")
    }
  }

  package func end() {
    let shown = state.withLock { $0.lastShown != nil }
    if isTerminal, shown { Terminal.writeError("\r\u{1B}[K") }
  }
}

struct ProgressState {
  // After this time a missing answer is shown.
  private static let silence: Duration = .seconds(10)

  var label = ""
  var total = 0
  var done = 0
  var began = ContinuousClock.now
  /// The last step or the beginning, as monotonic time and as wall time for display.
  var lastStep: (ContinuousClock.Instant, wall: Instant) = (.now, .now)
  var lastShown: ContinuousClock.Instant?

  func isWaiting(_ now: ContinuousClock.Instant) -> Bool { now - lastStep.0 >= Self.silence }

  /// A line such as `asking Apple: 197 of 1380, 28/s, 42 s left`.
  func line(_ now: ContinuousClock.Instant) -> String {
    let rate = Double(done) / max(Double((now - began).components.seconds), 1)
    var text = "\(label): \(done)\(total > 0 ? " of \(total)" : "")"
    if isWaiting(now) {
      text += ", waiting for Apple since \(lastStep.wall.text.dropFirst(11).prefix(5)) UTC"
    } else if total > 0 {
      text += ", \(Int(rate.rounded()))/s"
      if rate > 0 { text += ", \(Int((Double(max(total - done, 0)) / rate).rounded())) s left" }
    }
    return text
  }
}
