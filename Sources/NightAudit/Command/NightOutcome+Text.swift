import Auditing
import Foundation
import Publishing
import Reconciliation
import Reporting
import Run

extension NightOutcome {
  /// The result of a night for a terminal and a ping. Each text is in one line, because IDs in it come from customers.
  package var table: String {
    let summary = self.summary
    var lines = ["Night audit of \(summary.period.days) (\(summary.timeZone))"]
    lines.append(summary.stateLine)
    if let text = summary.asOfText { lines.append("As of \(asOf.text). \(text)") }
    lines += summary.incompleteReasons.map { "  - \($0)" }
    switch (self.held.isEmpty, isRehearsal) {
    case (true, false): break
    case (true, true): lines.append("With the stored answers, the night would not be held.")
    case (false, false):
      lines.append(
        "HELD: the night is not published, sent or recorded. The same command with --accept \(summary.period.options) "
          + "releases it.")
    case (false, true): lines.append("The night WOULD BE HELD: it would not be published, sent or recorded.")
    }
    lines += self.held.map { "  - \($0)" }
    lines.append("")
    lines.append("Orders read: \(grouped(self.totals.ordersRead))")
    for disposition in Disposition.allCases {
      let orders = self.totals.ordersByDisposition[disposition.index]
      if orders == 0 { continue }
      let money = self.totals.amountByDisposition[disposition.index].words
      lines.append(row(disposition.title, orders, money.joined(separator: " · ")))
    }
    lines.append("")
    let findings = summary.findings
    lines.append(
      "Findings: \(grouped(findings.opening)) open before, \(grouped(findings.new)) new, \(grouped(findings.closed)) closed, "
        + "\(grouped(findings.closing)) open now")
    for kind in findings.openKinds {
      let count = findings.byKind[kind]?.findings ?? 0
      lines.append(row(kind.title, count, findings.severityText(of: kind)))
    }
    if findings.closing > 0 {
      lines.append("Amount at risk: \(findings.open.words)")
      for bucket in findings.ageing.buckets where findings.ageing[bucket].findings > 0 {
        let total = findings.ageing[bucket]
        lines.append(row(bucket.title, total.findings, total.words))
      }
    }
    if !summary.changes.lines.isEmpty {
      lines.append("")
      lines.append("What changed since \(summary.changes.baseNightText)")
      lines += summary.changes.lines.map { "  \($0)" }
      lines.append("")
    }
    lines += summary.unusual.map(\.words) + summary.uncheckedTexts + summary.uncheckedOrderTexts
    lines.append("Control totals: balanced")
    if let directory = self.directory { lines.append("Report: \(directory)") }
    lines += self.kept.map { file in
      file.was == file.now
        ? "Kept beside the report: \(file.now)" : "Kept, because it was edited: \(file.was), now \(file.now)"
    }
    lines += dispatches.map { dispatch in
      let folder = (dispatch.directory as NSString).lastPathComponent
      return dispatch.problem.map { "NOT SENT to \(dispatch.target): \(folder): \($0)" }
        ?? "Sent to \(dispatch.target): \(folder)"
    }
    return lines.map(\.inOneLine).joined(separator: "\n")
  }

  /// The text of `--quiet`: nil for a complete night, else its state, reasons and counts of findings.
  package var brief: String? {
    let summary = self.summary
    let isQuiet = self.exitStatus == .complete || self.exitStatus == .criticalFindings
    if summary.isComplete, self.held.isEmpty, isQuiet { return nil }
    let release = "HELD; check the report, then release it by the same command with --accept \(summary.period.options)"
    let held = isRehearsal ? "WOULD BE HELD" : release
    let state = self.held.isEmpty ? summary.stateLabel : held
    var lines = ["Night audit of \(summary.period.days): \(state)"]
    lines += self.held.map { "  - \($0)" } + summary.incompleteReasons.map { "  - \($0)" }
    let new = summary.findings.new
    lines.append(
      "  \(counted(new, "finding")) \(new == 1 ? "is" : "are") new, \(grouped(summary.findings.closing)) open.")
    if let directory = self.directory { lines.append("  Report: \(directory)") }
    return lines.map(\.inOneLine).joined(separator: "\n")
  }

  private func row(_ title: String, _ count: Int, _ text: String) -> String {
    let number = grouped(count)
    let blanks = max(1, 32 - title.count) + max(0, 9 - number.count)
    return "  \(title)\(String(repeating: " ", count: blanks))\(number)  \(text)"
  }
}
