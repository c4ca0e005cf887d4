import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

struct TieOutReportTests {
  private func sample() -> TieOutFacts {
    var facts = TieOutFacts(
      incompleteReasons: ["no daily report of 1 days (pending, vendor 80012345): 2026-11-17"], firstDay: "2026-10-06",
      lastDay: "2026-11-19", appleUnits: Millionths(1_214), ourUnits: Millionths(1_201),
      explained: [("not_reported", .zero), ("other_scope", Millionths(10)), ("timing", Millionths(2))],
      unexplained: Millionths(1))
    facts.days = [.init(date: "2026-11-19", apple: Millionths(40), unexplained: Millionths(1), isAlarming: true)]
    facts.revisions = [
      TieOutFacts.Revision(day: "2026-11-03", vendor: "80012345", before: Millionths(12), now: Millionths(14))
    ]
    facts.proceeds = [Self.settled]
    return facts
  }

  private static let settled = settlement([910, 210, 0, 0, 700, 0, 1300, 390, 0], "2026-02")

  private func withReport(hasTieOut: Bool = true, _ body: (String) throws -> Void) throws {
    try withTemporaryDirectory { directory in
      var options = SampleReport().options
      (options.directory, options.hasTieOut) = (directory, hasTieOut)
      var report = try ReportWriter(options)
      var figures = [Millionths?](repeating: .zero, count: 19)
      figures.replaceSubrange(0...3, with: [Millionths(3), Millionths(2), nil, Millionths(1)])
      figures[18] = Millionths(1)
      for level in ["country", "units"] {
        let line = TieOutLine(
          level: level, app: "game", productId: "gems60", day: "2026-11-10", country: level == "country" ? "US" : "",
          currency: level == "country" ? "USD" : "", kind: "sale", figures: figures)
        try report.write(tieOut: line)
        if level == "units" { try report.writeToSheet(tieOut: line) }
      }
      try report.write(settlement: Self.settled)
      var summary = SampleReport().summary
      summary.tieOut = sample()
      _ = try report.finish(totals: Totals(), summary: summary)
      try body(directory)
    }
  }

  @Test func tablesWithOptionalKeyPartsDeclareNoPrimaryKey() throws {
    try withReport { directory in
      let package = try object(contents("datapackage.json", in: directory))
      let resources = try #require(package["resources"] as? [[String: Any]])
      let schemas = resources.map { $0["schema"] as? [String: Any] ?? [:] }
      let keyless = zip(resources, schemas).filter { $1["primaryKey"] == nil }
      let names = keyless.compactMap { $0.0["name"] as? String }
      #expect(names == ["changes", "tie-out", "products", "receipts", "orders"])
      let fields = keyless.flatMap { $0.1["fields"] as? [[String: Any]] ?? [] }
      let constraints = fields.compactMap { $0["constraints"] as? [String: Any] }
      #expect(constraints.allSatisfy { $0["required"] == nil && $0["unique"] == nil })
    }
  }

  @Test func filesHaveExactlyTheirColumns() throws {
    try withReport { directory in
      let lines = try contents("tie-out.csv", in: directory).split(separator: "\r\n")
      #expect(
        lines[0] == """
          level,app,product_id,day,country,currency,class,apple,ours,shop,difference,not_reported,other_scope,free,\
          restore,timing,refund_timing,refund_unknown,partial_refund,upgrade,renewal,country_unknown,price,rounding,\
          unknown_product,unexplained
          """)
      #expect(lines[1] == "country,game,gems60,2026-11-10,US,USD,sale,3,2,,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1")
      #expect(
        try contents("settlement.csv", in: directory) == """
          fiscal_period,currency,sales_proceeds,open_at_end,settled_from_before,never_collected,settled,difference,\
          gross,commission,tax\r
          2026-02,USD,9.10,2.10,0.00,0.00,7.00,0.00,13.00,3.90,0.00\r

          """)
      let package = try contents("datapackage.json", in: directory)
      #expect(package.contains("\"path\" : \"tie-out.csv\"") && package.contains("no revenue recognition"))
      #expect(try contents("SHA256SUMS", in: directory).contains("  settlement.csv\n"))
    }
  }

  @Test func sumsBeyond64BitsAreExact() {
    let sum = Millionths(count: -12_345_678_901_234_567_890)
    #expect(sum.description == "-12345678901234.56789" && Cell(sum, digits: 6) == .decimal(sum.count, digits: 6))
  }

  @Test func theSummaryStatesBothSides() throws {
    try withReport { directory in
      let summary = try object(contents("summary.json", in: directory))
      let block = try #require(summary["tie_out"] as? [String: Any])
      #expect(block["complete"] as? Bool == false && (block["incomplete_reasons"] as? [String])?.count == 1)
      #expect(block["apple_units"] as? Int == 1_214 && block["our_units"] as? Int == 1_201)
      #expect((block["explained"] as? [String: Int])?["timing"] == 2 && block["unexplained"] as? Int == 1)
      let sentence = "Apple counted 1,204 units, we know 1,201. The difference: 3 = 2 timing + 1 unexplained."
      #expect(sample().sentence == sentence)
      let revised = try #require((block["adjustments"] as? [[String: Any]])?.first)
      #expect(revised["day"] as? String == "2026-11-03" && revised["vendor"] as? String == "80012345")
      #expect(revised["reported"] as? Int == 12 && revised["now"] as? Int == 14)
      let page = try contents("report.html", in: directory)
      #expect(page.contains("<p class=\"lead\">\(sentence)</p>"))
      #expect(page.contains("<th scope=\"row\">Timing</th><td class=\"n\">2</td>"))
      #expect(summary["complete"] as? Bool == true)
    }
  }

  @Test func theSettlementHasTermsOfFinance() throws {
    try withReport { directory in
      let page = try contents("report.html", in: directory)
      let titles = [
        "Proceeds earned", "Outstanding at period end", "Carried in", "Written off by Apple", "Proceeds paid",
        "Difference", "Gross", "Commission", "Tax",
      ]
      #expect(page.contains(titles.map { "<th scope=\"col\" class=\"n\">\($0)</th>" }.joined()))
      let figures = ["9.10", "2.10", "–", "–", "7.00", "–", "13.00", "3.90", "–"]
        .map { "<td class=\"n\">\($0)</td>" }.joined()
      #expect(page.contains("<th scope=\"row\" class=\"whole\">2026-02</th><td>USD</td>\(figures)"))
      // The headers of the sheet are the file's column names; their notes begin with the terms of finance.
      for (column, title) in zip(ReportTable.settlement.columns.dropFirst(2), titles.prefix(4)) {
        #expect(column.meaning.hasPrefix(title), "\(column.name)")
      }
    }
  }

  @Test func thePagesOfTheSettlementSayThatTheFiguresAreProceeds() {
    #expect("\(ReportTable.settlement.shape.pageNote)".contains("Apple's proceeds, not customer amounts"))
    #expect("\(ReportTable.orders.shape.pageNote)".contains("Customer amounts as recorded, not proceeds"))
    let tieOut = "\(ReportTable.tieOut.shape.pageNote)"
    #expect(tieOut.contains("Units and customer amounts by Apple's sales reports, not proceeds"))
  }

  @Test func aShopWithoutATieOutHasNoTieOutFiles() throws {
    try withReport(hasTieOut: false) { directory in
      #expect(!FileManager.default.fileExists(atPath: directory + "/tie-out.csv"))
      let sums = try contents("SHA256SUMS", in: directory)
      #expect(!sums.contains("settlement"))
    }
  }
}
