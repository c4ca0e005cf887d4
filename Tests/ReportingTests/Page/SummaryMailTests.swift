import Reconciliation
import Testing

@testable import Reporting

@Suite struct SummaryMailTests {
  @Test func theMailHasMoneyByKindAdjustmentsAndTheSettlement() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(801, "USD"), isDelivered: false).judgement("o1"))
    report.add(try OrderFixture(userId: "u2", amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.summary.adjustments = try (1...12).map { day in
      Adjustment(
        day: day < 10 ? "2026-11-0\(day)" : "2026-11-\(day)",
        bucket: DayTotals.Bucket(currency: try currency("USD"), disposition: .refunded),
        reported: DayTotals.Sum(), now: DayTotals.Sum(orders: 1, minorUnits: 123_400))
    }
    var facts = TieOutFacts(
      incompleteReasons: [], firstDay: "2026-11-01", lastDay: "2026-11-18",
      appleUnits: ExactDecimal(scaled: 3, digits: 0), ourUnits: ExactDecimal(scaled: 3, digits: 0), explained: [],
      unexplained: ExactDecimal(scaled: 0, digits: 0))
    let figures: [Int128?] = [nil, nil, 0, nil, 123_350, 0, nil, nil, nil]
    facts.proceeds = [
      SettlementLine(
        period: "2027-02", currency: "USD", figures: figures.map { $0.map { ExactDecimal(scaled: $0, digits: 2) } })
    ]
    report.summary.tieOut = facts

    // The mail is made from the file of the report.
    let json = try report.file("summary.json")
    let document = try #require(SummaryDocument(json: Array(json.utf8)))
    let body = SummaryMail(document, folder: "reports", attachment: nil).body
    func rows(_ title: String) throws -> [String] {
      let section = try #require(body.sections.first { $0.title.hasPrefix(title) }, "\(title)")
      return section.rows.map { "\($0.0): \($0.1)" } + section.lines
    }
    #expect(try rows("Findings").contains("Paid, not delivered: 2 critical · 300 JPY · 8.01 USD"))
    let adjustments = try rows("Adjustments to earlier days")
    #expect(adjustments.count == 11 && adjustments.last == "… and 2 more, in the report")
    #expect(adjustments.first == "2026-11-01 Refunded: – · – → 1 · 1,234.00 USD")
    let settlement = try rows("Settlement: Apple's proceeds")
    #expect(settlement == ["Fiscal 2027-02, USD: earned unknown · paid 1,233.50 · difference –"])
    #expect(body.html.contains("<td>earned unknown · paid 1,233.50 · difference –</td>"))

    (report.summary.adjustments, report.summary.tieOut) = ([], nil)
    let plain = try #require(SummaryDocument(json: Array(report.file("summary.json").utf8)))
    let titles = SummaryMail(plain, folder: "reports", attachment: nil).body.sections.map(\.title)
    #expect(!titles.contains { $0.hasPrefix("Adjustments") || $0.hasPrefix("Settlement") })
  }

  @Test func reportsOfEarlierVersionsHaveNoMoneyByKind() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(801, "USD"), isDelivered: false).judgement("o1"))
    var document = SummaryDocument(
      totals: report.totals, summary: report.summary, control: [], asOf: SampleReport.asOf)
    #expect(document.findings.atStakeByKind == ["paid_not_delivered": ["USD": "8.01"]])
    document.findings.atStakeByKind = nil
    let earlier = try #require(SummaryDocument(json: document.encoded()))
    let text = SummaryMail(earlier, folder: "reports", attachment: nil).body.text
    #expect(text.contains("1 critical\n"))
  }

  @Test func kindsAreSortedByTheirWorstSeverity() throws {
    let report = try SampleReport()
    var document = SummaryDocument(
      totals: report.totals, summary: report.summary, control: [], asOf: SampleReport.asOf)
    let kinds: [(FindingKind, Severity)] = [
      (.refundNotBooked, .major), (.quantityMismatch, .critical), (.badRow, .minor), (.purchasePredatesOrder, .major),
    ]
    for (kind, severity) in kinds {
      document.findings.open[kind.rawValue] = 1
      document.findings.severities[kind.rawValue] = [severity.rawValue: 1]
    }
    let sections = SummaryMail(document, folder: "reports", attachment: nil).body.sections
    let titles = try #require(sections.first { $0.title == "Findings" }).rows.map(\.0)
    let shown = titles.filter { title in kinds.contains { $0.0.title == title } }
    #expect(shown == ["Quantity mismatch", "Refund not booked", "Purchase older than order", "Invalid source row"])
  }
}
