import Asking
import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings

/// Verifies the trail with everything that it covers, a report folder, or a run with its report.
package struct RunVerification: Sendable {
  package typealias Check = TrailVerification.Check

  private static let application = "night-audit verify"

  package private(set) var directory: String?
  package private(set) var checks: [Check] = []
  private var isReport = true

  /// 1 if there is no such folder, 70 if a check failed.
  package var exitStatus: ExitStatus {
    if first == nil { return .complete }
    return isReport ? .internalError : .nothingThere
  }

  private var first: Check? { checks.first { $0.problem != nil } }

  /// Verifies the whole trail, everything that it covers, and the schema's definitions.
  package init(trailOf settings: Settings) async throws {
    checks = try await settings.withStore(Self.application, .snapshot) { connection in
      try TrailVerification.whole(on: connection).checks
        + [Check("answers about proofs", problem: QueueRebuild.problem(on: connection))]
    }
    checks += try await RunVerification.definitions(settings)
  }

  private static func definitions(_ settings: Settings) async throws -> [Check] {
    let differences = try await settings.withStore(application) { session in
      try await session.withConnection { try SchemaDefinitions().differences($0) }
    }
    if differences.isEmpty { return [Check("tables, functions, triggers, views, owners and rights of the schema")] }
    return differences.map { Check($0.object, problem: $0.description) }
  }

  /// Verifies a report folder, or a link such as `latest`: its files, its totals, and its run.
  package init(directory: String, _ settings: Settings) async throws {
    let path = RunVerification.resolved(directory)
    self.directory = path
    let report = ReportVerification(directory: path)
    checks = report.checks
    isReport = report.isReport
    guard report.content != nil else { return }
    let reportsPath = ReportFolder.absolute(settings.reportDirectory)
    checks += try await settings.withStore(Self.application, .snapshot) { connection in
      let trail = try TrailVerification(entriesOn: connection)
      let reports = try RecordedReport.all(on: connection)
      let owner = reports.first { recorded in
        recorded.isShown && recorded.isInReports
          && recorded.places(in: reportsPath).contains { RunVerification.resolved($0) == path }
      }
      return try trail.checks + RunVerification.origin(report, ownedBy: owner?.runId, trail, connection)
    }
  }

  /// Verifies a recorded run, named as on the command line, and its report.
  package init(run name: String, _ settings: Settings) async throws {
    let run = try await RunHistory.find(name, settings)
    let reportsPath = ReportFolder.absolute(settings.reportDirectory)
    let (recorded, entries, removed, successors) = try await settings.withStore(Self.application, .snapshot) {
      connection in
      let trail = try TrailVerification(entriesOn: connection)
      let checks = trail.checks + [try trail.prove(run: run.runId, on: connection)]
      // Only removals after the run concern its report; earlier ones concern earlier reports in that folder.
      let since = trail.entries[(trail.entries.lastIndex { $0.content.run == run.runId } ?? 0)...]
      let removed = since.flatMap { entry in entry.content.kind == .removed ? entry.content.folders ?? [] : [] }
      let reports = try RecordedReport.all(on: connection)
      let successors = RecordedReport.successors(
        of: run.runId, among: reports, in: reportsPath, by: trail.entries.map(\.content))
      return (checks, trail.entries(ofRun: run.runId), removed, successors)
    }
    checks = recorded
    guard let folder = run.directory else { throw RunsError.unfinished(name, exitStatus: run.exitStatus) }
    var path = ReportFolder.absolute(folder)
    var report = ReportVerification(directory: path)
    let put = RecordedReport(runId: run.runId, directory: path, isNightly: run.nightly, isShown: true)
    if report.content == nil {
      for place in put.places(in: reportsPath).dropFirst() {
        let moved = ReportVerification(directory: place)
        let isKnown = moved.content == run.content || successors.contains(moved.runId ?? "")
        if moved.content != nil, isKnown { (path, report) = (place, moved) }
      }
    }
    switch report.runId {
    case run.runId?:
      directory = path
      checks += report.checks
      let problem = RunVerification.problem(ofContent: report.content, recorded: run.content, entries)
      checks.append(Check("report of \(path)", problem: problem))
    case let other? where successors.contains(other):
      checks.append(Check("report of \(path), which run \(other) has replaced since"))
    case .some where !put.isInReports && report.command == "reconcile" && report.trail == nil:
      checks += report.checks
      checks.append(Check("report of \(path), which a reconcile has replaced since"))
    case let other?:
      checks.append(
        Check("report of \(path)", problem: "names run \(other), and no record shows that this run replaced it"))
    case nil:
      let isRemoved = removed.contains { path.hasSuffix("/" + $0) }
      let why =
        isRemoved
        ? "which was removed after report.retention"
        : run.isGone ? "which a forgotten run had replaced" : "which was never published, or was taken back"
      let isOwed = run.complete != nil && !isRemoved && !run.isGone
      checks.append(isOwed ? Check("report of \(path)", problem: "is missing") : Check("report of \(path), \(why)"))
    }
  }

  private static func origin(
    _ report: ReportVerification, ownedBy owner: String?, _ trail: TrailVerification,
    _ connection: borrowing BlockingConnection
  ) throws -> [Check] {
    guard let runId = report.runId, UUID(uuidString: runId) != nil else {
      return [Check("run", problem: "run.json is missing or names no run")]
    }
    let rows = try connection.execute(
      "SELECT command, as_of, content FROM night_audit.runs WHERE run_id = $1::uuid", [.text(runId)])
    var checks: [Check] = []
    if let named = report.trail {
      let entry = trail.entries.first { $0.hash == named }
      checks.append(
        Check(
          entry.map { "entry \($0.id) of the trail, which run.json names" } ?? "run.json",
          problem: entry == nil ? "names an entry of the trail that this database does not have" : nil))
    }
    let entries = trail.entries(ofRun: runId)
    guard let row = rows.first(where: { _ in true }) else {
      let problem = problem(
        ofUnrecorded: report.command, isOfTrail: report.trail != nil || !entries.isEmpty, owner: owner)
      let note = problem == nil ? ": the database has no record of it, because reconcile records no runs" : ""
      return checks + [Check("run \(runId)\(note)", problem: problem)]
    }
    if let owner, owner != runId {
      let problem = "the folder belongs to run \(owner), which has written the report of this place since"
      checks.append(Check("place of the report", problem: problem))
    }
    var made = "run \(runId) (\(try row.text(0)) as of \(Instant(microseconds: try row.timestamp(1)).text))"
    if entries.contains(where: { $0.kind == .held }) { made += ", which is held" }
    if entries.allSatisfy({ $0.report == nil }) { made += ", which recorded no digest of its report" }
    let problem = problem(ofContent: report.content, recorded: try row.optionalText(2), entries)
    checks.append(Check(made, problem: problem))
    return checks + [try trail.prove(run: runId, on: connection)]
  }

  /// The fault of a report's content; nil for none. The digest that the run recorded first counts.
  static func problem(ofContent content: String?, recorded: String?, _ entries: [TrailEntry.Content]) -> String? {
    if entries.contains(where: { $0.kind == .forgotten }) {
      return "the run was forgotten, so its report is no longer valid"
    }
    let digests = entries.compactMap(\.report)
    guard let made = digests.first else {
      // Runs before the trail existed recorded no digest, nor did first versions for held reports.
      let mayLackDigest = entries.contains { $0.kind == .found || $0.kind == .held }
      return mayLackDigest ? nil : "the run made no report"
    }
    if made != content { return "the run made a report with another content" }
    return recorded == made ? nil : "the run's row names a report with another content"
  }

  /// The fault of a report whose run has no row; nil for a report of `reconcile` outside every run's folder.
  static func problem(ofUnrecorded command: String?, isOfTrail: Bool, owner: String?) -> String? {
    guard command == "reconcile", !isOfTrail else { return "is missing" }
    return owner.map { "is missing; the folder is that of run \($0)" }
  }

  private static func resolved(_ directory: String) -> String {
    URL(fileURLWithPath: ReportFolder.absolute(directory)).resolvingSymlinksInPath().path
  }

  /// A line for each check, or only for those that failed; nil for no line.
  package func text(isQuiet: Bool) -> String? {
    let lines = checks.filter { !isQuiet || $0.problem != nil }.map { check in
      check.problem.map { "PROBLEM  \(check.subject): \($0)" } ?? "ok       \(check.subject)"
    }
    return lines.isEmpty ? nil : lines.joined(separator: "\n")
  }

  package struct Document: Encodable {
    let directory: String?
    let proven: Bool
    let first: String?
    let checks: [Check]
  }

  package var document: Document {
    Document(
      directory: directory, proven: exitStatus == .complete,
      first: first.map { "\($0.subject): \($0.problem ?? "")" }, checks: checks)
  }
}
