import Spreadsheet

extension SummaryPage {
  mutating func writeContents(_ sheets: [DataSheet]) throws(SpreadsheetError) {
    try heading("Sheets of this workbook")
    try header(["Sheet", "Rows"])
    row -= 1
    try sheet.merge("Content", 2...SummaryPage.lastColumn, row: row, formats[.tableHeader])
    row += 1
    for data in sheets {
      for (position, part) in data.parts.enumerated() {
        try sheet.writeLink(
          to: CellReference(row: 0, column: 0), on: part.name, text: part.name.description, row: row, column: 0,
          format: formats[.link])
        try sheet.writeInteger(part.rows, row: row, column: 1, format: formats[.tableCount])
        let content = position == 0 ? note(on: data) : "Continues \(data.parts[position - 1].name)."
        try sheet.merge(content, 2...SummaryPage.lastColumn, row: row, formats[.tableText])
        row += 1
      }
    }
    row += 1
  }

  private func note(on data: DataSheet) -> String {
    let all =
      if options.hasFiles, let name = data.table.fileName { "; all are in \(name) beside this workbook." } else { "." }
    if data.table == .receipts, !options.listsAllReceipts {
      return "Only those of the \(grouped(options.receiptsInScope)) receipts that are not verified\(all)"
    }
    if data.table == .orders, !options.listsAllOrders {
      return "Only those of the \(grouped(options.ordersInPeriod)) orders with findings\(all)"
    }
    return data.table.shape.sheetNote
  }

  // MARK: - Sign-off

  mutating func writeSignatures() throws(SpreadsheetError) {
    try heading(SignOff.heading)
    try line(
      "Your entries here are imported by `night-audit findings import`, together with the sheet Findings.",
      formats[.label])
    for label in SignOff.labels {
      try sheet.setRow(row, height: 24)
      try sheet.writeText(label, row: row, column: 0, format: formats[.label])
      try sheet.merge("", 1...6, row: row, formats[label == SignOff.date ? .signatureDate : .signature])
      row += 1
    }
    row += 1
  }
}

/// The sign-off lines, each with an unlocked cell to its right.
package enum SignOff {
  package static let heading = "Sign-off"
  package static let preparedBy = "Prepared by"
  package static let reviewedBy = "Reviewed by"
  package static let date = "Date"
  package static let remark = "Remark"
  package static let balanced = "BALANCED"
  package static let notBalanced = "NOT BALANCED"
  package static let labels = [preparedBy, reviewedBy, date, remark]
  package static let sheet = "Summary"
}
