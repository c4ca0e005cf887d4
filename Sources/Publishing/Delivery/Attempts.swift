import AppStore
import Logging
import Run
import Settings

package struct Attempts {
  let target: DispatchTarget
  let what: String
  let metadata: Logger.Metadata
  let logger: Logger
  let stop: StopSignal
  var pause = Attempts.backoff

  /// The default wait: exponential backoff with jitter, from 2 s to at most 60 s.
  package static let backoff: @Sendable (_ attempt: Int) async throws -> Void = { attempt in
    try await Task.sleep(for: Backoff(base: .seconds(2), cap: .seconds(60)).delay(attempt: attempt))
  }

  /// Returns the number of attempts, and the last problem; nil after success.
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
