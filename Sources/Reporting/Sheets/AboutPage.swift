import Reconciliation
import Spreadsheet

/// The last sheet: the settings of the audit and the meaning of its words.
struct AboutPage {
  static let name: SheetName = "About"
  private let sheet: Sheet
  private let formats: SummaryFormats
  private let options: ReportOptions
  private var row = 0

  private static let lastColumn = 3

  init(_ sheet: Sheet, in workbook: borrowing Workbook, options: ReportOptions) throws(SpreadsheetError) {
    (self.sheet, self.options) = (sheet, options)
    formats = try SummaryFormats(workbook)
    try sheet.setColumns(0...0, width: 34)
    try sheet.setColumns(1...1, width: 12)
    try sheet.setColumns(2...3, width: 70)
    try sheet.hideGridlines()
    try sheet.setTabColour(Palette.grey)
  }

  consuming func write(_ facts: SummaryFacts) throws(SpreadsheetError) {
    try line("About this report", formats[.title], height: 34)
    try line(options.apps.joined(separator: " · "), formats[.subtitle], height: 20)
    row += 1
    try writeSettings(facts)
    try writeNotChecked(facts)
    try writeKinds()
    let tieOut = (title: "Tie-out: Apple's counts and the transactions here", words: TieOutLine.words)
    for section in Glossary.sections + (options.hasTieOut ? [tieOut] : []) {
      try heading(section.title)
      for (word, meaning) in section.words { try entry(word, meaning) }
      row += 1
    }
    try sheet.setUpPrinting(
      PrintSetup { $0.footer = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N" })
    try sheet.protect()
  }

  private mutating func writeSettings(_ facts: SummaryFacts) throws(SpreadsheetError) {
    try heading("What was audited, and how")
    try entry("Period", "\(facts.period.days), days of \(facts.timeZone)")
    var clock = LocalClock(timeZone: options.timeZone)
    let reason = facts.asOfText.map { ". \($0)" } ?? ""
    try entry("As of", "\(clock.text(options.asOf)): every rule counts from this instant, never from a clock\(reason)")
    try entry("Times", "in \(facts.timeZone) on the sheets, as their headers say; in UTC in the CSV files")
    try entry(
      "Amounts",
      "Customer amounts as the shop recorded them: not Apple's proceeds, and not for revenue recognition. "
        + "Amounts of different currencies are never added up.")
    for setting in facts.settings { try entry(setting.name, setting.value) }
    try entry("Configuration", "SHA-256 \(facts.configuration)")
    try entry(
      "Protection",
      "The sheets are protected without a password, against accidental changes. "
        + "Sorting and filtering are possible. Excel sorts only unlocked cells, so the cells of data sheets are unlocked. "
        + "Columns that are not for your entries refuse them. If an ordered amount or an amount at risk is changed all "
        + "the same, a control on the sheet Summary turns red.")
    row += 1
  }

  private mutating func writeNotChecked(_ facts: SummaryFacts) throws(SpreadsheetError) {
    try heading("What could not be checked")
    if facts.notChecked.isEmpty, facts.notAsked.isEmpty {
      try entry("Nothing", "The channels of all listed apps support every kind of finding.")
    }
    for (app, kinds) in facts.notChecked.sorted(by: { $0.key < $1.key }) {
      try entry(app, kinds.map(\.title).joined(separator: ", "))
    }
    for words in facts.uncheckedOrderTexts { try entry("Orders without a receipt", words) }
    row += 1
  }

  private mutating func writeKinds() throws(SpreadsheetError) {
    try heading("Kinds of finding")
    for (column, title) in ["Kind", "Severity", "What it means", "What to do"].enumerated() {
      try sheet.writeText(title, row: row, column: column, format: formats[.tableHeader])
    }
    row += 1
    for kind in FindingKind.allCases {
      try sheet.writeText(kind.title, row: row, column: 0, format: formats[.tableText])
      try sheet.writeText(kind.severity.rawValue, row: row, column: 1, format: formats[.tableText])
      try sheet.writeText(kind.definition.meaning, row: row, column: 2, format: formats[.tableProse])
      try sheet.writeText(kind.suggestedAction, row: row, column: 3, format: formats[.tableProse])
      let longest = max(kind.definition.meaning.count, kind.suggestedAction.count)
      if longest > 75 { try sheet.setRow(row, height: 30) }
      row += 1
    }
    row += 1
  }

  private mutating func entry(_ name: String, _ text: String) throws(SpreadsheetError) {
    try sheet.writeText(CellText.fitting(name), row: row, column: 0, format: formats[.tableText])
    try sheet.merge(text, 1...AboutPage.lastColumn, row: row, formats[.tableProse])
    if text.count > 150 { try sheet.setRow(row, height: 15 * (Double(text.count) / 150).rounded(.up)) }
    row += 1
  }

  private mutating func heading(_ text: String) throws(SpreadsheetError) {
    try line(text, formats[.heading], height: 24)
  }

  private mutating func line(_ text: String, _ format: CellFormat, height: Double) throws(SpreadsheetError) {
    try sheet.setRow(row, height: height)
    try sheet.merge(text, 0...AboutPage.lastColumn, row: row, format)
    row += 1
  }
}
