import AuditStore
import Reconciliation
import Reporting

/// Verifies a report folder, file by file and control total by control total.
package struct ReportVerification: Sendable {
  package typealias Check = TrailVerification.Check

  package var checks: [Check] = []
  /// False if the folder has no file with a name of a report's files.
  package var isReport = true
  /// SHA-256 of `SHA256SUMS`.
  package var content: String?
  package var runId: String?
  package var command: String?
  /// Hash of the trail entry in `run.json`.
  package var trail: String?

  package init(directory: String) {
    guard let contents = ReportContents(directory: directory), let folder = OpenDirectory(directory) else {
      isReport = ReportContents.isOfReport(directory)
      let problem =
        isReport
        ? "SHA256SUMS is missing, cannot be read, or was edited; put it back, or make the report again"
        : "is not a report folder: it contains no file of a report; name the folder of one"
      checks.append(Check(directory, problem: problem))
      return
    }
    content = contents.digest
    for file in contents.files where file.name != ReportContents.sums && file.name != "run.json" {
      let found = folder.sha256(OpenDirectory.Name(file.name))
      checks.append(Check(file.name, problem: found == file.sha256 ? nil : ReportVerification.difference(found)))
    }
    let listed = Set(contents.files.map(\.name))
    do throws(PublishingFailure) {
      for name in try folder.names() where !listed.contains(name.text) {
        checks.append(Check("\(name.text) (no file of the report: it was added later)"))
      }
    } catch {
      checks.append(Check("other files", problem: error.problem))
    }
    runId = contents.runId
    command = contents.command
    trail = contents.trail
    guard let summary = contents.summary else {
      checks.append(Check("control totals", problem: "summary.json is not the one that was written"))
      return
    }
    checks.append(ReportVerification.control(summary))
  }

  private static func difference(_ found: String?) -> String {
    found == nil ? "is missing, or cannot be read" : "is not as it was written"
  }

  static func control(_ summary: SummaryDocument) -> Check {
    let totals = summary.control
    let odd = totals.filter { $0.left != $0.right }
    if totals.isEmpty { return Check("control totals", problem: "there are none") }
    guard let first = odd.first else { return Check("control totals (\(totals.count), balanced)") }
    return Check("control totals", problem: "\(first.name): \(first.left) is not \(first.right)")
  }
}
