import Reconciliation
import Spreadsheet

extension SummaryPage {
  // MARK: - Money

  /// Orders and money by disposition: numbers of orders first, then one line for each currency.
  mutating func writeMoney(_ totals: Totals, users: DataSheet?) throws(SpreadsheetError) {
    let dispositions = Disposition.inMoneyTotals
    try heading("Orders and money by disposition")
    try sheet.setRow(row, height: 32)
    try header(["", "Ordered"] + dispositions.map(\.rawValue.asWords))
    try sheet.writeText("Number of orders", row: row, column: 0, format: formats.tableText)
    let counts = dispositions.map { totals.ordersByDisposition[$0.index] }
    for (offset, count) in counts.enumerated() {
      try sheet.writeInteger(count, row: row, column: 2 + offset, format: formats.tableCount)
    }
    try writeRowSum(of: 2...1 + counts.count, result: Double(counts.reduce(0, +)), format: formats.tableCount)
    for (currency, ordered) in totals.ordered.sorted {
      let format = formats.amount(digits: currency.digits)
      try sheet.writeText(currency.code, row: row, column: 0, format: formats.tableText)
      for (offset, disposition) in dispositions.enumerated() {
        let units = totals.amountByDisposition[disposition.index].minorUnits[currency] ?? 0
        let amount = Money.number(units, digits: currency.digits)
        let sums =
          users?.sums(of: disposition.rawValue, whereCurrencyIs: CellReference(row: row, column: 0)) ?? []
        try writeSum(sums, result: amount, column: 2 + offset, format: formats.share(digits: currency.digits))
      }
      try writeRowSum(
        of: 2...1 + dispositions.count, result: Money.number(ordered, digits: currency.digits), format: format)
    }
    try writeApart(.sandbox, "Sandbox, in no total", totals)
    try writeApart(.badRow, "Rows that break the contract", totals)
    row += 1
  }

  /// A number, by formulas where there are any.
  private func writeSum(
    _ sums: [Formula], result: Double, column: Int, format: CellFormat
  ) throws(SpreadsheetError) {
    if sums.isEmpty {
      try sheet.writeNumber(result, row: row, column: column, format: format)
    } else {
      try sheet.writeFormula(.sum(of: sums), result: result, row: row, column: column, format: format)
    }
  }

  /// The sum of this row's cells in its second column; ends the row.
  private mutating func writeRowSum(
    of columns: ClosedRange<Int>, result: Double, format: CellFormat
  ) throws(SpreadsheetError) {
    let cells = CellRange(rows: row...row, columns: columns)
    try sheet.writeFormula("SUM(\(cells))", result: result, row: row, column: 1, format: format)
    row += 1
  }

  private mutating func writeApart(
    _ disposition: Disposition, _ label: String, _ totals: Totals
  ) throws(SpreadsheetError) {
    let orders = totals.ordersByDisposition[disposition.index]
    let amounts = totals.amountByDisposition[disposition.index].texts.sorted { $0.key < $1.key }
    try sheet.writeText(label, row: row, column: 0, format: formats.label)
    try sheet.writeInteger(orders, row: row, column: 1, format: formats.tableCount)
    try sheet.writeText(
      amounts.map { "\($0.value) \($0.key)" }.joined(separator: " · "), row: row, column: 2, format: formats.label)
    row += 1
  }

  // MARK: - Findings

  mutating func writeFindings(
    _ findings: FindingsSummary, sheet data: DataSheet?, in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    try heading("Findings")
    try header(["", "Opening", "New", "Closed", "Closing"])
    try sheet.setRow(row, height: 30)
    try sheet.writeText("Open findings", row: row, column: 0, format: formats.label)
    for (offset, number) in [findings.opening, findings.new, findings.closed].enumerated() {
      try sheet.writeInteger(number, row: row, column: 1 + offset, format: formats.figure)
    }
    let (opening, new) = (CellReference(row: row, column: 1), CellReference(row: row, column: 2))
    let closed = CellReference(row: row, column: 3)
    try sheet.writeFormula(
      "\(opening)+\(new)-\(closed)", result: Double(findings.closing), row: row, column: 4, format: formats.figure)
    row += 2
    try writeAges(findings)
    try writeKinds(findings, sheet: data, in: workbook)
  }

  /// How long ago the deals happened, in findings and money, and how long people have known.
  private mutating func writeAges(_ findings: FindingsSummary) throws(SpreadsheetError) {
    let currencies = findings.atStake.sorted.map(\.currency)
    try sheet.setRow(row, height: 32)
    try header(
      ["Days since the deal", "Findings", "Of unknown amount"] + currencies.map { "\($0) at stake" }
        + ["Known for as long"])
    for bucket in findings.ageing.buckets {
      let stake = findings.ageing[bucket]
      try sheet.writeText(bucket.title, row: row, column: 0, format: formats.tableText)
      try sheet.writeInteger(stake.findings, row: row, column: 1, format: formats.tableCount)
      try sheet.writeInteger(stake.unknown, row: row, column: 2, format: formats.tableCount)
      for (offset, currency) in currencies.enumerated() {
        try sheet.writeNumber(
          Money.number(stake.money.minorUnits[currency] ?? 0, digits: currency.digits), row: row, column: 3 + offset,
          format: formats.share(digits: currency.digits))
      }
      try sheet.writeInteger(
        findings.ageing.known(bucket), row: row, column: 3 + currencies.count, format: formats.tableCount)
      row += 1
    }
    row += 1
  }

  /// Open findings by kind on the left, money at stake beside them, and the chart of the kinds on the right.
  private mutating func writeKinds(
    _ findings: FindingsSummary, sheet data: DataSheet?, in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    let top = row
    let kinds = findings.openKinds
    try header(["Kind", "Severity", "Open"], texts: 2)
    for kind in kinds {
      try sheet.writeLink(
        to: CellReference(row: 0, column: 0), on: "Findings", text: kind.rawValue.asWords, row: row, column: 0,
        format: formats.link)
      try sheet.writeText(kind.severity.rawValue, row: row, column: 1, format: formats.tableText)
      try sheet.writeInteger(findings.byKind[kind]?.findings ?? 0, row: row, column: 2, format: formats.tableCount)
      row += 1
    }
    let bottom = row
    if !kinds.isEmpty {
      try sheet.addConditionalFormat(
        .text(equals: "critical", formats.bad), in: CellRange(rows: top + 1...bottom - 1, columns: 1...1))
    }
    row = top
    try header(["Currency", "At stake"], from: 4)
    for (currency, units) in findings.atStake.sorted {
      try sheet.writeText(currency.code, row: row, column: 4, format: formats.tableText)
      let sums = data?.sums(of: "at_stake", whereCurrencyIs: CellReference(row: row, column: 4)) ?? []
      try writeSum(
        sums, result: Money.number(units, digits: currency.digits), column: 5,
        format: formats.amount(digits: currency.digits))
      row += 1
    }
    try sheet.writeText("Of unknown amount", row: row, column: 4, format: formats.tableText)
    try sheet.writeInteger(findings.open.unknown, row: row, column: 5, format: formats.tableCount)
    row += 1
    // The chart is as high as the table of kinds, at least as a few bars need.
    let chartRows = max(kinds.count + 1, 6)
    row = max(row, kinds.isEmpty ? bottom : top + chartRows, bottom) + 1
    guard !kinds.isEmpty else { return }
    let rows = top + 1...bottom - 1
    var chart = Chart(
      .bar,
      series: [
        Chart.Series(
          name: "Open findings", categories: place(rows, column: 0), values: place(rows, column: 2),
          colour: Palette.blue)
      ])
    chart.title = "Open findings by kind"
    chart.legend = .none
    (chart.width, chart.height) = (425, chartRows * SummaryPage.pixelsPerRow)
    chart.description = "Bars: how many findings of each kind are open."
    try workbook.addChart(chart, to: sheet, row: top, column: 7)
  }

  // MARK: - The last nights

  /// The currencies with the most orders in the period, then those of the history; as many as the page is wide.
  func chartedCurrencies(_ totals: Totals, _ history: [Night]) -> [Currency] {
    var orders: [Currency: Int] = [:]
    for (key, line) in totals.users { orders[key.currency, default: 0] += line.orders }
    for night in history {
      for money in [night.paid, night.delivered, night.atStake] {
        for currency in money.minorUnits.keys { orders[currency, default: 0] += 0 }
      }
    }
    let sorted = orders.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    return sorted.prefix(3).map(\.key)
  }

  mutating func writeHistory(
    _ history: [Night], currencies: [Currency], in workbook: borrowing Workbook
  ) throws(SpreadsheetError) {
    guard !history.isEmpty, !currencies.isEmpty else { return }
    try heading(history.count == 1 ? "The last night" : "The last \(history.count) nights")
    try gap()
    let top = row
    row += SummaryPage.chartHeight * ((currencies.count + 1) / 2)
    try header(["Night"] + currencies.flatMap { ["\($0) paid", "\($0) delivered", "\($0) at stake"] })
    let rows = row...row + history.count - 1
    for night in history {
      try sheet.writeText(night.date, row: row, column: 0, format: formats.tableText)
      for (position, currency) in currencies.enumerated() {
        for (offset, money) in [night.paid, night.delivered, night.atStake].enumerated() {
          try sheet.writeNumber(
            Money.number(money.minorUnits[currency] ?? 0, digits: currency.digits), row: row,
            column: 1 + 3 * position + offset, format: formats.amount(digits: currency.digits))
        }
      }
      row += 1
    }
    for (position, currency) in currencies.enumerated() {
      try workbook.addChart(
        historyChart(currency, rows: rows, firstColumn: 1 + 3 * position), to: sheet,
        row: top + SummaryPage.chartHeight * (position / 2), column: position.isMultiple(of: 2) ? 0 : 5)
    }
  }

  private func historyChart(_ currency: Currency, rows: ClosedRange<Int>, firstColumn: Int) -> Chart {
    let lines = [("Paid", Palette.green), ("Delivered", Palette.blue), ("At stake", Palette.red)]
    var chart = Chart(
      // One or two nights are no line yet.
      rows.count < 3 ? .column : .line,
      series: lines.enumerated().map { offset, line in
        Chart.Series(
          name: line.0, categories: place(rows, column: 0), values: place(rows, column: firstColumn + offset),
          colour: line.1)
      })
    chart.title = "Paid, delivered and at stake, \(currency)"
    chart.valueFormat = "#,##0"
    chart.legend = .bottom
    (chart.width, chart.height) = (640, 290)
    chart.description = "Paid, delivered and at stake in \(currency), night by night."
    return chart
  }

  private func place(_ rows: ClosedRange<Int>, column: Int) -> SheetRange {
    SheetRange(sheet: sheet.name, range: CellRange(rows: rows, columns: column...column))
  }
}

