import Logging
import Reporting
import Run

/// What people are told of a night that left them no report: that there is none, why, and what to do.
package struct NightNotice {
  package enum Cause {
    /// - directory: where it lies to be looked at.
    case held([HoldCause], directory: String?)
    /// - status: the exit status.
    case failed(problem: String, status: Int32)
  }

  /// The business day of the report that is missing.
  let day: String
  let timeZone: String
  let host: String
  let runId: String
  let cause: Cause

  package init(day: String, timeZone: String, host: String, runId: String, cause: Cause) {
    self.day = day
    self.timeZone = timeZone
    self.host = host
    self.runId = runId
    self.cause = cause
  }

  /// In ASCII.
  var subject: String {
    switch cause {
    case .held: "Night audit \(day): HELD, no report"
    case .failed: "Night audit \(day): FAILED, no report"
    }
  }

  var body: MailBody {
    let title = "App Store night audit \(day) (\(timeZone))"
    switch cause {
    case .held(let causes, let directory):
      let place = directory.map { "What it would report is in \(host):\($0)." }
      return MailBody(
        title: title, tone: .bad, state: "HELD: the night is implausible, and no report was published.",
        reasons: causes.map(\.description),
        closing: [
          place,
          "Nothing of it is recorded as found. Whoever has looked at it releases it by night-audit run --accept.",
        ].compactMap(\.self))
    case .failed(let problem, let status):
      return MailBody(
        title: title, tone: .bad, state: "FAILED: there is no report of this night.", reasons: [problem],
        closing: ["It ended with exit status \(status) on \(host), run \(runId). The last report is still in place."])
    }
  }

  /// Mails it. What cannot be sent is a warning: the night has its own end.
  package func send(_ settings: Settings, logger: Logger, stop: StopSignal) async {
    for target in settings.deliver where target.isMessage {
      let attempts = Attempts(
        target: target, what: "a message", metadata: ["target": "\(target.name)"], logger: logger, stop: stop)
      do {
        let sender = try ReportSender([target], stop: stop)
        let ended = try await attempts.run { () async throws(ReportSender.Failure) in
          try await sender.tell(self, to: target, at: .now)
        }
        if let problem = ended.problem {
          logger.warning(
            "nobody was told that there is no report: \(problem)", metadata: attempts.metadata(ended.count))
        }
      } catch {
        logger.warning("nobody was told that there is no report: \(error)", metadata: attempts.metadata)
      }
    }
  }
}
