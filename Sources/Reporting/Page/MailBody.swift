import Reconciliation

package struct MailBody {
  package enum NoticeTone { case good, warning, bad }

  struct Section {
    var title: String
    var rows: [(String, String)] = []
    var lines: [String] = []
  }

  let title: String
  let tone: NoticeTone
  let state: String
  let reasons: [String]
  let sections: [Section]
  /// The URL of the report; nil: people cannot open its folder.
  let link: String?
  let closing: [String]

  /// Puts each text in one line, because IDs in it come from customers.
  init(
    title: String, tone: NoticeTone, state: String, reasons: [String], sections: [Section], link: String?,
    closing: [String]
  ) {
    (self.title, self.tone, self.state, self.link) = (title, tone, state, link)
    self.reasons = reasons.map(\.inOneLine)
    self.sections = sections.map { section in
      Section(
        title: section.title, rows: section.rows.map { ($0.inOneLine, $1.inOneLine) },
        lines: section.lines.map(\.inOneLine))
    }
    self.closing = closing.map(\.inOneLine)
  }

  package var text: String {
    var lines = [title, state]
    lines += reasons.map { "  - \($0)" }
    for section in sections {
      lines += ["", section.title]
      let width = (section.rows.map(\.0.count).max() ?? 0) + 2
      lines += section.rows.map { "  \($0)\(String(repeating: " ", count: width - $0.count))\($1)" }
      lines += section.lines.map { "  \($0)" }
    }
    return (lines + [""] + (link.map { ["Open the report: \($0)"] } ?? []) + closing).joined(separator: "\n") + "\n"
  }

  /// The mail as HTML. It loads nothing, and its only address is the link to the report.
  package var html: String {
    let (colour, background) =
      switch tone {
      case .good: ("#375623", "#E2EFDA")
      case .warning: ("#7F6000", "#FFE699")
      case .bad: ("#9C0006", "#FFC7CE")
      }
    var content: [String: Any] = [
      "title": title, "colour": colour, "background": background, "state": state, "hasReasons": !reasons.isEmpty,
      "reasons": reasons, "closing": closing,
      "sections": sections.map { section -> [String: Any] in
        [
          "title": section.title, "hasRows": !section.rows.isEmpty, "hasLines": !section.lines.isEmpty,
          "rows": section.rows.map { ["label": $0.0, "value": $0.1] }, "lines": section.lines,
        ]
      },
    ]
    content["link"] = link
    // Unreachable with the program's own template; the plain text has everything.
    guard let body = try? Template.mail.render(content) else { return "<pre>See the plain text.</pre>" }
    return String(decoding: body, as: UTF8.self)
  }
}

extension MailBody {
  package init(title: String, tone: NoticeTone, state: String, reasons: [String], closing: [String]) {
    self.init(title: title, tone: tone, state: state, reasons: reasons, sections: [], link: nil, closing: closing)
  }
}
