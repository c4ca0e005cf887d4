import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

/// The numbers of the first sheet, as Excel shows them, against those of the page.
@Suite struct NumberFormatTests {
  private static let sample = {
    var report = SampleReport()
    report.add(order("o1", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), user: "u2", isDelivered: false))
    report.refunds = [refund("T9", money(123_456, "USD"))]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1))
    report.summary.findings.count(closed: money(500, "USD"))
    report.summary.adjustments = [
      adjustment(.settled, from: (2, 123_456), to: (1, 300)), adjustment(.refunded, to: (1, 400)),
    ]
    report.tieOut([910, 210, 0, 0, 700, 0, nil, nil, -1])
    return report
  }()

  /// The text that the format of a cell gives its number.
  private func shown(_ cell: ReadWorkbook.Cell?) -> String {
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
    try Self.sample.written { directory in
      let (book, page) = (try ReadWorkbook(report: directory), try contents("report.html", in: directory))
      let summary = try book.sheet("Summary")
      func expectSame(
        _ id: String, _ name: String, after heading: String, _ letters: String, of sheet: ReadWorkbook.Sheet
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
      #expect(money.contains(["Amount at risk in open findings", "", "300", "–"]))
      #expect(rows("h-kinds", of: page).first?.last == "Severity")
    }
  }
}
