import Foundation
import Logging
import Synchronization

/// Says how far long work is: a line that is redrawn on a terminal, log lines once a minute elsewhere.
package final class WorkProgress: Sendable {
  private struct State {
    var label = ""
    var total = 0
    var done = 0
    var began = ContinuousClock.now
    var lastShown: ContinuousClock.Instant?
  }

  private let state = Mutex(State())
  private let isTerminal: Bool
  private let isQuiet: Bool
  private let logger: Logger

  /// - Parameter isQuiet: shows nothing at all.
  package init(logger: Logger, isQuiet: Bool) {
    self.logger = logger
    self.isQuiet = isQuiet
    let environment = ProcessInfo.processInfo.environment
    isTerminal = isatty(STDERR_FILENO) == 1 && environment["TERM"] != "dumb"
  }

  /// Starts a piece of work of so many steps; 0 when nobody knows.
  package func begin(_ label: String, total: Int) {
    state.withLock { $0 = State(label: label, total: total) }
    if !isTerminal, !isQuiet { logger.info("\(label)", metadata: total > 0 ? ["total": "\(total)"] : [:]) }
  }

  /// One or more steps are done.
  package func advance(by steps: Int = 1) {
    if isQuiet { return }
    let now = ContinuousClock.now
    let interval: Duration = isTerminal ? .milliseconds(100) : .seconds(60)
    let shown: State? = state.withLock { state in
      state.done += steps
      guard now - (state.lastShown ?? state.began) >= interval else { return nil }
      state.lastShown = now
      return state
    }
    guard let shown else { return }
    if isTerminal {
      write("\r\u{1B}[K" + line(shown, now))
    } else {
      logger.info("\(line(shown, now))")
    }
  }

  /// The work is over; the terminal's line is cleared.
  package func end() {
    let shown = state.withLock { $0.lastShown != nil }
    if isTerminal, shown, !isQuiet { write("\r\u{1B}[K") }
  }

  private func line(_ state: State, _ now: ContinuousClock.Instant) -> String {
    let seconds = max(Double((now - state.began).components.seconds), 1)
    let rate = Double(state.done) / seconds
    var text = "\(state.label): \(state.done)"
    if state.total > 0 {
      text += " of \(state.total), \(Int(rate.rounded()))/s"
      if rate > 0 { text += ", \(Int((Double(max(state.total - state.done, 0)) / rate).rounded())) s left" }
    }
    return text
  }

  private func write(_ text: String) { Terminal.writeError(text) }
}
