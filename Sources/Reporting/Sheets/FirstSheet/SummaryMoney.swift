import Reconciliation
import Spreadsheet

extension SummaryPage {
  // MARK: - Money

  mutating func writeMoney(
    _ totals: Totals, _ atStake: MoneyByCurrency, _ sheets: TableFormulas
  ) throws(SpreadsheetError) -> MoneyTable {
    let dispositions = Disposition.inMoneyTotals
    try heading("Orders and money by outcome")
    // Titles have up to three lines.
    try sheet.setRow(row, height: 44)
    var table = MoneyTable(header: row, orders: row + 1, firstColumn: 2)
    try header(["", "Ordered"] + dispositions.map(\.title))
    try sheet.writeText("Number of orders", row: row, column: 0, format: formats.tableText)
    for (offset, disposition) in dispositions.enumerated() {
      let word = Criterion.cell(CellReference(row: table.header, column: 2 + offset))
      let count = totals.ordersByDisposition[disposition.index]
      try write(
        LiveFigure(options.listsAllOrders ? sheets.count(.orders, where: [("disposition", word)]) : nil, count),
        column: 2 + offset, formats.tableCount)
    }
    let count = dispositions.reduce(0) { $0 + totals.ordersByDisposition[$1.index] }
    try writeRowSum(result: Double(count), format: formats.tableCount)
    for (currency, ordered) in totals.ordered.sorted {
      table.rows[currency] = row
      try sheet.writeText(currency.code, row: row, column: 0, format: formats.tableText)
      names["Ordered_\(currency)"] = CellReference(row: row, column: 1)
      for (offset, disposition) in dispositions.enumerated() {
        let units = totals.amountByDisposition[disposition.index].minorUnits[currency] ?? 0
        let code = Criterion.cell(CellReference(row: row, column: 0))
        try write(
          LiveFigure(sheets.sum(.users, disposition.rawValue, where: [("currency", code)]), units, currency),
          column: 2 + offset, formats.amount(digits: currency.digits))
      }
      try writeRowSum(
        result: Money.number(ordered, digits: currency.digits), format: formats.amount(digits: currency.digits))
    }
    for currency in totals.ordered.currencies(with: atStake) {
      let code = table.rows[currency].map { Criterion.cell(CellReference(row: $0, column: 0)) }
      try sheet.writeText(
        "\(MoneyTable.atStakeTitle), \(currency)", row: row, column: 0, format: formats.tableText)
      try write(
        LiveFigure(
          code.map { sheets.sum(.findings, "at_stake", where: [("currency", $0)]) },
          atStake.minorUnits[currency] ?? 0, currency), column: 1, formats.amount(digits: currency.digits))
      row += 1
    }
    for (disposition, label) in [
      (Disposition.sandbox, "Sandbox (excluded)"), (.badRow, "Invalid source rows (excluded)"),
    ] {
      table.apart[disposition] = CellReference(row: row, column: 1)
      try sheet.writeText(label, row: row, column: 0, format: formats.label)
      try sheet.writeInteger(
        totals.ordersByDisposition[disposition.index], row: row, column: 1, format: formats.tableCount)
      try sheet.mergeCells(
        CellRange(rows: row...row, columns: 2...SummaryPage.lastColumn),
        text: totals.amountByDisposition[disposition.index].words.joined(separator: " · "), format: formats.label)
      row += 1
    }
    row += 1
    return table
  }

  mutating func writeSalesAndLiabilities(
    _ totals: Totals, _ facts: SummaryFacts, _ sheets: TableFormulas
  ) throws(SpreadsheetError) {
    let lines = SalesLine.all(totals, facts)
    if lines.isEmpty { return }
    try heading(SalesLine.title)
    try line(SalesLine.note(facts), formats.label, height: nil)
    // A fiscal period makes a third line.
    try sheet.setRow(row, height: 48)
    try header([""] + SalesLine.headers(facts))
    for line in lines {
      let format = formats.amount(digits: line.digits)
      let word = Criterion.cell(CellReference(row: row, column: 0))
      func number(_ units: Int128) -> Double { Money.number(units, digits: line.digits) }
      try sheet.writeText(line.code, row: row, column: 0, format: formats.tableText)
      try sheet.writeNumber(number(line.ordered), row: row, column: 1, format: format)
      try write(
        LiveFigure(sheets.sum(.refunds, "amount", where: [("currency", word)]), number(line.refunded)), column: 2,
        format)
      for (offset, figure) in [line.proceeds?.proceedsEarned, line.proceeds?.proceedsPaid].enumerated() {
        guard let figure else { continue }
        try sheet.writeNumber(
          Money.number(figure.scaled, digits: figure.digits), row: row, column: 3 + offset, format: format)
      }
      let cells = CellRange(rows: row...row, columns: 6...5 + line.owed.count)
      try sheet.writeFormula(
        "SUM(\(cells))", result: number(line.owed.reduce(0, +)), row: row, column: 5, format: format)
      for (offset, units) in line.owed.enumerated() {
        try sheet.writeNumber(
          number(units), row: row, column: 6 + offset, format: formats.amount(digits: line.digits))
      }
      row += 1
    }
    row += 1
  }

  mutating func writeRefundRates(_ facts: SummaryFacts) throws(SpreadsheetError) {
    let (products, users) = facts.refundRates
    if products.isEmpty { return }
    try heading(RefundRate.title)
    let isWave = facts.unusual.contains { $0.subject == .refunds }
    let wave = isWave ? " There are unusually many refunds; see the top of this sheet." : ""
    try line(RefundRate.note + wave, formats.label, height: nil)
    for (title, rates) in [("Product", products), ("User", users)] where !rates.isEmpty {
      try header([title, "Currency", "Ordered", "Refunded so far", "Rate"], texts: 2)
      for rate in rates {
        let format = formats.amount(digits: rate.currency.digits)
        try sheet.writeText(CellText.fitting(rate.name), row: row, column: 0, format: formats.tableText)
        try sheet.writeText(rate.currency.code, row: row, column: 1, format: formats.tableText)
        for (offset, units) in [rate.ordered, rate.refunded].enumerated() {
          try sheet.writeNumber(
            Money.number(units, digits: rate.currency.digits), row: row, column: 2 + offset, format: format)
        }
        try sheet.writeText(rate.words, row: row, column: 4, format: formats.tableTextRight)
        row += 1
      }
    }
    row += 1
  }

  mutating func writeJournal(_ sheets: TableFormulas) throws(SpreadsheetError) {
    guard let journal = sheets[.journal], journal.rowCount > 0 else { return }
    try heading("Journal")
    try header(["", "Debits", "Credits"])
    for currency in journal.tableTotals.sorted.compactMap({ Currency(code: $0.currency) }) {
      let code = CellReference(row: row, column: 0)
      try sheet.writeText(currency.code, row: row, column: 0, format: formats.tableText)
      for (offset, column) in ["debit", "credit"].enumerated() {
        try write(
          sheets.journal(column, currency, code), column: 1 + offset, formats.amount(digits: currency.digits))
      }
      figures.journal[currency] = code
      row += 1
    }
    row += 1
  }

  private mutating func writeRowSum(result: Double, format: CellFormat) throws(SpreadsheetError) {
    let cells = CellRange(rows: row...row, columns: 2...1 + Disposition.inMoneyTotals.count)
    try sheet.writeFormula("SUM(\(cells))", result: result, row: row, column: 1, format: format)
    row += 1
  }

  // MARK: - From night to night

  mutating func writeRollForward(_ facts: SummaryFacts, _ sheets: TableFormulas) throws(SpreadsheetError) {
    let findings = facts.findings
    let roll = findings.rollForward
    let words = RollForwardTitles(facts, options)
    try heading(words.title)
    try line(words.compared, formats.label, height: nil)
    let own = sheets[.periodFindings]
    if own != nil { try sheet.setRow(row, height: 44) }
    try header(
      ["", words.opening, "+ New", "− Closed", "± Changed", words.closing]
        + (own == nil ? [] : ["of which: this period's transactions"]))
    try sheet.writeText("Findings", row: row, column: 0, format: formats.tableText)
    if let own {
      try write(
        LiveFigure(sheets.rows(.periodFindings, "finding_id"), own.rowCount), column: 6, formats.tableCount)
    }
    let place = { (row: Int, column: Int) in CellReference(row: row, column: column) }
    for (offset, count) in [findings.opening, findings.new, findings.closed].enumerated() {
      try sheet.writeInteger(count, row: row, column: 1 + offset, format: formats.tableCount)
    }
    (figures.opening, figures.new, figures.closed) = (place(row, 1), place(row, 2), place(row, 3))
    try sheet.writeFormula(
      "\(place(row, 1))+\(place(row, 2))-\(place(row, 3))", result: Double(findings.closing), row: row, column: 5,
      format: formats.tableCount)
    names["OpenFindings"] = place(row, 5)
    names["NewFindings"] = place(row, 2)
    names["ClosedFindings"] = place(row, 3)
    row += 1
    for currency in roll.currencies(with: findings.atStake) {
      let format = formats.amount(digits: currency.digits)
      let code = Criterion.cell(place(row, 0))
      func units(_ money: MoneyByCurrency) -> Int128 { money.minorUnits[currency] ?? 0 }
      func changes(_ words: [StaticString]) -> Formula? {
        guard facts.changes.since != nil else { return nil }
        return .sum(
          of: words.map { sheets.sum(.changes, "at_stake", where: [("currency", code), ("change", .word($0))]) })
      }
      try sheet.writeText(currency.code, row: row, column: 0, format: formats.tableText)
      try write(LiveFigure(nil, units(roll.opening), currency), column: 1, format)
      try write(LiveFigure(changes(["new", "reopened"]), units(roll.new), currency), column: 2, format)
      try write(LiveFigure(changes(["closed"]), units(roll.closed), currency), column: 3, format)
      try write(LiveFigure(nil, units(roll.changed), currency), column: 4, format)
      try sheet.writeFormula(
        "\(place(row, 1))+\(place(row, 2))-\(place(row, 3))+\(place(row, 4))",
        result: Money.number(roll.closing(currency), digits: currency.digits), row: row, column: 5, format: format)
      if let own {
        try write(
          LiveFigure(
            sheets.sum(.periodFindings, "at_stake", where: [("currency", code)]),
            own.tableTotals.units(of: currency.code, column: own.position(of: "at_stake")), currency), column: 6, format
        )
      }
      figures.closing[currency] = place(row, 5)
      names["AtStake_\(currency)"] = place(row, 5)
      row += 1
    }
    try sheet.writeText("Amount unknown", row: row, column: 0, format: formats.tableText)
    try sheet.writeInteger(findings.open.unknown, row: row, column: 5, format: formats.tableCount)
    names["AtStakeUnknown"] = place(row, 5)
    row += 2
  }

  mutating func writeChanges(_ changes: ChangesSummary) throws(SpreadsheetError) {
    guard changes.since != nil else { return }
    try heading("What changed")
    try line(changes.countsText, formats.label, height: nil)
    for text in changes.lines { try line("•  \(text)", formats.value, height: nil) }
    row += 1
  }

  // MARK: - Earlier days

  private static let adjustmentRows = 60

  mutating func writeAdjustments(_ facts: SummaryFacts) throws(SpreadsheetError) {
    let (adjustments, revisions) = (facts.adjustments, facts.tieOut?.revisions ?? [])
    if adjustments.isEmpty, revisions.isEmpty, facts.adjustmentsNote == nil { return }
    try heading("Adjustments to earlier days")
    for revision in revisions.prefix(SummaryPage.adjustmentRows) {
      try line("•  \(revision.words)", formats.value, height: nil)
    }
    let more = revisions.count - SummaryPage.adjustmentRows
    if more > 0 {
      try line("… and \(grouped(more)) more day\(more == 1 ? "" : "s"), in summary.json.", formats.value, height: nil)
    }
    if let note = facts.adjustmentsNote { try line(note, formats.label, height: nil) }
    if adjustments.isEmpty {
      row += 1
      return
    }
    try sheet.setRow(row, height: 32)
    try header(["Outcome", "Day", "Currency"], texts: 3)
    row -= 1
    try header(Adjustment.titles, texts: 0, from: 3)
    for adjustment in adjustments.prefix(SummaryPage.adjustmentRows) { try write(adjustment) }
    let rest = adjustments.count - SummaryPage.adjustmentRows
    if rest > 0 {
      try line(
        "… and \(grouped(rest)) more line\(rest == 1 ? "" : "s"), in summary.json. The net amounts below include them.",
        formats.value, height: nil)
    }
    try writeNet(adjustments)
    row += 1
  }

  private mutating func writeNet(_ adjustments: [Adjustment]) throws(SpreadsheetError) {
    for (currency, units) in adjustments.net {
      try sheet.writeText(Adjustment.netTitle, row: row, column: 0, format: formats.tableText)
      try sheet.writeText(currency.code, row: row, column: 2, format: formats.tableText)
      try sheet.writeNumber(
        Money.number(units, digits: currency.digits), row: row, column: 8,
        format: formats.amount(digits: currency.digits))
      row += 1
    }
  }

  private mutating func write(_ adjustment: Adjustment) throws(SpreadsheetError) {
    let currency = adjustment.bucket.currency
    let format = formats.amount(digits: currency.digits)
    try sheet.writeText(
      adjustment.bucket.disposition.title, row: row, column: 0, format: formats.tableText)
    try sheet.writeText(adjustment.day, row: row, column: 1, format: formats.tableText)
    try sheet.writeText(currency.code, row: row, column: 2, format: formats.tableText)
    try sheet.writeInteger(adjustment.reported.orders, row: row, column: 3, format: formats.tableCount)
    try sheet.writeInteger(adjustment.now.orders, row: row, column: 4, format: formats.tableCount)
    try writeDifference(
      from: 3, to: 4, result: Double(adjustment.now.orders - adjustment.reported.orders), column: 5,
      formats.tableCount)
    for (column, sum) in [(6, adjustment.reported), (7, adjustment.now)] {
      try sheet.writeNumber(
        Money.number(sum.minorUnits, digits: currency.digits), row: row, column: column, format: format)
    }
    try writeDifference(
      from: 6, to: 7,
      result: Money.number(adjustment.now.minorUnits - adjustment.reported.minorUnits, digits: currency.digits),
      column: 8, format)
    row += 1
  }

  private func writeDifference(
    from: Int, to: Int, result: Double, column: Int, _ format: CellFormat
  ) throws(SpreadsheetError) {
    let (before, after) = (CellReference(row: row, column: from), CellReference(row: row, column: to))
    try sheet.writeFormula("\(after)-\(before)", result: result, row: row, column: column, format: format)
  }
}
