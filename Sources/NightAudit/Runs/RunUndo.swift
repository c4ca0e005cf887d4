import AuditStore
import Foundation
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings

/// `runs forget`: takes back a run that had a wrong as-of.
package struct RunUndo: Sendable {
  private let settings: Settings
  private let logger: Logger

  package init(settings: Settings, logger: Logger) {
    self.settings = settings
    self.logger = logger
  }

  package struct Outcome: Sendable {
    let run: PastRun
    let summary: ForgottenRun.Summary
    let latest: String?

    package var text: String {
      let lines = [
        "Forgot run \(run.runId) as of \(run.asOf.text).",
        "Findings: \(summary.reopened) open again, \(summary.removed) removed, \(summary.closedAgain) closed again.",
        "latest points to \(latest ?? "nothing").",
      ]
      let remedy = UncoveredDays.remedy(summary.uncovered).map { "Beware: \($0)" }
      return (lines + [remedy].compactMap { $0 }).joined(separator: "\n")
    }

    struct Document: Encodable {
      let runId: String
      let findings: ForgottenRun.Summary
      let latest: String?
    }

    package var json: String {
      get throws { try MachineText.json(Document(runId: run.runId, findings: summary, latest: latest)) }
    }
  }

  /// Takes a run back under the run lock.
  package func forget(_ name: String) async throws -> Outcome {
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit runs forget")
    do {
      try await session.withConnection { try Migrator.requireCurrent($0) }
      _ = try await RunLock.acquire(session)
      let waiting = try await PublicationSettlement(logger: logger).settle(session)
      let run = try await RunHistory(settings: settings).find(name)
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
        if run.isNightly { try folders.forget(night: run.until, ofRun: run.runId, madeAsOf: run.asOf) }
        if let directory = summary.directory {
          try folders.forget(apart: directory, ofRun: run.runId, madeAsOf: run.asOf)
        }
        return summary
      }
      await session.close()
      return Outcome(run: run, summary: summary, latest: folders.latest)
    } catch {
      await session.close()
      throw error
    }
  }
}
