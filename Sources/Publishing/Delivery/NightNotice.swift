import Logging
import Reporting
import Run

/// A mail about a night without a report: its end, the reason, and the action.
package struct NightNotice {
  package enum Cause {
    case held([HoldCause], directory: String?)
    case failed(problem: String, status: Int32)
  }

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

  var subject: String {
    switch cause {
    case .held: "Night audit \(day): HELD, nothing is published"
    case .failed: "Night audit \(day): FAILED"
    }
  }

  var body: MailBody {
    let title = "App Store night audit \(day) (\(timeZone))"
    switch cause {
    case .held(let causes, let directory):
      let place = directory.map { "What it would report is in \(host):\($0)." }
      return MailBody(
        title: title, tone: .bad, state: "HELD: the night is implausible, and nothing of it is published.",
        reasons: causes.map(\.description),
        closing: [
          place,
          "Nothing of it is recorded as found. Whoever has looked at it releases it by night-audit run --accept.",
        ].compactMap(\.self))
    case .failed(let problem, let status):
      return MailBody(
        title: title, tone: .bad, state: "FAILED: the night did not come to its end.", reasons: [problem],
        closing: [
          "It ended with exit status \(status) on \(host), run \(runId).",
          "Reports appear whole or not at all: where there is one of this day it is right, else the last one is in place.",
        ])
    }
  }

  /// Mails the notice. A failure is logged, because it must not change the night's exit status.
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
            "nobody was told how the night ended: \(problem)", metadata: attempts.metadata(ended.count))
        }
      } catch {
        logger.warning("nobody was told how the night ended: \(error)", metadata: attempts.metadata)
      }
    }
  }
}
