import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct SummaryDocumentTests {
  @Test func summaryJsonHasEveryKeyEveryDispositionAndAmountsAsTextWithTheCurrencysDigits() throws {
    var report = SampleReport()
    report.add(order("o1", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), isDelivered: false))
    report.add(order("o3", money(1_250, "KWD"), user: "tester", environment: .sandbox))
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["3 receipts were not answered."]
    (report.summary.findings.opening, report.summary.findings.closed) = (4, 4)
    report.summary.notChecked = ["Game": FindingKind.allCases.filter { $0.has(.needsServerAPI) }]
    report.summary.feedCoverage["Game"] = FeedCoverage(sales: 3, reported: 2)
    var orphan = Finding(.orphanPayment, .transaction("T1"), reason: "No order claims it.")
    (orphan.isAmountAtRiskUnknown, orphan.occurredAt) = (true, SampleReport.asOf - .days(31))
    report.report(ReportedFinding(orphan))
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
    #expect(document["configuration"] as? String == "c0ffee" && document["orders"] as? [String: Int] == ["read": 3])

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
    #expect(["opening", "new", "closed", "closing"].map { findings[$0] as? Int } == [4, 2, 4, 2])
    #expect(findings["at_stake"] as? [String: String] == ["JPY": "300"])
    #expect(findings["at_stake_by_kind"] as? [String: [String: String]] == ["paid_not_delivered": ["JPY": "300"]])
    #expect(findings["at_stake_unknown"] as? Int == 1)
    let ages = try #require(findings["ageing"] as? [[String: Any]])
    #expect(ages.map { $0["days"] as? String } == ["0-1", "2-7", "8-30", "over 30"])
    for (key, counts) in [("findings", [1, 0, 0, 1]), ("at_stake_unknown", [0, 0, 0, 1]), ("known", [1, 1, 0, 0])] {
      #expect(ages.map { $0[key] as? Int } == counts, "\(key)")
    }
    #expect(ages[0]["at_stake"] as? [String: String] == ["JPY": "300"])
    #expect(
      document["not_checked"] as? [String: [String]]
        == ["Game": ["partial_refund", "amount_mismatch", "currency_mismatch"]])

    #expect(document["feed_coverage"] as? [String: Double] == ["Game": 0.6666])
    let control = try #require(document["control"] as? [[String: String]])
      .map { "\($0["name"] ?? ""): \($0["left"] ?? "") and \($0["right"] ?? "")" }
    #expect(control.first == "orders read = sum over dispositions: 3 and 3")
    #expect(control.last == "at stake JPY: opening + new - closed + changed = closing: 300 and 300")
    for line in [
      "findings: opening + new - closed = closing: 2 and 2", "ordered USD = sum over users: 1.99 and 1.99",
      "orders read = rows of orders.csv: 3 and 3", "ordered USD = rows of amounts.csv: 1.99 and 1.99",
    ] { #expect(control.contains(line), "\(line)") }
    #expect(control.count == 4 + 7 * 2)
  }

  @Test func keysAreSortedAndTheFileEndsWithALineBreak() throws {
    let text = try SampleReport().file("summary.json")
    let keys = text.split(separator: "\n").filter { $0.hasPrefix("  \"") }.map { String($0.prefix { $0 != ":" }) }
    #expect(keys.count == 15 && keys == keys.sorted() && text.hasSuffix("}\n"))
  }

  @Test(arguments: [
    (0, "0-1"), (47, "0-1"), (48, "2-7"), (191, "2-7"), (192, "8-30"), (743, "8-30"), (744, "over 30"), (-5, "0-1"),
  ])
  func agesAreWholeDaysSinceTheTransactionWhateverTheFindingsOwnAge(_ hours: Int64, _ bucket: String) {
    var finding = Finding(.paidNotDelivered, .order("o1"), money(199, "USD"))
    finding.occurredAt = SampleReport.asOf - .hours(hours)
    var ageing = Ageing()
    ageing.add(ReportedFinding(finding), asOf: SampleReport.asOf)
    #expect(ageing.buckets.filter { ageing[$0].findings == 1 }.map(\.rawValue) == [bucket])
    let money = ageing.buckets.reduce(into: MoneyByCurrency()) { $0.add(ageing[$1].money) }
    #expect(money.texts == ["USD": "1.99"] && ageing.known(.upToOne) == 1)
  }

  @Test func agesHaveALineForUndatedTransactionsOnlyIfThereIsOne() {
    var ageing = Ageing()
    #expect(ageing.buckets.count == 4)
    ageing.add(ReportedFinding(Finding(.badRow, .receipt("r1"))), asOf: SampleReport.asOf)
    #expect(ageing.buckets.last == .undated)
  }

  @Test(arguments: [true, false])
  func unknownAmountsAtRiskAreCountedWithAndWithoutKnownOnes(isUnknown: Bool) {
    var finding = Finding(.orphanPayment, .transaction("T1"))
    finding.isAmountAtRiskUnknown = isUnknown
    var stake = RiskTotal()
    stake.add(finding)
    #expect(stake.unknown == (isUnknown ? 1 : 0))
    #expect(stake.words == (isUnknown ? "1 with amount unknown" : "nothing"))
    (finding.isAmountAtRiskUnknown, finding.atStake) = (false, money(199, "USD"))
    stake.add(finding)
    #expect(stake.words == (isUnknown ? "1.99 USD · 1 with amount unknown" : "1.99 USD"))
  }
}
