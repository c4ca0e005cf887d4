import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run

/// Proves what was written: the trail and all that it covers, a report folder, or a run and its report.
package struct RunVerification: Sendable {
  package typealias Check = ReportVerification.Check

  /// The report folder that was looked at; nil when none was.
  package private(set) var directory: String?
  package private(set) var checks: [Check] = []
  private var isReport = true

  /// There is no such folder, or what was found is not what was written.
  package var exitStatus: ExitStatus {
    if first == nil { return .complete }
    return isReport ? .internalError : .nothingThere
  }

  /// The first thing that does not fit.
  private var first: Check? { checks.first { $0.problem != nil } }

  /// The whole trail, and everything that it covers.
  package init(trailOf settings: Settings) async throws {
    checks = try await RunVerification.looking(settings) { connection in
      try TrailVerification.whole(on: connection).checks.map(Check.init)
    }
  }

  /// A report folder, or a link to one such as `latest`: its files, its totals, and the run that made it.
  package init(directory: String, _ settings: Settings) async throws {
    let path = RunVerification.resolved(directory)
    self.directory = path
    let report = ReportVerification(directory: path)
    checks = report.checks
    isReport = report.content != nil
    guard report.content != nil else { return }
    let shelf = ReportFolder.absolute(settings.reportDirectory)
    checks += try await RunVerification.looking(settings) { connection in
      let trail = try TrailVerification(entriesOn: connection)
      let reports = try RecordedReport.all(on: connection)
      let owner = reports.first { recorded in
        recorded.isShown && recorded.isInReports
          && recorded.places(in: shelf).contains { RunVerification.resolved($0) == path }
      }
      return try trail.checks.map(Check.init)
        + RunVerification.origin(report, ownedBy: owner?.runId, trail, connection)
    }
  }

  /// A run as it was recorded, and its report.
  ///
  /// - Parameter name: a run as `runs` names it.
  package init(run name: String, _ settings: Settings) async throws {
    let run = try await RunHistory(settings: settings).find(name)
    let shelf = ReportFolder.absolute(settings.reportDirectory)
    let (recorded, newest, removed, successors) = try await RunVerification.looking(settings) { connection in
      let trail = try TrailVerification(entriesOn: connection)
      let checks = (trail.checks + [try trail.prove(run: run.runId, on: connection)]).map(Check.init)
      // What was removed before it was made was an earlier report.
      let since = trail.entries.drop { $0.content.run != run.runId }
      let removed = since.flatMap { entry in entry.content.kind == .removed ? entry.content.folders ?? [] : [] }
      let reports = try RecordedReport.all(on: connection)
      let successors = RecordedReport.successors(
        of: run.runId, among: reports, in: shelf, by: trail.entries.map(\.content))
      return (checks, trail.newest(ofRun: run.runId)?.content, removed, successors)
    }
    checks = recorded
    guard let folder = run.directory else { throw RunsError.unfinished(name, exitStatus: run.exitStatus) }
    var path = ReportFolder.absolute(folder)
    var report = ReportVerification(directory: path)
    let put = RecordedReport(runId: run.runId, directory: path, isNightly: run.isNightly, isShown: true)
    if report.content == nil {
      for place in put.places(in: shelf).dropFirst() {
        let moved = ReportVerification(directory: place)
        let isKnown = moved.content == newest?.report || successors.contains(moved.runId ?? "")
        if moved.content != nil, isKnown { (path, report) = (place, moved) }
      }
    }
    switch report.runId {
    case run.runId?:
      directory = path
      checks += report.checks
      checks.append(
        Check("report of \(path)", problem: RunVerification.problem(ofContent: report.content, madeBy: newest)))
    case let other? where successors.contains(other):
      checks.append(Check("report of \(path), which run \(other) has replaced since"))
    case .some where !put.isInReports && report.command == "reconcile" && report.trail == nil:
      checks += report.checks
      checks.append(Check("report of \(path), in whose place a reconcile has put its own"))
    case let other?:
      checks.append(
        Check("report of \(path)", problem: "names run \(other), of which nobody knows that it has replaced it since"))
    case nil:
      let isRemoved = removed.contains { path.hasSuffix("/" + $0) }
      let why =
        isRemoved
        ? "which had had its time and was removed"
        : run.isGone ? "which a run had replaced that was forgotten" : "which was never published, or was taken back"
      let isOwed = run.isComplete != nil && !isRemoved && !run.isGone
      checks.append(
        isOwed ? Check("report of \(path)", problem: "is missing") : Check("report of \(path), \(why)"))
    }
  }

  private static func looking<Result: Sendable>(
    _ settings: Settings, _ body: @escaping @Sendable (borrowing BlockingConnection) throws -> Result
  ) async throws -> Result {
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit verify")
    do {
      let result = try await session.transaction(.snapshot) { connection in
        try Migrator.requireCurrent(connection)
        return try body(connection)
      }
      await session.close()
      return result
    } catch {
      await session.close()
      throw error
    }
  }

  /// Whether the database knows of a run with this very content, and the report of this very trail.
  private static func origin(
    _ report: ReportVerification, ownedBy owner: String?, _ trail: TrailVerification,
    _ connection: borrowing BlockingConnection
  ) throws -> [Check] {
    guard let runId = report.runId, UUID(uuidString: runId) != nil else {
      return [Check("run", problem: "run.json is missing or names no run")]
    }
    let rows = try connection.execute(
      "SELECT command, as_of FROM night_audit.runs WHERE run_id = $1::uuid", [.text(runId)])
    var checks: [Check] = []
    if let named = report.trail {
      let entry = trail.entries.first { $0.hash == named }
      checks.append(
        Check(
          entry.map { "entry \($0.id) of the trail, which run.json names" } ?? "run.json",
          problem: entry == nil ? "the trail that the report was made with had an entry that this one has not" : nil))
    }
    let newest = trail.newest(ofRun: runId)?.content
    guard let row = rows.first(where: { _ in true }) else {
      let problem = problem(
        ofUnrecorded: report.command, isOfTrail: report.trail != nil || newest != nil, owner: owner)
      let said = problem == nil ? ": the database has no record of it, as of every reconcile" : ""
      return checks + [Check("run \(runId)\(said)", problem: problem)]
    }
    if let owner, owner != runId {
      let problem = "it is another run's, and of this place run \(owner) has made the report since"
      checks.append(Check("place of the report", problem: problem))
    }
    var made = "run \(runId) (\(try row.text(0)) as of \(Instant(microseconds: try row.timestamp(1)).text))"
    if newest?.kind == .held { made += ", which is held" }
    if newest?.report == nil { made += ", which has kept no digest of its report" }
    checks.append(Check(made, problem: problem(ofContent: report.content, madeBy: newest)))
    return checks + [Check(try trail.prove(run: runId, on: connection))]
  }

  /// What is wrong with the content of a report; nil where nothing is.
  ///
  /// - Parameter newest: the entry that tells last of the run that the report names.
  static func problem(ofContent content: String?, madeBy newest: TrailEntry.Content?) -> String? {
    switch (newest?.report, newest?.kind) {
    case (_, .forgotten): "the run was forgotten, and its report is none any more"
    case (let made?, _): made == content ? nil : "the run has made a report of another content"
    // No digest was kept before there was a trail, nor of what the first versions held.
    case (nil, .found), (nil, .held): nil
    case (nil, _): "the run has made no report"
    }
  }

  /// What is wrong with a report whose run is in no row; nil where nothing is. What `reconcile` makes is of no run, and
  /// lies in no run's folder.
  ///
  /// - Parameters:
  ///   - command: the one that `run.json` names.
  ///   - isOfTrail: whether the report names an entry of the trail, or one names its run.
  ///   - owner: the run that has put its report into this folder.
  static func problem(ofUnrecorded command: String?, isOfTrail: Bool, owner: String?) -> String? {
    guard command == "reconcile", !isOfTrail else { return "is missing" }
    return owner.map { "is missing; the folder is that of run \($0)" }
  }

  /// A directory by the way without links.
  private static func resolved(_ directory: String) -> String {
    URL(fileURLWithPath: ReportFolder.absolute(directory)).resolvingSymlinksInPath().path
  }

  package var text: String {
    checks.map { check in
      check.problem.map { "PROBLEM  \(check.subject): \($0)" } ?? "ok       \(check.subject)"
    }.joined(separator: "\n")
  }

  package var json: String {
    get throws {
      struct Document: Encodable {
        let directory: String?
        let proven: Bool
        /// The first thing that does not fit.
        let first: String?
        let checks: [Check]
      }
      return try MachineText.json(
        Document(
          directory: directory, proven: exitStatus == .complete,
          first: first.map { "\($0.subject): \($0.problem ?? "")" }, checks: checks))
    }
  }
}

extension ReportVerification.Check {
  fileprivate init(_ check: TrailVerification.Check) { self.init(check.subject, problem: check.problem) }
}
