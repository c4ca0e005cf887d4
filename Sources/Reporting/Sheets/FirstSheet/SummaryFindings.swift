import Reconciliation
import Spreadsheet

extension SummaryPage {
  private static let currenciesAcross = 6

  mutating func writeFindings(_ facts: SummaryFacts, _ sheets: TableFormulas) throws(SpreadsheetError) {
    let findings = facts.findings
    try heading("Open findings by kind")
    if findings.closing == 0 {
      try line("Nothing is open.", formats[.label])
      row += 1
      return
    }
    let currencies = findings.atStake.sorted.map(\.currency)
    try writeKinds(findings, sheets, currencies)
    try heading("Ageing by transaction date")
    try writeAges(findings, sheets, currencies)
  }

  private func blocks(_ currencies: [Currency]) -> [ArraySlice<Currency>] {
    if currencies.isEmpty { return [[]] }
    return stride(from: 0, to: currencies.count, by: SummaryPage.currenciesAcross).map {
      currencies[$0..<min($0 + SummaryPage.currenciesAcross, currencies.count)]
    }
  }

  private mutating func writeKinds(
    _ findings: FindingsSummary, _ sheets: TableFormulas, _ currencies: [Currency]
  ) throws(SpreadsheetError) {
    let kinds = findings.openKinds
    for (number, block) in blocks(currencies).enumerated() {
      let top = row
      try sheet.setRow(row, height: 32)
      try header(["Kind", "Severity"], texts: 2)
      row -= 1
      try header(["Open", "Amount unknown"] + block.map(\.code), texts: 0, from: 2)
      for kind in kinds {
        let stake = findings.byKind[kind] ?? RiskTotal()
        let name = Criterion.cell(CellReference(row: row, column: 0))
        try writeName(of: kind, sheets)
        try sheet.writeText(findings.severityText(of: kind), row: row, column: 1, format: formats[.shrinkingText])
        try writeRow(
          [
            .figure(LiveFigure(sheets.count(.findings, where: [("kind", name)]), stake.findings)),
            .count(stake.unknown),
          ]
            + amounts(block, top: top, sheets) {
              ([("kind", name), ("currency", $0)], stake.money.minorUnits[$1] ?? 0)
            }, from: 2)
      }
      let rows = top + 1...row - 1
      if number == 0 { figures.kinds = CellRange(rows: rows, columns: 2...2) }
      try writeSums(findings, sheets, block, top: top, rows: rows)
      // A cell may name several severities; the worst colours it.
      let (cells, severity) = (CellRange(rows: rows, columns: 1...1), CellReference(row: rows.lowerBound, column: 1))
      try sheet.addConditionalFormat(.formula("ISNUMBER(SEARCH(\"critical\",\(severity)))", formats[.bad]), in: cells)
      try sheet.addConditionalFormat(.formula("ISNUMBER(SEARCH(\"major\",\(severity)))", formats[.fair]), in: cells)
      row += 1
    }
  }

  private mutating func writeSums(
    _ findings: FindingsSummary, _ sheets: TableFormulas, _ block: ArraySlice<Currency>, top: Int,
    rows: ClosedRange<Int>
  ) throws(SpreadsheetError) {
    try sheet.writeText("All kinds", row: row, column: 0, format: formats[.sumText])
    try sheet.writeText("", row: row, column: 1, format: formats[.sumText])
    for (offset, count) in [findings.closing, findings.open.unknown].enumerated() {
      let cells = CellRange(rows: rows, columns: 2 + offset...2 + offset)
      try sheet.writeFormula(
        "SUM(\(cells))", result: Double(count), row: row, column: 2 + offset, format: formats[.sumCount])
    }
    for (offset, currency) in block.enumerated() {
      let cells = CellRange(rows: rows, columns: 4 + offset...4 + offset)
      try sheet.writeFormula(
        "SUM(\(cells))",
        result: Money.number(findings.atStake.minorUnits[currency] ?? 0, digits: currency.digits), row: row,
        column: 4 + offset, format: formats.total(digits: currency.digits))
    }
    row += 1
    for severity in Severity.allCases where findings.count(severity) > 0 {
      let lines = findings.lines.filter { $0.severity == severity }
      let word = Criterion.cell(CellReference(row: row, column: 1))
      try sheet.writeText("of these", row: row, column: 0, format: formats[.label])
      let count = LiveFigure(sheets.count(.findings, where: [("severity", word)]), findings.count(severity))
      try writeRow(
        [.text(severity.rawValue), .figure(count), .count(lines.reduce(0) { $0 + $1.unknown })]
          + amounts(block, top: top, sheets) { code, currency in
            let units = lines.reduce(Int128(0)) { $0 + ($1.currency == currency ? $1.minorUnits : 0) }
            return ([("severity", word), ("currency", code)], units)
          }, from: 1)
    }
  }

  /// The amounts at risk from the fifth column on, by the currencies in the header.
  private func amounts(
    _ block: ArraySlice<Currency>, top: Int, _ sheets: TableFormulas,
    _ amount: (Criterion, Currency) -> (conditions: [(String, Criterion)], units: Int128)
  ) -> [SummaryCell] {
    zip(4..., block).map { column, currency in
      let (conditions, units) = amount(.cell(CellReference(row: top, column: column)), currency)
      return .figure(LiveFigure(sheets.sum(.findings, "at_stake", where: conditions), units, currency))
    }
  }

  private func writeName(of kind: FindingKind, _ sheets: TableFormulas) throws(SpreadsheetError) {
    guard let place = sheets[.findings]?.firstPlaces[kind.rawValue] else {
      return try sheet.writeText(kind.title, row: row, column: 0, format: formats[.tableText])
    }
    try sheet.writeLink(
      to: CellReference(row: Int(place.row), column: 0), on: ReportTable.findings.sheetName(part: Int(place.part)),
      text: kind.title, row: row, column: 0, format: formats[.link])
  }

  private mutating func writeAges(
    _ findings: FindingsSummary, _ sheets: TableFormulas, _ currencies: [Currency]
  ) throws(SpreadsheetError) {
    for block in blocks(currencies) {
      let top = row
      try sheet.setRow(row, height: 32)
      try header(["Age (days)", "Findings", "Amount unknown", "Age since first reported"] + block.map(\.code))
      for bucket in findings.ageing.buckets {
        let stake = findings.ageing[bucket]
        let ages = bucket.criteria.map { ("days_since", $0) }
        let known = bucket.criteria.map { ("age_days", $0) }
        try writeRow(
          [
            .text(bucket.title), .figure(LiveFigure(sheets.count(.findings, where: ages), stake.findings)),
            .count(stake.unknown),
            .figure(LiveFigure(sheets.count(.findings, where: known), findings.ageing.known(bucket))),
          ] + amounts(block, top: top, sheets) { ([("currency", $0)] + ages, stake.money.minorUnits[$1] ?? 0) })
      }
      row += 1
    }
  }
}

extension Ageing.Bucket {
  fileprivate var criteria: [Criterion] {
    switch self {
    case .upToOne: [.atMost(1)]
    case .upToSeven: [.atLeast(2), .atMost(7)]
    case .upToThirty: [.atLeast(8), .atMost(30)]
    case .older: [.atLeast(31)]
    case .undated: [.blank]
    }
  }
}
