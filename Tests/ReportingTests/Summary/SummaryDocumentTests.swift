import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct SummaryDocumentTests {
  @Test func summaryJsonHasEveryKeyEveryDispositionAndAmountsAsTextWithTheCurrencysDigits() throws {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("o1"))
    report.add(try OrderFixture(amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderFixture(userId: "tester", amount: money(1_250, "KWD"), environment: .sandbox).judgement("o3"))
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["3 receipts were not answered."]
    report.summary.findings.opening = 4
    report.summary.findings.closed = 4
    report.summary.notChecked = ["Game": FindingKind.allCases.filter { $0.has(.needsServerAPI) }]
    report.summary.feedCoverage["Game"] = FeedCoverage(sales: 3, reported: 2)
    var orphan = Finding(kind: .orphanPayment, subject: .transaction("T1"), reason: "No order claims it.")
    orphan.isAmountAtRiskUnknown = true
    orphan.occurredAt = SampleReport.asOf - .days(31)
    report.report(ReportedFinding(orphan, firstSeen: SampleReport.asOf))
    let document = try object(report.file("summary.json"))
    #expect(
      Set(document.keys) == [
        "complete", "incomplete_reasons", "as_of", "period", "configuration", "orders", "dispositions", "findings",
        "control", "adjustments", "not_checked", "feed_coverage", "changes", "unusual", "first",
      ])
    #expect(document["complete"] as? Bool == false)
    #expect(document["incomplete_reasons"] as? [String] == ["3 receipts were not answered."])
    #expect(document["as_of"] as? String == "2026-11-20T00:00:00Z")
    let period = try #require(document["period"] as? [String: Any])
    #expect(Set(period.keys) == ["since", "until", "time_zone", "ended", "missing_days"])
    #expect(period["since"] as? String == "2026-11-19" && period["until"] as? String == "2026-11-19")
    #expect(period["time_zone"] as? String == "Europe/Berlin" && period["ended"] as? Bool == true)
    #expect(document["configuration"] as? String == "c0ffee")
    #expect(document["orders"] as? [String: Int] == ["read": 3])

    let dispositions = try #require(document["dispositions"] as? [String: [String: Any]])
    #expect(Set(dispositions.keys) == Set(Disposition.allCases.map(\.rawValue)))
    #expect(dispositions["settled"]?["orders"] as? Int == 1)
    #expect(dispositions["settled"]?["amount"] as? [String: String] == ["USD": "1.99"])
    #expect(dispositions["paid_not_delivered"]?["amount"] as? [String: String] == ["JPY": "300"])
    #expect(dispositions["sandbox"]?["amount"] as? [String: String] == ["KWD": "1.250"])
    #expect(dispositions["void"]?["orders"] as? Int == 0)
    #expect((dispositions["void"]?["amount"] as? [String: String])?.isEmpty == true)

    let findings = try #require(document["findings"] as? [String: Any])
    #expect(findings["open"] as? [String: Int] == ["orphan_payment": 1, "paid_not_delivered": 1])
    #expect(findings["opening"] as? Int == 4)
    #expect(findings["new"] as? Int == 2)
    #expect(findings["closed"] as? Int == 4)
    #expect(findings["closing"] as? Int == 2)
    #expect(findings["at_stake"] as? [String: String] == ["JPY": "300"])
    #expect(findings["at_stake_by_kind"] as? [String: [String: String]] == ["paid_not_delivered": ["JPY": "300"]])
    #expect(findings["at_stake_unknown"] as? Int == 1)
    let ages = try #require(findings["ageing"] as? [[String: Any]])
    #expect(ages.map { $0["days"] as? String } == ["0-1", "2-7", "8-30", "over 30"])
    #expect(ages.map { $0["findings"] as? Int } == [1, 0, 0, 1])
    #expect(ages.map { $0["at_stake_unknown"] as? Int } == [0, 0, 0, 1])
    #expect(ages.map { $0["known"] as? Int } == [1, 1, 0, 0])
    #expect(ages[0]["at_stake"] as? [String: String] == ["JPY": "300"])
    #expect(
      document["not_checked"] as? [String: [String]]
        == ["Game": ["partial_refund", "amount_mismatch", "currency_mismatch"]])

    #expect(document["feed_coverage"] as? [String: Double] == ["Game": 0.6666])
    let control = try #require(document["control"] as? [[String: String]])
    #expect(control.first == ["name": "orders read = sum over dispositions", "left": "3", "right": "3"])
    #expect(control.contains(["name": "findings: opening + new - closed = closing", "left": "2", "right": "2"]))
    #expect(
      control.last
        == ["name": "at stake JPY: opening + new - closed + changed = closing", "left": "300", "right": "300"])
    #expect(control.contains(["name": "ordered USD = sum over users", "left": "1.99", "right": "1.99"]))
    #expect(control.contains(["name": "orders read = rows of orders.csv", "left": "3", "right": "3"]))
    #expect(control.contains(["name": "ordered USD = rows of amounts.csv", "left": "1.99", "right": "1.99"]))
    #expect(control.count == 4 + 7 * 2)
  }

  @Test func keysAreSortedAndTheFileEndsWithALineBreak() throws {
    let text = try SampleReport().file("summary.json")
    let keys = text.split(separator: "\n").filter { $0.hasPrefix("  \"") }.map { String($0.prefix { $0 != ":" }) }
    #expect(keys.count == 15)
    #expect(keys == keys.sorted())
    #expect(text.hasSuffix("}\n"))
  }

  @Test(arguments: [
    (0, "0-1"), (47, "0-1"), (48, "2-7"), (191, "2-7"), (192, "8-30"), (743, "8-30"), (744, "over 30"), (-5, "0-1"),
  ])
  func agesAreWholeDaysSinceTheTransactionWhateverTheFindingsOwnAge(_ hours: Int64, _ bucket: String) throws {
    var finding = Finding(kind: .paidNotDelivered, subject: .order("o1"), reason: "r")
    finding.occurredAt = SampleReport.asOf - .hours(hours)
    finding.atStake = try money(199, "USD")
    var ageing = Ageing()
    ageing.add(ReportedFinding(finding, firstSeen: SampleReport.asOf), asOf: SampleReport.asOf)
    #expect(ageing.buckets.filter { ageing[$0].findings == 1 }.map(\.rawValue) == [bucket])
    let money = ageing.buckets.reduce(into: MoneyByCurrency()) { $0.add(ageing[$1].money) }
    #expect(money.texts == ["USD": "1.99"])
    #expect(ageing.known(.upToOne) == 1)
  }

  @Test func agesHaveALineForUndatedTransactionsOnlyIfThereIsOne() {
    var ageing = Ageing()
    #expect(ageing.buckets.count == 4)
    ageing.add(
      ReportedFinding(Finding(kind: .badRow, subject: .receipt("r1"), reason: "r"), firstSeen: SampleReport.asOf),
      asOf: SampleReport.asOf)
    #expect(ageing.buckets.last == .undated)
  }

  @Test(arguments: [true, false])
  func unknownAmountsAtRiskAreCountedWithAndWithoutKnownOnes(isUnknown: Bool) throws {
    var finding = Finding(kind: .orphanPayment, subject: .transaction("T1"), reason: "r")
    finding.isAmountAtRiskUnknown = isUnknown
    var stake = RiskTotal()
    stake.add(finding)
    #expect(stake.unknown == (isUnknown ? 1 : 0))
    #expect(stake.words == (isUnknown ? "1 with amount unknown" : "nothing"))
    finding.isAmountAtRiskUnknown = false
    finding.atStake = try money(199, "USD")
    stake.add(finding)
    #expect(stake.words == (isUnknown ? "1.99 USD · 1 with amount unknown" : "1.99 USD"))
  }
}
