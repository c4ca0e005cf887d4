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
    let counts = dispositions.enumerated().map { offset, disposition in
      let word = Criterion.cell(CellReference(row: table.header, column: 2 + offset))
      return LiveFigure(
        options.listsAllOrders ? sheets.count(.orders, where: [("disposition", word)]) : nil,
        totals.ordersByDisposition[disposition.index])
    }
    let count = dispositions.reduce(0) { $0 + totals.ordersByDisposition[$1.index] }
    try writeRow([.text("Number of orders"), .figure(LiveFigure(dispositionSum, count))] + counts.map { .figure($0) })
    for (currency, ordered) in totals.ordered.sorted {
      table.rows[currency] = row
      names["Ordered_\(currency)"] = CellReference(row: row, column: 1)
      let code = Criterion.cell(CellReference(row: row, column: 0))
      let amounts = dispositions.map { disposition in
        LiveFigure(
          sheets.sum(.users, disposition.rawValue, where: [("currency", code)]),
          totals.amountByDisposition[disposition.index].minorUnits[currency] ?? 0, currency)
      }
      try writeRow(
        [.text(currency.code), .figure(LiveFigure(dispositionSum, ordered, currency))] + amounts.map { .figure($0) })
    }
    for currency in totals.ordered.currencies(with: atStake) {
      // A currency of findings alone has no row above, so each label names its own.
      let code = Criterion.currency(endOf: CellReference(row: row, column: 0))
      let sum = sheets.sum(.findings, "at_stake", where: [("currency", code)])
      try writeRow([
        .text("\(MoneyTable.atStakeTitle), \(currency)"),
        .figure(LiveFigure(sum, atStake.minorUnits[currency] ?? 0, currency)),
      ])
    }
    for (disposition, label) in [
      (Disposition.sandbox, "Sandbox (excluded)"), (.badRow, "Invalid source rows (excluded)"),
    ] {
      table.apart[disposition] = CellReference(row: row, column: 1)
      try sheet.writeText(label, row: row, column: 0, format: formats[.label])
      try sheet.writeInteger(
        totals.ordersByDisposition[disposition.index], row: row, column: 1, format: formats[.tableCount])
      try sheet.merge(
        totals.amountByDisposition[disposition.index].words.joined(separator: " · "), 2...SummaryPage.lastColumn,
        row: row, formats[.label])
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
    try line(SalesLine.note(facts), formats[.label])
    // A fiscal period makes a third line.
    try sheet.setRow(row, height: 48)
    try header([""] + SalesLine.headers(facts))
    for line in lines {
      func figure(_ formula: Formula?, _ scaled: (units: Int128, digits: UInt8)) -> SummaryCell {
        .figure(LiveFigure(formula, Money.number(scaled.units, digits: scaled.digits), digits: line.digits))
      }
      func amount(_ formula: Formula?, _ units: Int128) -> SummaryCell { figure(formula, (units, line.digits)) }
      let word = Criterion.cell(CellReference(row: row, column: 0))
      let proceeds = [line.proceeds?.proceedsEarned, line.proceeds?.proceedsPaid]
        .map { $0.map { figure(nil, $0.scaled(digits: line.digits)) } ?? .blank }
      let owed = CellRange(rows: row...row, columns: 6...5 + line.owed.count)
      try writeRow(
        [
          .text(line.code), amount(nil, line.ordered),
          amount(sheets.sum(.refunds, "amount", where: [("currency", word)]), line.refunded),
        ] + proceeds + [amount("SUM(\(owed))", line.owed.reduce(0, +))] + line.owed.map { amount(nil, $0) })
    }
    row += 1
  }

  mutating func writeRefundRates(_ facts: SummaryFacts) throws(SpreadsheetError) {
    let (products, users) = facts.refundRates
    if products.isEmpty { return }
    try heading(RefundRate.title)
    let isWave = facts.unusual.contains { $0.subject == .refunds }
    let wave = isWave ? " There are unusually many refunds; see the top of this sheet." : ""
    try line(RefundRate.note + wave, formats[.label])
    for (title, rates) in [("Product", products), ("User", users)] where !rates.isEmpty {
      try header([title, "Currency", "Ordered", "Refunded so far", "Rate"], texts: 2)
      for rate in rates {
        try writeRow([
          .text(rate.name), .text(rate.currency.code), .money(rate.ordered, rate.currency),
          .money(rate.refunded, rate.currency), .rightText(rate.words),
        ])
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
      figures.journal[currency] = code
      try writeRow([.text(currency.code)] + ["debit", "credit"].map { .figure(sheets.journal($0, currency, code)) })
    }
    row += 1
  }

  /// The sum of a row over the columns of dispositions.
  private var dispositionSum: Formula {
    "SUM(\(CellRange(rows: row...row, columns: 2...1 + Disposition.inMoneyTotals.count)))"
  }

  // MARK: - From night to night

  mutating func writeRollForward(_ facts: SummaryFacts, _ sheets: TableFormulas) throws(SpreadsheetError) {
    let findings = facts.findings
    let roll = findings.rollForward
    let words = RollForwardTitles(facts, options)
    try heading(words.title)
    try line(words.compared, formats[.label])
    let own = sheets[.periodFindings]
    if own != nil { try sheet.setRow(row, height: 44) }
    try header(
      ["", words.opening, "+ New", "− Closed", "± Changed", words.closing]
        + (own == nil ? [] : ["of which: this period's transactions"]))
    let place = { (row: Int, column: Int) in CellReference(row: row, column: column) }
    (figures.opening, figures.new, figures.closed) = (place(row, 1), place(row, 2), place(row, 3))
    names["OpenFindings"] = place(row, 5)
    names["NewFindings"] = place(row, 2)
    names["ClosedFindings"] = place(row, 3)
    try writeRow(
      [
        .text("Findings"), .count(findings.opening), .count(findings.new), .count(findings.closed), .blank,
        .figure(LiveFigure("\(place(row, 1))+\(place(row, 2))-\(place(row, 3))", findings.closing)),
      ] + (own.map { [.figure(LiveFigure(sheets.rows(.periodFindings, "finding_id"), $0.rowCount))] } ?? []))
    for currency in roll.currencies(with: findings.atStake) {
      let code = Criterion.cell(place(row, 0))
      func units(_ money: MoneyByCurrency) -> Int128 { money.minorUnits[currency] ?? 0 }
      func changes(_ words: [StaticString]) -> Formula? {
        guard facts.changes.since != nil else { return nil }
        return .sum(
          of: words.map { sheets.sum(.changes, "at_stake", where: [("currency", code), ("change", .word($0))]) })
      }
      func figure(_ formula: Formula?, _ units: Int128) -> SummaryCell { .figure(LiveFigure(formula, units, currency)) }
      let ofPeriod = own.map {
        figure(
          sheets.sum(.periodFindings, "at_stake", where: [("currency", code)]),
          $0.tableTotals.units(of: currency.code, column: $0.position(of: "at_stake")))
      }
      figures.closing[currency] = place(row, 5)
      names["AtStake_\(currency)"] = place(row, 5)
      try writeRow(
        [
          .text(currency.code), figure(nil, units(roll.opening)),
          figure(changes(["new", "reopened"]), units(roll.new)), figure(changes(["closed"]), units(roll.closed)),
          figure(nil, units(roll.changed)),
          figure(
            "\(place(row, 1))+\(place(row, 2))-\(place(row, 3))+\(place(row, 4))", roll.closing(currency)),
        ] + [ofPeriod].compactMap(\.self))
    }
    try sheet.writeText("Amount unknown", row: row, column: 0, format: formats[.tableText])
    try sheet.writeInteger(findings.open.unknown, row: row, column: 5, format: formats[.tableCount])
    names["AtStakeUnknown"] = place(row, 5)
    row += 2
  }

  mutating func writeChanges(_ changes: ChangesSummary) throws(SpreadsheetError) {
    guard changes.since != nil else { return }
    try heading("What changed")
    try line(changes.countsText, formats[.label])
    try bullets(changes.lines)
    row += 1
  }

  // MARK: - Earlier days

  private static let adjustmentRows = 60

  mutating func writeAdjustments(_ facts: SummaryFacts) throws(SpreadsheetError) {
    let (adjustments, revisions) = (facts.adjustments, facts.tieOut?.revisions ?? [])
    if adjustments.isEmpty, revisions.isEmpty, facts.adjustmentsNote == nil { return }
    try heading("Adjustments to earlier days")
    try bullets(revisions.prefix(SummaryPage.adjustmentRows).map(\.words))
    let more = revisions.count - SummaryPage.adjustmentRows
    if more > 0 {
      try line("… and \(counted(more, "more day")), in summary.json.", formats[.value])
    }
    if let note = facts.adjustmentsNote { try line(note, formats[.label]) }
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
        "… and \(counted(rest, "more line")), in summary.json. The net amounts below include them.",
        formats[.value])
    }
    try writeNet(adjustments)
    row += 1
  }

  private mutating func writeNet(_ adjustments: [Adjustment]) throws(SpreadsheetError) {
    for (currency, units) in adjustments.net {
      let between = Array(repeating: SummaryCell.blank, count: Adjustment.titles.count - 1)
      try writeRow([.text(Adjustment.netTitle), .blank, .text(currency.code)] + between + [.money(units, currency)])
    }
  }

  private mutating func write(_ adjustment: Adjustment) throws(SpreadsheetError) {
    let (currency, reported, now) = (adjustment.bucket.currency, adjustment.reported, adjustment.now)
    func difference(from column: Int) -> Formula {
      "\(CellReference(row: row, column: column + 1))-\(CellReference(row: row, column: column))"
    }
    try writeRow([
      .text(adjustment.bucket.disposition.title), .text(adjustment.day), .text(currency.code), .count(reported.orders),
      .count(now.orders), .figure(LiveFigure(difference(from: 3), now.orders - reported.orders)),
      .money(reported.minorUnits, currency), .money(now.minorUnits, currency),
      .figure(LiveFigure(difference(from: 6), now.minorUnits - reported.minorUnits, currency)),
    ])
  }
}
