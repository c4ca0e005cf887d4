import Reconciliation
import Spreadsheet

extension SummaryPage {
  /// In rows, including the gap below.
  private static let chartHeight = 13
  /// High enough for the names of all outcomes.
  private static let barChartHeight = 22
  private static let chartColumns = [0, 2, 6]
  /// In pixels: as wide as the narrowest gap between these columns.
  private static let chartSize = (width: 408, height: (chartHeight - 1) * pixelsPerRow)

  /// Each chart shows one measure in one unit. A single point gets no chart.
  mutating func writeCharts(
    _ money: MoneyTable, totals: Totals, history: [Night], in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    let counted = Disposition.inMoneyTotals.filter { totals.ordersByDisposition[$0.index] > 0 }
    if counted.count > 1 {
      try heading("Orders of the period by outcome")
      try gap()
      let columns = money.firstColumn...money.firstColumn + Disposition.inMoneyTotals.count - 1
      var chart = Chart(
        .bar, title: "Number of orders by outcome", series: "Orders",
        categories: SheetRange(
          sheet: sheet.name, range: CellRange(rows: money.header...money.header, columns: columns)),
        values: SheetRange(sheet: sheet.name, range: CellRange(rows: money.orders...money.orders, columns: columns)),
        colour: Palette.blue)
      (chart.width, chart.height) = (900, (SummaryPage.barChartHeight - 1) * SummaryPage.pixelsPerRow)
      chart.description = "Bars: how many orders of the period ended in each outcome."
      try workbook.addChart(chart, to: sheet, row: row, column: 0)
      row += SummaryPage.barChartHeight
    }
    try writeExposure(history, in: workbook)
  }

  private mutating func writeExposure(_ history: [Night], in workbook: borrowing Workbook) throws(SpreadsheetError) {
    let currencies = history.reduce(into: Set()) { $0.formUnion($1.atStake.minorUnits.keys) }.sorted()
    guard !currencies.isEmpty else { return }
    try heading("Amount at risk at the end of each night, last \(history.count)")
    if history.count == 1 {
      try line("The chart begins with the second night.", formats[.label])
      return
    }
    try gap()
    let top = row
    let across = SummaryPage.chartColumns.count
    let lines = (currencies.count + across - 1) / across
    row += SummaryPage.chartHeight * lines
    var places: [Currency: CellRange] = [:]
    var nights = row...row
    for start in stride(from: 0, to: currencies.count, by: SummaryPage.lastColumn) {
      let block = currencies[start..<min(start + SummaryPage.lastColumn, currencies.count)]
      try header(["Night"] + block.map(\.code))
      nights = row...row + history.count - 1
      for night in history {
        try writeRow([.text(night.date)] + block.map { .money(night.atStake.minorUnits[$0] ?? 0, $0) })
      }
      for (offset, currency) in block.enumerated() {
        places[currency] = CellRange(rows: nights, columns: 1 + offset...1 + offset)
      }
      row += 1
    }
    for (position, currency) in currencies.enumerated() {
      guard let values = places[currency] else { continue }
      let categories = CellRange(rows: values.rows, columns: 0...0)
      var chart = Chart(
        .line, title: "Amount at risk, \(currency)", series: "Amount at risk",
        categories: SheetRange(sheet: sheet.name, range: categories),
        values: SheetRange(sheet: sheet.name, range: values), colour: Palette.red)
      chart.valueMinimum = 0
      chart.valueFormat = "#,##0"
      (chart.width, chart.height) = SummaryPage.chartSize
      chart.description = "Line: amount at risk in \(currency) at the end of each night."
      try workbook.addChart(
        chart, to: sheet, row: top + SummaryPage.chartHeight * (position / across),
        column: SummaryPage.chartColumns[position % across])
    }
  }
}
