import Foundation
import Reconciliation
import Reporting
import Run

/// The history of runs as text and as JSON.
package struct RunsText {
  private let runs: [PastRun]

  package init(_ runs: [PastRun]) { self.runs = runs }

  struct Document: Encodable {
    struct Period: Encodable {
      let since: String
      let until: String
      let timeZone: String
    }
    struct Findings: Encodable {
      let opening: Int64
      let new: Int64
      let closed: Int64
      let closing: Int64
      let atStakeUnknown: Int64?
    }

    let runId: String
    let command: String
    let asOf: String
    let startedAt: String
    let finishedAt: String?
    let period: Period
    let nightly: Bool
    let configuration: String
    let host: String
    let version: String
    let complete: Bool?
    let incompleteReasons: [String]
    let ordersRead: Int64?
    let findings: Findings?
    let directory: String?
    let exitStatus: Int32?
    let signed: String?

    init(_ run: PastRun) {
      runId = run.runId
      command = run.command
      asOf = run.asOf.text
      startedAt = run.startedAt.text
      finishedAt = run.finishedAt?.text
      period = Period(since: run.since, until: run.until, timeZone: run.timeZone)
      nightly = run.isNightly
      configuration = run.configuration
      host = run.host
      version = run.version
      complete = run.isComplete
      incompleteReasons = run.incompleteReasons
      ordersRead = run.ordersRead
      if let opening = run.opening, let new = run.new, let closed = run.closed, let closing = run.closing {
        findings = Findings(
          opening: opening, new: new, closed: closed, closing: closing, atStakeUnknown: run.atStakeUnknown)
      } else {
        findings = nil
      }
      directory = run.directory
      exitStatus = run.exitStatus
      signed = run.signOffs.isEmpty ? nil : run.signOffs.joined(separator: "; ")
    }
  }

  package var json: String {
    get throws { try MachineText.json(runs.map { Document($0) }) }
  }

  /// The runs as a table, newest first, with the reasons of incomplete runs below.
  package func table(width: Int?) -> String {
    if runs.isEmpty { return "No run yet." }
    var table = TextTable([
      .left("run"), .left("command"), .left("as of"), .left("days"), .left("report"), .right("opening"), .right("new"),
      .right("closed"), .right("closing"), .right("exit"),
    ])
    for run in runs {
      func number(_ value: Int64?) -> String { value.map { grouped(Int($0)) } ?? "" }
      table.add([
        String(run.runId.prefix(8)), run.command, run.asOf.text, run.period, RunsText.state(run), number(run.opening),
        number(run.new), number(run.closed), number(run.closing), run.exitStatus.map(String.init) ?? "",
      ])
    }
    var lines = [table.text(width: width)]
    for run in runs where run.isComplete == false {
      lines += run.incompleteReasons.map { "\(run.runId.prefix(8)) is incomplete: \($0)" }
    }
    for run in runs {
      lines += run.signOffs.map { "\(run.runId.prefix(8)) is signed: \($0)" }
    }
    return lines.joined(separator: "\n")
  }

  package static func state(_ run: PastRun) -> String {
    switch run.isComplete {
    case .some where run.isGone: "gone"
    case true?: "complete"
    case false?: "incomplete"
    case nil where run.isForgotten: "forgotten"
    case nil where run.isHeld: "held"
    case nil: run.finishedAt == nil ? "unfinished" : "none"
    }
  }
}

/// The difference between two runs as text and as JSON.
package struct RunDifferenceText {
  private let difference: RunDifference

  package init(_ difference: RunDifference) { self.difference = difference }

  private static let shownFindings = 200

  package var text: String {
    let (first, second) = (difference.first, difference.second)
    var lines = [line("From", first), line("To", second)]
    if difference.configurationChanged {
      lines.append(
        "The configuration changed: \(first.configuration.prefix(12)) -> \(second.configuration.prefix(12)).")
    }
    if difference.timeZoneChanged { lines.append("The time zone changed: \(first.timeZone) -> \(second.timeZone).") }
    lines += answers
    lines += totals
    lines += adjustments
    lines += findings
    return lines.joined(separator: "\n")
  }

  private func line(_ label: String, _ run: PastRun) -> String {
    "\(label) run \(run.runId.prefix(8)) as of \(run.asOf.text), days \(run.period): \(RunsText.state(run)), "
      + "\(grouped(Int(run.ordersRead ?? 0))) orders, \(grouped(Int(run.closing ?? 0))) findings open"
      + (run.atStakeUnknown.map { $0 > 0 ? ", \(grouped(Int($0))) with amount unknown" : "" } ?? "")
  }

  private var answers: [String] {
    let answers = difference.answers.map { "\(grouped(Int($0.count))) \($0.outcome) by \($0.channel)" }
    return [
      "Apple's answers: " + (answers.isEmpty ? "none" : answers.joined(separator: ", "))
        + "; facts about transactions: \(grouped(Int(difference.evidence))), refunds in them: "
        + grouped(Int(difference.revocations)),
      "People's entries: \(grouped(Int(difference.decisions)))",
    ]
  }

  private var totals: [String] {
    let changed = difference.totals.filter { $0.before != $0.after }
    if changed.isEmpty { return ["", "The totals are the same."] }
    var table = TextTable([.left("currency"), .left("outcome"), .right("from"), .right("to")])
    for total in changed {
      table.add([
        total.currency, total.disposition.title, total.before.map(Money.grouped) ?? "–",
        total.after.map(Money.grouped) ?? "–",
      ])
    }
    return ["", "Totals of the reports" + (sameDays ? "" : ", which cover different days"), table.text(width: nil)]
  }

  private var sameDays: Bool {
    difference.first.since == difference.second.since && difference.first.until == difference.second.until
  }

  private var adjustments: [String] {
    if difference.adjustments.isEmpty { return [] }
    var table = TextTable([
      .left("day"), .left("currency"), .left("outcome"), .right("orders"), .right("now"), .right("amount"),
      .right("now"),
    ])
    for adjustment in difference.adjustments {
      let line = AdjustmentText(adjustment)
      table.add([
        line.day, line.currency, line.disposition.title, String(line.ordersReported), String(line.ordersNow),
        Money.grouped(line.amountReported), Money.grouped(line.amountNow),
      ])
    }
    return ["", "Facts that arrived after their day was reported", table.text(width: nil)]
  }

  private var findings: [String] {
    let changes = difference.findings
    if changes.isEmpty { return ["", "No finding was opened or closed."] }
    let counts = ["closed", "opened", "reopened"].map { event in "\(changes.count { $0.event == event }) \(event)" }
    var lines = ["", "Findings: \(changes.count) changes: \(counts.joined(separator: ", "))"]
    for change in changes.prefix(RunDifferenceText.shownFindings) {
      lines.append(
        "  \(change.event) \(change.at.text)  \(change.severity)  \(change.kind.title)  "
          + (change.orderId.map { "order \($0)" } ?? change.subject) + "  \(change.findingId.prefix(12))")
      lines += change.reasons.map { "      \($0)" }
      if change.reasons.isEmpty {
        lines.append(
          difference.configurationChanged
            ? "      no new fact; the configuration changed"
            : "      no new fact of its own; time passed, or another order's facts changed")
      }
    }
    if changes.count > RunDifferenceText.shownFindings {
      lines.append("  … and \(changes.count - RunDifferenceText.shownFindings) more; --json has them all")
    }
    return lines
  }

  // MARK: - For machines

  struct Document: Encodable {
    struct Total: Encodable {
      let currency: String
      let disposition: String
      let from: String?
      let to: String?
    }
    struct Change: Encodable {
      let findingId: String
      let kind: String
      let severity: String
      let subject: String
      let orderId: String?
      let event: String
      let asOf: String
      let reasons: [String]
    }
    struct Answers: Encodable {
      let channel: String
      let outcome: String
      let count: Int64
    }
    struct Facts: Encodable {
      let answers: [Answers]
      let evidence: Int64
      let revocations: Int64
      let decisions: Int64
    }

    let from: RunsText.Document
    let to: RunsText.Document
    let configurationChanged: Bool
    let timeZoneChanged: Bool
    let totals: [Total]
    let adjustments: [AdjustmentText]
    let findings: [Change]
    let facts: Facts
  }

  package var json: String {
    get throws {
      try MachineText.json(
        Document(
          from: RunsText.Document(difference.first), to: RunsText.Document(difference.second),
          configurationChanged: difference.configurationChanged, timeZoneChanged: difference.timeZoneChanged,
          totals: difference.totals.map {
            Document.Total(currency: $0.currency, disposition: $0.disposition, from: $0.before, to: $0.after)
          },
          adjustments: difference.adjustments.map { AdjustmentText($0) },
          findings: difference.findings.map {
            Document.Change(
              findingId: $0.findingId, kind: $0.kind, severity: $0.severity, subject: $0.subject, orderId: $0.orderId,
              event: $0.event, asOf: $0.at.text, reasons: $0.reasons)
          },
          facts: Document.Facts(
            answers: difference.answers.map {
              Document.Answers(channel: $0.channel, outcome: $0.outcome, count: $0.count)
            }, evidence: difference.evidence, revocations: difference.revocations, decisions: difference.decisions)))
    }
  }
}

struct AdjustmentText: Encodable {
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
