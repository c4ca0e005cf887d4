import Reconciliation

/// The summary of a report as the body of a mail: the same facts as plain text and as HTML.
package struct SummaryMail {
  private let summary: SummaryDocument
  private let folder: String
  private let attachment: String?

  /// - Parameters:
  ///   - folder: where the whole report is, for people.
  ///   - attachment: the workbook's name; nil when it is not attached.
  package init(_ summary: SummaryDocument, folder: String, attachment: String?) {
    self.summary = summary
    self.folder = folder
    self.attachment = attachment
  }

  /// In ASCII.
  package var subject: String {
    "Night audit \(summary.period.until): \(summary.complete ? "complete" : "INCOMPLETE"), "
      + "\(summary.findings.closing) open findings, \(critical) critical"
  }

  /// One part of the body.
  private struct Section {
    var title: String
    var rows: [(String, String)]
  }

  private var title: String {
    let period = summary.period
    let days = period.since == period.until ? period.until : "\(period.since) to \(period.until)"
    return "App Store night audit \(days) (\(period.timeZone))"
  }

  private var state: String {
    summary.complete
      ? "COMPLETE: every check that was due was answered."
      : "INCOMPLETE: the report is right as far as it goes, but something is missing."
  }

  private var critical: Int {
    summary.findings.open.reduce(0) { sum, open in
      sum + (FindingKind(rawValue: open.key)?.severity == .critical ? open.value : 0)
    }
  }

  private var sections: [Section] {
    let balanced = summary.control.allSatisfy { $0.left == $0.right }
    let findings = summary.findings
    let dispositions = Disposition.allCases.compactMap { disposition -> (String, String)? in
      guard let bucket = summary.dispositions[disposition.rawValue], bucket.orders > 0 else { return nil }
      return (disposition.rawValue.asWords, ([String(bucket.orders)] + amounts(bucket.amount)).joined(separator: " · "))
    }
    let kinds = FindingKind.allCases.compactMap { kind -> (String, String)? in
      guard let count = findings.open[kind.rawValue] else { return nil }
      return (kind.rawValue.asWords, "\(count) \(kind.severity.rawValue)")
    }
    return [
      Section(
        title: "Orders",
        rows: [
          ("Orders read", String(summary.orders.read)),
          ("Control totals", balanced ? "balanced" : "NOT BALANCED"),
        ] + dispositions),
      Section(
        title: "Findings",
        rows: [
          ("Opening", String(findings.opening)), ("New", String(findings.new)), ("Closed", String(findings.closed)),
          ("Closing", "\(findings.closing), of these \(critical) critical"),
          ("At stake", Stake.words(findings.atStake, unknown: findings.atStakeUnknown)),
        ] + kinds),
      Section(
        title: "How long ago the deals happened",
        rows: findings.ageing.map { age in
          (
            Ageing.Bucket(rawValue: age.days)?.title ?? age.days,
            "\(age.findings) findings · \(Stake.words(age.atStake, unknown: age.atStakeUnknown))"
          )
        }),
    ] + notChecked
  }

  private var notChecked: [Section] {
    if summary.notChecked.isEmpty { return [] }
    return [
      Section(
        title: "What could not be checked",
        rows: summary.notChecked.sorted { $0.key < $1.key }.map { app, kinds in
          (app, kinds.map(\.asWords).joined(separator: ", "))
        })
    ]
  }

  private func amounts(_ amounts: [String: String]) -> [String] {
    amounts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
  }

  private var closing: [String] {
    [
      attachment.map { "The workbook is attached: \($0)." } ?? "The workbook is not attached; it is with the report.",
      "The whole report is in \(folder).",
      "Amounts are customer amounts as the shop recorded them: not Apple's proceeds, and not for revenue recognition.",
    ]
  }

  /// For readers of plain text.
  package var text: String {
    var lines = [title, state]
    lines += summary.incompleteReasons.map { "  - \($0)" }
    for section in sections {
      lines += ["", section.title]
      let width = (section.rows.map(\.0.count).max() ?? 0) + 2
      lines += section.rows.map { "  \($0)\(String(repeating: " ", count: width - $0.count))\($1)" }
    }
    return (lines + [""] + closing).joined(separator: "\n") + "\n"
  }

  /// For everybody else. No pictures, no addresses: nothing is loaded from anywhere.
  package var html: String {
    let (colour, background) = summary.complete ? ("#375623", "#E2EFDA") : ("#7F6000", "#FFE699")
    var body = "<h2 style=\"color:#1F3864\">\(escaped(title))</h2>\n"
    body += "<p style=\"color:\(colour);background:\(background);padding:8px\"><b>\(escaped(state))</b></p>\n"
    if !summary.incompleteReasons.isEmpty {
      body += "<ul>\(summary.incompleteReasons.map { "<li>\(escaped($0))</li>" }.joined())</ul>\n"
    }
    for section in sections {
      body += "<h3 style=\"color:#1F3864\">\(escaped(section.title))</h3>\n<table cellpadding=\"4\">\n"
      for (label, value) in section.rows {
        body += "<tr><td style=\"color:#7F7F7F\">\(escaped(label))</td><td>\(escaped(value))</td></tr>\n"
      }
      body += "</table>\n"
    }
    body += closing.map { "<p>\(escaped($0))</p>\n" }.joined()
    return """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8"><title>\(escaped(title))</title></head>
      <body style="font-family:sans-serif;font-size:14px">
      \(body)</body></html>

      """
  }

  /// Scalar by scalar: a mark with an accent is another `Character`, and the same to a browser.
  private func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
