import Reconciliation
import Testing

@testable import Reporting

@Suite struct CustomerLiabilityTests {
  @Test func paymentsWithoutGoodsAreOwedOnceAndUnknownAmountsAreCounted() throws {
    var unknown = Finding(.orphanPayment, .transaction("T3"))
    unknown.isAmountAtRiskUnknown = true
    let found = [
      Finding(.paidNotDelivered, .order("o1"), money(500, "USD")),
      // Two liabilities of one order: its goods, and a second charge.
      Finding(.chargedTwice, .order("o1"), money(300, "USD")), Finding(.cancelledButPaid, .order("o1")),
      Finding(.partlyDelivered, .order("o2"), money(100, "JPY")),
      // Another finding of the order has a larger amount.
      Finding(.partlyDelivered, .order("o3")), Finding(.orphanPayment, .transaction("T1"), money(700, "USD")),
      // An unpaid order with goods has the amount, because the customer has the goods.
      Finding(.orphanPayment, .transaction("T2")), Finding(.deliveredNotPaid, .order("o4"), money(999, "USD")), unknown,
    ]
    var report = SampleReport()
    for finding in found { report.report(ReportedFinding(finding)) }
    let liability = report.summary.findings.liability
    #expect(
      liability.parts == [
        currency("USD"): [.paidNotDelivered: 500, .chargedTwice: 300, .orphanPayment: 700],
        currency("JPY"): [.partlyDelivered: 100],
      ])
    #expect(liability.uncounted == 2)
    #expect(liability.note.hasSuffix("2 findings without an amount of their own are excluded."))
    let lines = SalesLine.all(report.totals, report.summary)
    #expect(lines.map(\.code) == ["JPY", "USD"] && lines.map { $0.owed.reduce(0, +) } == [100, 1_500])
    let page = try report.file("report.html")
    func cells(_ texts: String...) -> String { texts.map { "<td class=\"n\">\($0)</td>" }.joined() }
    #expect(page.contains("<th scope=\"row\">USD</th>" + cells("–", "–")))
    #expect(page.contains(cells("15.00", "5.00", "–", "7.00")))
  }
}
