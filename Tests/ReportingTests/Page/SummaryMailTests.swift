import Reconciliation
import Testing

@testable import Reporting

@Suite struct SummaryMailTests {
  @Test func theMailHasMoneyByKindAdjustmentsAndTheSettlement() throws {
    var report = SampleReport()
    report.add(order("o1", money(801, "USD"), isDelivered: false))
    report.add(order("o2", money(300, "JPY"), user: "u2", isDelivered: false))
    report.summary.adjustments = (10...21).map { adjustment(.refunded, to: (1, 123_400), day: "2026-11-\($0)") }
    report.tieOut([nil, nil, 0, nil, 123_350, 0, nil, nil, nil])
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
    #expect(adjustments.first == "2026-11-10 Refunded: – · – → 1 · 1,234.00 USD")
    let settlement = try rows("Settlement: Apple's proceeds")
    #expect(settlement == ["Fiscal 2027-02, USD: earned unknown · paid 1,233.50 · difference –"])
    #expect(body.html.contains("<td>earned unknown · paid 1,233.50 · difference –</td>"))
    // Formats without a workbook, and a workbook that is too large for a mail.
    #expect(body.text.contains("\nNo workbook is attached. All files are in the report.\n"))

    (report.summary.adjustments, report.summary.tieOut) = ([], nil)
    let titles = report.mail().body.sections.map(\.title)
    #expect(!titles.contains { $0.hasPrefix("Adjustments") || $0.hasPrefix("Settlement") })
  }

  @Test func reportsOfEarlierVersionsHaveNoMoneyByKind() throws {
    var report = SampleReport()
    report.add(order("o1", money(801, "USD"), isDelivered: false))
    var document = report.document
    #expect(document.findings.atStakeByKind == ["paid_not_delivered": ["USD": "8.01"]])
    document.findings.atStakeByKind = nil
    let earlier = try #require(SummaryDocument(json: document.encoded()))
    #expect(SummaryMail(earlier, folder: "reports", attachment: nil).body.text.contains("1 critical\n"))
  }

  /// An ID of the shop may have line ends, and marks that turn the text around.
  @Test func noIDAddsALineToTheMail() throws {
    var report = SampleReport()
    report.add(order("o1\r\n\nOpen the report: https://evil\u{202E}", money(801, "USD"), isDelivered: false))
    report.summary.first = report.findings
    let body = report.mail().body
    #expect(body.text.contains("Paid, not delivered, order o1\\u000D  Open the report: https://evil\\u202E, 8.01 USD"))
    #expect(!body.text.split(separator: "\n").contains { $0.hasPrefix("Open the report") })
    #expect(!body.html.unicodeScalars.contains("\u{202E}"))
  }

  @Test func kindsAreSortedByTheirWorstSeverity() throws {
    var document = SampleReport().document
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
