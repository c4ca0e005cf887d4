import Foundation
import Reconciliation
import Testing

@testable import Reporting

/// The numbers of the first sheet, as Excel shows them, against those of the page.
@Suite struct NumberFormatTests {
  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("o1"))
    report.add(try OrderFixture(userId: "u2", amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.refunds = [
      RefundRow(
        transactionId: "T9", productId: "gems.100", refunded: try money(123_456, "USD"), milliPercent: 100_000,
        purchasedAt: nil, refundedAt: SampleReport.asOf)
    ]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1))
    report.summary.findings.count(closed: try money(500, "USD"))
    let dollars = try currency("USD")
    report.summary.adjustments = [
      Adjustment(
        day: "2026-11-18", bucket: DayTotals.Bucket(currency: dollars, disposition: .settled),
        reported: DayTotals.Sum(orders: 2, minorUnits: 123_456), now: DayTotals.Sum(orders: 1, minorUnits: 300)),
      Adjustment(
        day: "2026-11-18", bucket: DayTotals.Bucket(currency: dollars, disposition: .refunded),
        reported: DayTotals.Sum(), now: DayTotals.Sum(orders: 1, minorUnits: 400)),
    ]
    let figures: [Int128?] = [910, 210, 0, 0, 700, 0, nil, nil, -1]
    report.settlement = [
      SettlementLine(
        period: "2027-02", currency: "USD", figures: figures.map { $0.map { ExactDecimal(scaled: $0, digits: 2) } })
    ]
    var facts = TieOutFacts(
      incompleteReasons: [], firstDay: "2026-11-01", lastDay: "2026-11-18",
      appleUnits: ExactDecimal(scaled: 3, digits: 0), ourUnits: ExactDecimal(scaled: 3, digits: 0), explained: [],
      unexplained: ExactDecimal(scaled: 0, digits: 0))
    facts.proceeds = report.settlement
    report.summary.tieOut = facts
    report.options.hasTieOut = true
    return report
  }

  /// The text that the format of a cell gives its number.
  private func shown(_ cell: ReadBook.Cell?) -> String {
    guard let cell, let number = cell.number else { return cell?.text ?? "" }
    let formats = cell.format.split(separator: ";").map(String.init)
    if number == 0 { return formats.count > 2 ? formats[2].replacing("\"", with: "") : "0" }
    let digits = formats[0].split(separator: ".").dropFirst().first?.count ?? 0
    let text = abs(number).formatted(.number.precision(.fractionLength(digits)).locale(Locale(identifier: "en_US")))
    return number < 0 ? "−" + text : text
  }

  /// The cells of the rows of a section.
  private func rows(_ id: String, of page: String) -> [[String]] {
    let section = page.components(separatedBy: "<h2 id=\"\(id)\"").last?.components(separatedBy: "</section>").first
    return (section ?? "").components(separatedBy: "<tr>").dropFirst().map { row in
      row.matches(of: /<t[hd][^>]*>(.*?)<\/t[hd]>/).map { String($0.1) }
    }
  }

  @Test func cellsAndThePageHaveTheSameTexts() throws {
    try withTemporaryDirectory { directory in
      try sample().write(to: directory)
      let (book, page) = (try ReadBook(directory: directory), try contents("report.html", in: directory))
      let summary = try book.sheet("Summary")
      func expectSame(
        _ id: String, _ name: String, after heading: String, _ letters: String, of sheet: ReadBook.Sheet
      ) throws {
        let start = try #require(sheet.rows.firstIndex { $0["A"]?.text?.hasPrefix(heading) == true }, "\(heading)")
        let line = try #require(sheet.rows[start...].first { $0["A"]?.text == name }, "\(heading) \(name)")
        let cells = letters.map { shown(line[String($0)]) }
        let row = try #require(rows(id, of: page).first { $0.first == name }, "\(id) \(name)")
        #expect(Array(row.suffix(cells.count)) == cells, "\(heading) \(name)")
        for letter in letters {
          guard let cell = line[String(letter)], cell.number ?? 0 < 0 else { continue }
          #expect(cell.format.contains(";\"−\""), "\(heading) \(name) \(letter)")
        }
      }
      for code in ["JPY", "USD"] {
        try expectSame("h-sales", code, after: SalesLine.title, "BCDEFGHIJ", of: summary)
        try expectSame("h-roll", code, after: "Exposure roll-forward", "BCDEF", of: summary)
      }
      try expectSame("h-roll", "Findings", after: "Exposure roll-forward", "BCDEF", of: summary)
      for outcome in ["Settled", "Refunded", Adjustment.netTitle] {
        try expectSame("h-adjustments", outcome, after: "Adjustments to earlier days", "DEFGHI", of: summary)
      }
      try expectSame("h-settlement", "2027-02", after: "Fiscal period", "CDEFGHIJK", of: book.sheet("Settlement"))
      // Totals below a sheet.
      for name in ["Products", "Users", "Amounts"] {
        let sheet = try book.sheet(name)
        #expect(try shown(sheet.rows.last?[sheet.letter("Unconfirmed")]) == "–", "\(name)")
      }
      // The page has the public names of controls in words for people.
      #expect(rows("h-controls", of: page).contains { $0.first == "orders read = sum over outcomes" })
      #expect(!page.contains("sum over dispositions") && page.contains(" control totals of the program agree."))
      #expect(try contents("summary.json", in: directory).contains("sum over dispositions"))
      let money = rows("h-money", of: page)
      #expect(money.contains(["At stake in open findings", "", "300", "–"]))
      #expect(rows("h-kinds", of: page).first?.last == "Severity")
    }
  }
}
