import Reconciliation
import Reporting
import Run

extension [PastRun] {
  /// The runs as a table, newest first, with the reasons of incomplete runs below.
  package func table(width: Int?) -> String {
    if isEmpty { return "No run yet." }
    var table = TextTable([
      .left("run"), .left("command"), .left("as of"), .left("days"), .left("report"), .right("opening"), .right("new"),
      .right("closed"), .right("closing"), .right("exit"),
    ])
    for run in self {
      let counts = run.findings.map { [$0.opening, $0.new, $0.closed, $0.closing].map { grouped(Int($0)) } }
      table.add(
        [String(run.runId.prefix(8)), run.command, run.asOf.text, run.period.text, run.state]
          + (counts ?? ["", "", "", ""]) + [run.exitStatus.map { "\($0)" } ?? ""])
    }
    var lines = [table.text(width: width)]
    for run in self where run.complete == false {
      lines += run.incompleteReasons.map { "\(run.runId.prefix(8)) is incomplete: \($0)" }
    }
    for run in self { lines += run.signOffs.map { "\(run.runId.prefix(8)) is signed: \($0)" } }
    return lines.joined(separator: "\n")
  }
}

extension RunDifference {
  private static let shownFindings = 200

  package var text: String {
    var lines = [line("From", first), line("To", second)]
    if document.configurationChanged {
      lines.append(
        "The configuration changed: \(first.configuration.prefix(12)) -> \(second.configuration.prefix(12)).")
    }
    if document.timeZoneChanged {
      lines.append("The time zone changed: \(first.period.timeZone) -> \(second.period.timeZone).")
    }
    return (lines + answers + totals + adjustments + findings).joined(separator: "\n")
  }

  private func line(_ label: String, _ run: PastRun) -> String {
    "\(label) run \(run.runId.prefix(8)) as of \(run.asOf.text), days \(run.period.text): \(run.state), "
      + "\(grouped(Int(run.ordersRead ?? 0))) orders, \(grouped(Int(run.findings?.closing ?? 0))) findings open"
      + (run.findings?.atStakeUnknown.map { $0 > 0 ? ", \(grouped(Int($0))) with amount unknown" : "" } ?? "")
  }

  private var answers: [String] {
    let answers = document.facts.answers.map { "\(grouped(Int($0.count))) \($0.outcome) by \($0.channel)" }
    return [
      "Apple's answers: " + (answers.isEmpty ? "none" : answers.joined(separator: ", "))
        + "; facts about transactions: \(grouped(Int(document.facts.evidence))), refunds in them: "
        + grouped(Int(document.facts.revocations)),
      "People's entries: \(grouped(Int(document.facts.decisions)))",
    ]
  }

  private var totals: [String] {
    let changed = document.totals.filter { $0.from != $0.to }
    if changed.isEmpty { return ["", "The totals are the same."] }
    var table = TextTable([.left("currency"), .left("outcome"), .right("from"), .right("to")])
    for total in changed {
      table.add([
        total.currency, total.disposition.title, total.from.map(Money.grouped) ?? "–",
        total.to.map(Money.grouped) ?? "–",
      ])
    }
    return ["", "Totals of the reports" + (sameDays ? "" : ", which cover different days"), table.text(width: nil)]
  }

  private var sameDays: Bool { first.period.text == second.period.text }

  private var adjustments: [String] {
    if document.adjustments.isEmpty { return [] }
    var table = TextTable([
      .left("day"), .left("currency"), .left("outcome"), .right("orders"), .right("now"), .right("amount"),
      .right("now"),
    ])
    for line in document.adjustments {
      table.add([
        line.day, line.currency, line.disposition.title, String(line.ordersReported), String(line.ordersNow),
        Money.grouped(line.amountReported), Money.grouped(line.amountNow),
      ])
    }
    return ["", "Facts that arrived after their day was reported", table.text(width: nil)]
  }

  private var findings: [String] {
    let changes = document.findings
    if changes.isEmpty { return ["", "No finding was opened or closed."] }
    let counts = ["closed", "opened", "reopened"].map { event in "\(changes.count { $0.event == event }) \(event)" }
    var lines = ["", "Findings: \(counted(changes.count, "change")): \(counts.joined(separator: ", "))"]
    for change in changes.prefix(Self.shownFindings) {
      lines.append(
        "  \(change.event) \(change.asOf.text)  \(change.severity)  \(change.kind.title)  "
          + (change.orderId.map { "order \($0)" } ?? change.subject) + "  \(change.findingId.prefix(12))")
      lines += change.reasons.map { "      \($0)" }
      if change.reasons.isEmpty {
        lines.append(
          document.configurationChanged
            ? "      no new fact; the configuration changed"
            : "      no new fact of its own; time passed, or another order's facts changed")
      }
    }
    if changes.count > Self.shownFindings {
      lines.append("  … and \(changes.count - Self.shownFindings) more; --json has them all")
    }
    return lines
  }
}

struct AdjustmentText: Encodable, Sendable {
  let day: String
  let currency: String
  let disposition: String
  let ordersReported: Int
  let ordersNow: Int
  let amountReported: String
  let amountNow: String

  init(_ adjustment: Adjustment) {
    let currency = adjustment.bucket.currency
    day = adjustment.day
    self.currency = currency.code
    disposition = adjustment.bucket.disposition.rawValue
    ordersReported = adjustment.reported.orders
    ordersNow = adjustment.now.orders
    amountReported = Money.decimalText(adjustment.reported.minorUnits, digits: currency.digits)
    amountNow = Money.decimalText(adjustment.now.minorUnits, digits: currency.digits)
  }
}
