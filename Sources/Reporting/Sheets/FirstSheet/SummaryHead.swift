import Reconciliation
import Spreadsheet

extension SummaryPage {
  mutating func writeTitle(_ facts: SummaryFacts) throws(SpreadsheetError) {
    try line("App Store night audit \(options.period.days)", formats[.title], height: 34)
    try line(options.apps.joined(separator: " · "), formats[.subtitle], height: 20)
    try line(facts.state.line, formats[facts.state.isFinal ? .complete : .incomplete], height: 26)
    bannerRow = row
    row += 1
    try bullets(
      facts.incompleteReasons + facts.uncheckedTexts + facts.unusual.map(\.words) + facts.uncheckedOrderTexts)
    try gap()
    tileRow = row
    row += 2
    try gap()
  }

  func writeTiles(_ tiles: [SummaryFacts.Tile]) throws(SpreadsheetError) {
    try sheet.setRow(bannerRow, height: 26)
    let banner = CellRange(rows: bannerRow...bannerRow, columns: 0...SummaryPage.lastColumn)
    try sheet.mergeCells(banner, text: "", format: formats[.complete])
    if let results {
      let count = results.rows.count
      try sheet.writeFormula(
        """
        IF(COUNTIF(\(results),"balanced")=\(count),"BALANCED: all \(count) controls of this workbook agree.",\
        "NOT BALANCED: "&(\(count)-COUNTIF(\(results),"balanced"))&" of \(count) controls do not agree. Do not use these numbers.")
        """,
        result: unbalanced == 0
          ? "BALANCED: all \(count) controls of this workbook agree."
          : "NOT BALANCED: \(unbalanced) of \(count) controls do not agree. Do not use these numbers.", row: bannerRow,
        column: 0, format: formats[.complete])
      try sheet.addConditionalFormat(
        .formula("COUNTIF(\(absolute: results),\"balanced\")<>\(count)", formats[.bad]), in: banner)
    }
    try sheet.setRow(tileRow, height: 20)
    try sheet.setRow(tileRow + 1, height: 32)
    var column = 0
    for (position, tile) in tiles.enumerated() {
      let format = formats[tile.isBad ? .tileBad : .tile]
      let columns = position == 0 ? 0...0 : column...column + 1
      if columns.count == 1 {
        try sheet.writeText(tile.label, row: tileRow, column: column, format: formats[.tileLabel])
      } else {
        try sheet.merge(tile.label, columns, row: tileRow, formats[.tileLabel])
        try sheet.merge("", columns, row: tileRow + 1, format)
      }
      try sheet.writeInteger(tile.count, row: tileRow + 1, column: column, format: format)
      column += columns.count
    }
  }

  mutating func writeNavigation(_ sheets: [DataSheet]) throws(SpreadsheetError) {
    try sheet.setRow(row, height: 20)
    try sheet.writeText("Go to", row: row, column: 0, format: formats[.label])
    for (position, name) in (sheets.map { $0.table.sheetName(part: 1) } + ["About"]).enumerated() {
      // A second line, because a further column would widen the printed page.
      if position > 0, position.isMultiple(of: SummaryPage.lastColumn) {
        row += 1
        try sheet.setRow(row, height: 20)
      }
      try sheet.writeLink(
        to: CellReference(row: 0, column: 0), on: name, text: name.description, row: row,
        column: 1 + position % SummaryPage.lastColumn, format: formats[.navigation])
    }
    row += 2
  }

  mutating func writeScope(_ totals: Totals, _ facts: SummaryFacts) throws(SpreadsheetError) {
    try heading("What was audited")
    let period = facts.period
    for (label, day) in period.isRange
      ? [("First day", period.since), (ReportIdentity.lastDay, period.until)] : [(ReportIdentity.day, period.until)]
    {
      let cell = CellReference(row: row, column: 1)
      try sheet.writeText(label, row: row, column: 0, format: formats[.label])
      try sheet.writeText(day, row: row, column: 1, format: formats[.value])
      if day == period.since { (figures.firstDay, names["FirstDay"]) = (cell, cell) }
      if day == period.until { (figures.lastDay, names["LastDay"]) = (cell, cell) }
      row += 1
    }
    try sheet.writeText("As of", row: row, column: 0, format: formats[.label])
    var clock = LocalClock(timeZone: options.timeZone)
    let local = clock.localSeconds(options.asOf)
    try sheet.merge("", 1...2, row: row, formats[.instant])
    do {
      try sheet.writeDateTime(localSecondsSince1970: local, row: row, column: 1, format: formats[.instant])
    } catch {
      guard error.code == .dateOutOfRange else { throw error }
      try sheet.writeText(options.asOf.text, row: row, column: 1, format: formats[.value])
    }
    row += 1
    try fact("Times in sheets", "\(facts.timeZone); in CSV files UTC")
    try sheet.writeText("Orders read", row: row, column: 0, format: formats[.label])
    try sheet.writeInteger(totals.ordersRead, row: row, column: 1, format: formats[.value])
    names["OrdersRead"] = CellReference(row: row, column: 1)
    row += 1
    try fact("Settings", "on the sheet About, with the meaning of every outcome, kind and reason")
    try fact(ReportIdentity.run, ReportIdentity.words(summaryDigest))
    try fact(
      "Amounts",
      "Customer amounts as the shop recorded them: not Apple's proceeds, and not for revenue recognition. "
        + "Amounts of different currencies are never added up.")
    row += 1
  }
}

/// The identity of the report on the first sheet, for imports.
package enum ReportIdentity {
  package static let run = "Run"
  package static let day = "Day"
  package static let lastDay = "Last day"
  private static let shown = 16

  static func words(_ digest: String) -> String {
    "summary.json has the SHA-256 \(digest.prefix(shown))…; run.json beside it names the run that made it"
  }

  /// nil for other text.
  package static func digits(in words: String) -> String? {
    guard let found = words.firstMatch(of: /SHA-256 ([0-9a-f]+)…/), found.1.count == shown else { return nil }
    return String(found.1)
  }
}
