import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run

/// Proves a report folder: its files, its totals, and the run that made it.
package struct RunVerification: Sendable {
  package private(set) var directory: String
  package private(set) var checks: [ReportVerification.Check]

  /// There is no such folder or run, or what was found is not what was written.
  package var exitStatus: ExitStatus {
    if checks.allSatisfy({ $0.problem == nil }) { return .complete }
    return isReport ? .internalError : .nothingThere
  }

  private let isReport: Bool

  /// - Parameter name: a run as `runs` names it.
  package static func of(run name: String, _ settings: Settings) async throws -> RunVerification {
    let run = try await RunHistory(settings: settings).find(name)
    guard let directory = run.directory else { throw RunsError.unfinished(name, exitStatus: run.exitStatus) }
    return try await RunVerification(directory: directory, settings)
  }

  package init(directory: String, _ settings: Settings) async throws {
    self.directory = ReportFolder.absolute(directory)
    let report = ReportVerification(directory: self.directory)
    checks = report.checks
    isReport = report.content != nil
    guard let content = report.content else { return }
    checks.append(try await RunVerification.origin(content, report.runId, settings))
  }

  /// Whether the database knows of a run with this very content.
  private static func origin(
    _ content: String, _ runId: String?, _ settings: Settings
  ) async throws -> ReportVerification.Check {
    guard let runId, UUID(uuidString: runId) != nil else {
      return ReportVerification.Check("run", problem: "run.json is missing or names no run")
    }
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit verify")
    defer { Task { await session.close() } }
    try await session.withConnection { try Migrator.requireCurrent($0) }
    let rows = try await session.execute(
      "SELECT content, command, as_of FROM night_audit.runs WHERE run_id = $1::uuid", [.text(runId)])
    for row in rows {
      let made = "run \(runId) (\(try row.text(1)) as of \(Instant(microseconds: try row.timestamp(2)).text))"
      switch try row.optionalText(0) {
      case content?: return ReportVerification.Check(made)
      case .some: return ReportVerification.Check(made, problem: "has made a report of another content")
      case nil: return ReportVerification.Check("\(made), which has kept no digest of its report")
      }
    }
    return ReportVerification.Check("run \(runId): the database has no record of it, as of every reconcile")
  }

  package var text: String {
    checks.map { check in
      check.problem.map { "PROBLEM  \(check.subject): \($0)" } ?? "ok       \(check.subject)"
    }.joined(separator: "\n")
  }

  package var json: String {
    get throws {
      struct Document: Encodable {
        let directory: String
        let proven: Bool
        let checks: [ReportVerification.Check]
      }
      return try MachineText.json(
        Document(directory: directory, proven: exitStatus == .complete, checks: checks))
    }
  }
}
