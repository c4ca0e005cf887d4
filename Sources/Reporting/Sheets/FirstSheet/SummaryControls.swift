import Reconciliation
import Spreadsheet

extension SummaryPage {
  /// Both sides are formulas over the sheets, so that a changed number shows.
  mutating func writeControls(_ live: LiveControls) throws(SpreadsheetError) {
    try heading("Controls")
    try line(
      "Each control calculates one number from the sheets in two ways. If an amount is changed there, its line and the "
        + "banner turn red.", formats[.label])
    try header(["Two ways to the same number", "Left", "Right", "Difference"])
    try sheet.writeText("Result", row: row - 1, column: 4, format: formats[.tableHeaderCentre])
    let first = row
    for control in live.controls {
      let left = CellReference(row: row, column: 1)
      let right = CellReference(row: row, column: 2)
      let difference = CellReference(row: row, column: 3)
      let digits = Int(control.digits)
      let format = formats.amount(digits: control.digits)
      try sheet.writeText(control.name, row: row, column: 0, format: formats[.tableText])
      try write(control.left, column: 1, format)
      try write(control.right, column: 2, format)
      let isBalanced = control.isBalanced
      if !isBalanced { unbalanced += 1 }
      try sheet.writeFormula(
        "ROUND(\(left)-\(right),\(digits))", result: control.left.result - control.right.result, row: row, column: 3,
        format: format)
      // The difference of an error value is an error, too.
      try sheet.writeFormula(
        "IF(ISNUMBER(\(difference)),IF(\(difference)=0,\"balanced\",\"NOT BALANCED\"),\"NOT BALANCED\")",
        result: isBalanced ? "balanced" : "NOT BALANCED", row: row, column: 4, format: formats[.balanced])
      if let note = control.note {
        try sheet.merge(note, 5...SummaryPage.lastColumn, row: row, formats[.label])
      }
      row += 1
    }
    let results = CellRange(rows: first...max(first, row - 1), columns: 4...4)
    try sheet.addConditionalFormat(.text(equals: "balanced", formats[.good]), in: results)
    try sheet.addConditionalFormat(.text(equals: "NOT BALANCED", formats[.bad]), in: results)
    self.results = results
    row += 1
  }
}
