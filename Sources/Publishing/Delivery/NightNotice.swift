import AuditStore
import Logging
import Reconciliation
import Reporting
import Run
import Settings

/// A mail about a night without a report: its end, the reason, and the action.
package struct NightNotice {
  package enum Cause {
    case held([HoldCause], directory: String?)
    /// `published` is the folder of the night's report, if it had appeared before the failure.
    case failed(problem: String, status: Int32, published: String?)
  }

  let record: RunRecord
  let cause: Cause

  package init(_ record: RunRecord, _ cause: Cause) { (self.record, self.cause) = (record, cause) }

  private var day: String { record.period.until }

  var subject: String {
    switch cause {
    case .held: "Night audit \(day): HELD, nothing is published"
    case .failed: "Night audit \(day): FAILED"
    }
  }

  var body: MailBody {
    let title = "App Store night audit \(day) (\(record.timeZone))"
    switch cause {
    case .held(let causes, let directory):
      let place = directory.map { "The held report is in \(record.host):\($0)." }
      return MailBody(
        title: title, tone: .bad, state: "HELD: the night is implausible and is not published.",
        reasons: causes.map(\.description),
        closing: [
          place,
          "Its findings are not recorded. After a check, release it: night-audit run \(record.period.options) --accept",
        ].compactMap(\.self))
    case .failed(let problem, let status, let published):
      let report =
        published.map { "The report of this day is published in \(record.host):\($0). Only a later step failed." }
        ?? "Reports are published whole or not at all. Without a report of this day, the last report is in place."
      return MailBody(
        title: title, tone: .bad, state: "FAILED: the night ended with an error.", reasons: [problem],
        closing: [
          "It ended with exit status \(status) on \(record.host), run \(record.runId).",
          report,
        ])
    }
  }

  /// Mails the notice. A failure is logged, because it must not change the night's exit status.
  package func send(_ settings: Settings, logger: Logger, stop: StopSignal) async {
    for target in settings.deliver where target.isSentToPeople {
      let attempts = Attempts(
        target: target, what: "a message", metadata: ["target": "\(target.name)"], logger: logger, stop: stop)
      do {
        let sender = try ReportSender([target], stop: stop)
        let ended = try await attempts.run { () async throws(ReportSender.Failure) in
          try await sender.send(self, to: target, at: .now)
        }
        if let problem = ended.problem {
          logger.warning(
            "the notice of the night's end was not sent: \(problem)", metadata: attempts.metadata(ended.count))
        }
      } catch {
        logger.warning("the notice of the night's end was not sent: \(error)", metadata: attempts.metadata)
      }
    }
  }
}
