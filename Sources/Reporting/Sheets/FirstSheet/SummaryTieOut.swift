import Reconciliation
import Spreadsheet

extension SummaryPage {
  mutating func writeTieOut(_ facts: TieOutFacts) throws(SpreadsheetError) {
    try heading("Tie-out with Apple's sales reports, \(facts.firstDay) to \(facts.lastDay)")
    try line(facts.sentence, formats[.value])
    if !facts.isComplete {
      try line("The tie-out is incomplete. Apple's reports often arrive late.", formats[.value])
      try bullets(facts.incompleteReasons)
    }
    for note in facts.remarks { try line(note, formats[.value]) }
    try gap()
  }

  mutating func writeTrend(_ facts: TieOutFacts, in workbook: borrowing Workbook) throws(SpreadsheetError) {
    try heading("Tie-out, the last \(facts.days.count) days")
    let top = row
    try header(["Day", "Apple's units", "Unexplained"])
    try sheet.writeText("Review", row: row - 1, column: 3, format: formats[.tableHeaderCentre])
    let rows = row...row + facts.days.count - 1
    for day in facts.days {
      let figures = [day.apple, day.unexplained].map { $0.scaled() }.map { figure in
        LiveFigure(nil, Money.number(figure.units, digits: figure.digits), digits: min(figure.digits, 3))
      }
      try writeRow([.text(day.date)] + figures.map { .figure($0) })
      if day.isAlarming { try sheet.writeText("◄", row: row - 1, column: 3, format: formats[.balanced]) }
    }
    func place(_ column: Int) -> SheetRange {
      SheetRange(sheet: sheet.name, range: CellRange(rows: rows, columns: column...column))
    }
    var chart = Chart(
      .column, title: "Units in Apple's reports without a transaction here", series: "Unexplained",
      categories: place(0), values: place(2), colour: Palette.red)
    chart.valueFormat = "#,##0"
    let lines = 18
    (chart.width, chart.height) = (730, lines * SummaryPage.pixelsPerRow)
    chart.description = "Unexplained units of Apple's sales reports, day by day."
    try workbook.addChart(chart, to: sheet, row: top, column: 4)
    row = max(row, top + lines) + 1
  }
}
