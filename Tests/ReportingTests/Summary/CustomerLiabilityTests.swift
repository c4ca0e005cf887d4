import Reconciliation
import Testing

@testable import Reporting

@Suite struct CustomerLiabilityTests {
  private func finding(_ kind: FindingKind, _ subject: Subject, _ atStake: Money?, isUnknown: Bool = false) -> Finding {
    var finding = Finding(kind: kind, subject: subject, reason: "r")
    if subject.kind == .order { finding.orderId = subject.id }
    (finding.atStake, finding.isAmountAtRiskUnknown) = (atStake, isUnknown)
    return finding
  }

  @Test func paymentsWithoutGoodsAreOwedOnceAndUnknownAmountsAreCounted() throws {
    let found = [
      finding(.paidNotDelivered, .order("o1"), try money(500, "USD")),
      // Two liabilities of one order: its goods, and a second charge.
      finding(.chargedTwice, .order("o1"), try money(300, "USD")), finding(.cancelledButPaid, .order("o1"), nil),
      finding(.partlyDelivered, .order("o2"), try money(100, "JPY")),
      // Another finding of the order has a larger amount.
      finding(.partlyDelivered, .order("o3"), nil), finding(.orphanPayment, .transaction("T1"), try money(700, "USD")),
      // An unpaid order with goods has the amount, because the customer has the goods.
      finding(.orphanPayment, .transaction("T2"), nil), finding(.deliveredNotPaid, .order("o4"), try money(999, "USD")),
      finding(.orphanPayment, .transaction("T3"), nil, isUnknown: true),
    ]
    var report = try SampleReport()
    for finding in found { report.report(ReportedFinding(finding, firstSeen: SampleReport.asOf)) }
    let liability = report.summary.findings.liability
    #expect(
      try liability.parts == [
        currency("USD"): [.paidNotDelivered: 500, .chargedTwice: 300, .orphanPayment: 700],
        currency("JPY"): [.partlyDelivered: 100],
      ])
    #expect(liability.uncounted == 2)
    #expect(liability.note.hasSuffix("2 findings without an amount of their own are excluded."))
    let lines = SalesLine.all(report.totals, report.summary)
    #expect(lines.map(\.code) == ["JPY", "USD"])
    #expect(lines.map { $0.owed.reduce(0, +) } == [100, 1_500])
    let page = try report.file("report.html")
    #expect(page.contains("<th scope=\"row\">USD</th><td class=\"n\">–</td><td class=\"n\">–</td>"))
    #expect(
      page.contains(
        "<td class=\"n\">15.00</td><td class=\"n\">5.00</td><td class=\"n\">–</td><td class=\"n\">7.00</td>"))
  }
}
