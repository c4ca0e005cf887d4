import AppStore
import Logging
import Run

/// Tries to reach one place as often as its configuration says.
package struct Attempts {
  let target: DispatchTarget
  /// What is to get there, in words.
  let what: String
  let metadata: Logger.Metadata
  let logger: Logger
  let stop: StopSignal
  /// The wait after the given failure.
  var pause = Attempts.backoff

  /// A place that has just failed needs a moment, and every time a longer one.
  package static let backoff: @Sendable (_ attempt: Int) async throws -> Void = { attempt in
    let backoff = Backoff(base: .seconds(2), cap: .seconds(60))
    try await Task.sleep(for: backoff.delay(attempt: attempt, random: Double.random(in: 0..<1)))
  }

  /// - Returns: how often it was tried, and the last problem; nil when it has arrived.
  func run(_ send: () async throws(ReportSender.Failure) -> Void) async throws -> (count: Int, problem: String?) {
    var attempt = 1
    while true {
      do throws(ReportSender.Failure) {
        try await send()
        return (attempt, nil)
      } catch {
        let isLast = attempt >= target.attempts || !error.isTransient || stop.stopped != nil
        if isLast { return (attempt, error.description) }
        logger.warning("\(what) could not be sent: \(error)", metadata: metadata(attempt))
        try await pause(attempt)
        attempt += 1
      }
    }
  }

  func metadata(_ attempt: Int) -> Logger.Metadata {
    metadata.merging(["attempt": "\(attempt) of \(target.attempts)"]) { $1 }
  }
}
