import Reconciliation
import Spreadsheet

extension SummaryPage {
  mutating func writeFirst(_ findings: [ReportedFinding]) throws(SpreadsheetError) {
    if findings.isEmpty { return }
    try heading("What to do first")
    // IDs of orders need two columns.
    let (order, action) = (2...3, 8...SummaryPage.lastColumn)
    try header(["Kind", "Severity", "Order", "", "Currency", "Amount at risk", "Owner", "Due"], texts: 5)
    for (column, title) in [(6, "Owner"), (7, "Due")] {
      try sheet.writeText(title, row: row - 1, column: column, format: formats[.tableHeader])
    }
    try sheet.merge("Suggested action", action, row: row - 1, formats[.tableHeader])
    for reported in findings {
      let finding = reported.finding
      try sheet.setRow(row, height: Self.height(of: finding.suggestedAction, charactersPerLine: 46))
      try sheet.merge((finding.orderId ?? finding.subject.id).text, order, row: row, formats[.shrinkingText])
      for (column, text) in [
        (0, finding.kind.title), (1, finding.severity.rawValue), (4, finding.currency?.code ?? ""),
        (6, reported.owner ?? ""), (7, reported.due ?? ""),
      ] {
        try sheet.writeText(CellText.fitting(text), row: row, column: column, format: formats[.tableText])
      }
      if let atStake = finding.atStake {
        try sheet.writeNumber(
          Money.number(Int128(atStake.minorUnits), digits: atStake.currency.digits), row: row, column: 5,
          format: formats.amount(digits: atStake.currency.digits))
      } else {
        try sheet.writeText(
          finding.isAmountAtRiskUnknown ? "unknown" : "", row: row, column: 5, format: formats[.tableTextRight])
      }
      try sheet.merge(finding.suggestedAction, action, row: row, formats[.tableProse])
      row += 1
    }
    row += 1
  }

  mutating func writeRefundRequests(_ facts: SummaryFacts) throws(SpreadsheetError) {
    guard let words = facts.refundRequests.words(in: options.timeZone, named: options.zoneName) else { return }
    try heading("Refund requests to answer")
    try line(words, formats[.label])
    row += 1
  }

  mutating func writeOwners(_ findings: FindingsSummary) throws(SpreadsheetError) {
    if findings.owners.isEmpty { return }
    try heading("Open findings by owner")
    try header(["Owner", "Open", "Critical", "Overdue"])
    for (name, line) in findings.shownOwners {
      try writeRow([.text(name), .count(line.open), .count(line.critical), .count(line.overdue)])
    }
    row += 1
  }

  mutating func writeDecisions(_ facts: SummaryFacts) throws(SpreadsheetError) {
    guard facts.changes.since != nil else { return }
    try heading("Decided since the previous report")
    try line(facts.decisions.words, formats[.label])
    row += 1
  }
}
