import Reconciliation
import Spreadsheet

extension SummaryPage {
  mutating func writeFirst(_ findings: [ReportedFinding]) throws(SpreadsheetError) {
    if findings.isEmpty { return }
    try heading("What to do first")
    try header(["Kind", "Severity", "Order", "Currency", "At stake"], texts: 4)
    try sheet.writeText("Owner", row: row - 1, column: 5, format: formats.tableHeader)
    try sheet.writeText("Due", row: row - 1, column: 6, format: formats.tableHeader)
    try sheet.mergeCells(
      CellRange(rows: row - 1...row - 1, columns: 7...SummaryPage.lastColumn), text: "Suggested action",
      format: formats.tableHeader)
    for reported in findings {
      let finding = reported.finding
      // Two lines for the suggested action.
      try sheet.setRow(row, height: 30)
      for (column, text) in [
        finding.kind.title, finding.severity.rawValue, (finding.orderId ?? finding.subject.id).text,
        finding.currency?.code ?? "",
      ].enumerated() {
        // IDs of orders are longer than the column.
        let format = column == 2 ? formats.shrinkingText : formats.tableText
        try sheet.writeText(CellText.fitting(text), row: row, column: column, format: format)
      }
      if let atStake = finding.atStake {
        try sheet.writeNumber(
          Money.number(Int128(atStake.minorUnits), digits: atStake.currency.digits), row: row, column: 4,
          format: formats.share(digits: atStake.currency.digits))
      } else {
        try sheet.writeText(
          finding.isAmountAtRiskUnknown ? "unknown" : "", row: row, column: 4, format: formats.tableText)
      }
      try sheet.writeText(CellText.fitting(reported.owner ?? ""), row: row, column: 5, format: formats.tableText)
      try sheet.writeText(reported.due ?? "", row: row, column: 6, format: formats.tableText)
      try sheet.mergeCells(
        CellRange(rows: row...row, columns: 7...SummaryPage.lastColumn), text: finding.suggestedAction,
        format: formats.tableProse)
      row += 1
    }
    row += 1
  }

  mutating func writeRefundRequests(_ facts: SummaryFacts) throws(SpreadsheetError) {
    guard let words = facts.refundRequests.words(in: options.timeZone, named: options.zoneName) else { return }
    try heading("Refund requests to answer")
    try line(words, formats.label, height: nil)
    row += 1
  }

  mutating func writeOwners(_ findings: FindingsSummary) throws(SpreadsheetError) {
    if findings.owners.isEmpty { return }
    try heading("Open findings by owner")
    try header(["Owner", "Open", "Critical", "Overdue"])
    for (name, line) in findings.shownOwners {
      try sheet.writeText(CellText.fitting(name), row: row, column: 0, format: formats.tableText)
      for (offset, count) in [line.open, line.critical, line.overdue].enumerated() {
        try sheet.writeInteger(count, row: row, column: 1 + offset, format: formats.tableCount)
      }
      row += 1
    }
    row += 1
  }

  mutating func writeDecisions(_ facts: SummaryFacts) throws(SpreadsheetError) {
    guard facts.changes.since != nil else { return }
    try heading("Decided since the previous report")
    try line(facts.decisions.words, formats.label, height: nil)
    row += 1
  }
}
