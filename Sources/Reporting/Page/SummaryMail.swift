import Foundation
import Reconciliation

package struct SummaryMail {
  private let summary: SummaryDocument
  private let folder: String
  private let attachment: String?
  private let link: String?

  /// - Parameters:
  ///   - attachment: the workbook's name; nil if it is not attached.
  ///   - link: the URL of the report's folder (`report.link`).
  package init(_ summary: SummaryDocument, folder: String, attachment: String?, link: String? = nil) {
    // The document has its times in UTC; people read those of the report's time zone.
    var (summary, clock) = (summary, LocalClock(timeZone: TimeZone(identifier: summary.period.timeZone) ?? .gmt))
    summary.incompleteReasons = summary.incompleteReasons.map { clock.localTimes(in: $0) }
    summary.changes.first = summary.changes.first.map { clock.localTimes(in: $0) }
    (self.link, self.summary, self.folder, self.attachment) = (link, summary, folder, attachment)
  }

  /// The subject in ASCII.
  package var subject: String {
    "Night audit \(summary.period.until): \(summary.state.label), "
      + "\(openFindings(summary.findings.closing)), \(critical) critical"
  }

  private typealias Section = MailBody.Section

  private var title: String {
    let period = summary.period
    let days = period.since == period.until ? period.until : "\(period.since) to \(period.until)"
    return "App Store night audit \(days) (\(period.timeZone))"
  }

  private var critical: Int {
    summary.findings.severities.values.reduce(0) { $0 + ($1[Severity.critical.rawValue] ?? 0) }
  }

  private var sections: [Section] {
    let balanced = summary.control.allSatisfy { $0.left == $0.right }
    let findings = summary.findings
    let dispositions = Disposition.allCases.compactMap { disposition -> (String, String)? in
      guard let bucket = summary.dispositions[disposition.rawValue], bucket.orders > 0 else { return nil }
      return (disposition.title, ([grouped(bucket.orders)] + amounts(bucket.amount)).joined(separator: " · "))
    }
    let sorted = Severity.allCases.flatMap { worst in
      FindingKind.allCases.filter { kind in
        Severity.allCases.first { findings.severities[kind.rawValue]?[$0.rawValue] != nil } == worst
      }
    }
    let kinds = sorted.compactMap { kind -> (String, String)? in
      guard let count = findings.open[kind.rawValue] else { return nil }
      let severities = Severity.allCases.compactMap { severity in
        findings.severities[kind.rawValue]?[severity.rawValue].map { (severity.rawValue, $0) }
      }
      let words = FindingsSummary.severityText(severities)
      let money = amounts(findings.atStakeByKind?[kind.rawValue] ?? [:])
      return (
        kind.title, ([severities.count == 1 ? "\(grouped(count)) \(words)" : words] + money).joined(separator: " · ")
      )
    }
    return first + [
      Section(
        title: "Orders",
        rows: [
          ("Orders read", grouped(summary.orders.read)),
          ("Control totals", balanced ? "balanced" : "NOT BALANCED"),
        ] + dispositions),
      Section(
        title: "Findings",
        rows: [
          ("Opening", grouped(findings.opening)), ("New", grouped(findings.new)), ("Closed", grouped(findings.closed)),
          ("Closing", "\(grouped(findings.closing)), of these \(grouped(critical)) critical"),
          ("Amount at risk", stake(findings.atStake, unknown: findings.atStakeUnknown)),
        ] + kinds),
      Section(
        title: "Ageing by transaction date",
        rows: findings.ageing.map { age in
          (
            Ageing.Bucket(rawValue: age.days)?.title ?? age.days,
            "\(counted(age.findings, "finding")) · \(stake(age.atStake, unknown: age.atStakeUnknown))"
          )
        }),
    ] + changes + adjustments + settlement + notChecked
  }

  /// Empty if people have accepted or closed every finding.
  private var first: [Section] {
    let lines = summary.first.isEmpty && summary.findings.closing == 0 ? ["No finding is open."] : summary.first
    return lines.isEmpty ? [] : [Section(title: "What to do first", lines: lines)]
  }

  private var changes: [Section] {
    if summary.changes.since == nil { return [] }
    let total = summary.changes.counts.values.reduce(0, +)
    let counts = ChangeRow.Change.allCases.map { "\(grouped(summary.changes.counts[$0.rawValue] ?? 0)) \($0.title)" }
    return [
      Section(
        title: "What changed since \(ChangesSummary.baseNightText(isComplete: summary.changes.sinceComplete))",
        lines: [counts.joined(separator: " · ")] + ChangesSummary.lines(summary.changes.first, total: total))
    ]
  }

  private static let shownAdjustments = 10

  private var adjustments: [Section] {
    if summary.adjustments.isEmpty { return [] }
    let rest = summary.adjustments.count - Self.shownAdjustments
    return [
      Section(
        title: "Adjustments to earlier days: orders and amount, as reported and now",
        rows: summary.adjustments.prefix(Self.shownAdjustments).map { line in
          func words(_ sum: AdjustmentLine.Sum) -> String { "\(shown(sum.orders)) · \(Money.shown(sum.amount))" }
          return (
            "\(line.day) \(line.disposition.title)", "\(words(line.reported)) → \(words(line.now)) \(line.currency)"
          )
        }, lines: rest > 0 ? ["… and \(grouped(rest)) more, in the report"] : [])
    ]
  }

  private var settlement: [Section] {
    guard let lines = summary.settlement else { return [] }
    return [
      Section(
        title: "Settlement: Apple's proceeds",
        rows: lines.map { line in
          let figures = [
            ("earned", line.salesProceeds), ("paid", line.settled), ("difference", line.difference),
          ].map { name, amount in "\(name) \(amount.map { Money.shown($0) } ?? "unknown")" }
          return ("Fiscal \(line.fiscalPeriod), \(line.currency)", figures.joined(separator: " · "))
        })
    ]
  }

  private var notChecked: [Section] {
    let unusual = summary.unusual.isEmpty ? [] : [Section(title: "Unusual", lines: summary.unusual)]
    if summary.notChecked.isEmpty { return unusual }
    return unusual + [
      Section(
        title: "Not checked",
        rows: summary.notChecked.sorted { $0.key < $1.key }.map { app, kinds in
          (app, kinds.map(\.title).joined(separator: ", "))
        })
    ]
  }

  private func amounts(_ amounts: [String: String]) -> [String] {
    amounts.sorted { $0.key < $1.key }.map { "\(Money.grouped($0.value)) \($0.key)" }
  }

  private func stake(_ sums: [String: String], unknown: Int) -> String {
    let parts = amounts(sums) + (unknown > 0 ? ["\(grouped(unknown)) with amount unknown"] : [])
    return parts.isEmpty ? "nothing" : parts.joined(separator: " · ")
  }

  private var closing: [String] {
    [
      attachment.map { "The workbook is attached: \($0)." } ?? "No workbook is attached. All files are in the report.",
      link == nil ? "The whole report is in \(folder)." : nil,
      "Amounts are customer amounts as the shop recorded them, and proceeds are named. They are not for revenue recognition.",
    ].compactMap(\.self)
  }

  package var body: MailBody {
    MailBody(
      title: title, tone: summary.state.isFinal ? .good : .warning, state: summary.state.line,
      reasons: summary.incompleteReasons,
      sections: sections, link: link, closing: closing)
  }
}
