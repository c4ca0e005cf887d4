import AuditStore
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings

/// `runs forget`: takes back a run that had a wrong as-of, or read a wrong view.
package enum RunUndo {
  package struct Outcome: Sendable {
    package struct Document: Encodable, Sendable {
      let runId: String
      let findings: ForgottenRun.Summary
      let latest: String?
    }

    package let document: Document
    package let text: String

    fileprivate init(_ run: PastRun, _ summary: ForgottenRun.Summary, latest: String?) {
      document = Document(runId: run.runId, findings: summary, latest: latest)
      let remedy = UncoveredDays.remedy(summary.uncovered).map { "\nBeware: \($0)" }
      text = """
        Forgot run \(run.runId) as of \(run.asOf.text).
        Findings: \(summary.reopened) open again, \(summary.removed) removed, \(summary.closedAgain) closed again.
        latest points to \(latest ?? "nothing").\(remedy ?? "")
        """
    }
  }

  /// Takes a run back under the run lock.
  package static func forget(_ name: String, _ settings: Settings, logger: Logger) async throws -> Outcome {
    try await settings.withStore("night-audit runs forget") { session in
      _ = try await RunLock.acquire(session)
      let waiting = try await PublicationRecovery(logger: logger).finish(session)
      let run = try await RunHistory.find(name, settings)
      if run.isForgotten { throw RunsError.forgotten(name) }
      let folders = ReportDirectory(
        directory: ReportFolder.absolute(settings.reportDirectory),
        known: try await session.withConnection { try KnownRuns.read(on: $0) }, logger: logger)
      folders.clearLeftovers(except: waiting)
      let summary = try await session.transaction(.readWrite) { connection in
        if let newest = try ForgottenRun.newest(after: run.runId, on: connection) {
          throw RunsError.followed(name, by: newest)
        }
        let summary = try ForgottenRun.forget(runId: run.runId, on: connection)
        // Folders last and before the commit: an interrupted command can be repeated, and removes nothing too early.
        if run.nightly { try folders.forget(night: run.period.until, ofRun: run.runId, madeAsOf: run.asOf) }
        if let directory = summary.directory {
          try folders.forget(apart: directory, ofRun: run.runId, madeAsOf: run.asOf)
        }
        return summary
      }
      return Outcome(run, summary, latest: folders.latest)
    }
  }
}
