import Reconciliation
import Testing

@testable import Reporting

@Suite struct FirstFindingsTests {
  private func reported(_ id: Identifier, _ money: Money?, _ kind: FindingKind = .paidNotDelivered) -> ReportedFinding {
    var finding = Finding(kind, .order(id), money, reason: "")
    finding.amount = money
    return ReportedFinding(finding)
  }

  private func ranked(_ findings: [ReportedFinding]) -> [String] {
    var first = FirstFindings()
    for finding in findings.sorted(by: {
      $0.urgency(asOf: SampleReport.asOf).lexicographicallyPrecedes($1.urgency(asOf: SampleReport.asOf))
    }) { first.add(finding) }
    let averages = ["JPY": 500.0, "USD": 500.0, "CNY": 3_000.0].map { (Currency(code: $0), $1) }
    return first.ranked { currency in averages.first { $0.0 == currency }?.1 }.map { $0.finding.subject.id.text }
  }

  @Test func theLargestAmountsOfAllCurrenciesComeFirst() {
    var findings = (1...9).map { reported(Identifier("cny\($0)"), money(600 + Int64($0), "CNY")) }
    findings += [
      reported("usd", money(9_999, "USD")), reported("kwd", money(9_999, "KWD")), reported("unknown", nil),
    ]
    #expect(ranked(findings) == ["usd", "kwd", "cny9", "cny8", "cny7"])
    findings.append(reported("minor", money(99_999, "USD"), .accountTokenMissing))
    #expect(ranked(findings) == ["usd", "kwd", "cny9", "cny8", "cny7"])
    #expect(ranked(Array(findings.suffix(3))) == ["kwd", "unknown", "minor"])
  }

  @Test func acceptedAndClosedFindingsAreNotListed() {
    let findings = FindingStatus.allCases.enumerated().map { place, status in
      var finding = reported(Identifier(status.rawValue), money(100 + Int64(place), "USD"))
      (finding.status, finding.owner, finding.due) = (status.rawValue, "Dana", "2026-11-01")
      return finding
    }
    #expect(ranked(findings) == ["acknowledged", "open"])
    var summary = FindingsSummary()
    for finding in findings { summary.add(finding, asOf: SampleReport.asOf, today: "2026-11-20") }
    #expect(summary.owners == [.init(owner: "Dana", open: 2, critical: 2, overdue: 2)])
    #expect(summary.liability.parts == [currency("USD"): [.paidNotDelivered: 201]])
    #expect(summary.liability.note.hasSuffix("2 findings that a person accepted or closed are excluded."))
    #expect(summary.closing == 4 && summary.atStake == MoneyByCurrency([currency("USD"): 406]))
  }

  @Test func aMailReportsNoOpenFindingOnlyWithoutAnyFinding() {
    var report = SampleReport()
    #expect(report.mail().body.text.contains("What to do first\n  No finding is open."))
    var closed = reported("o1", nil)
    closed.status = "closed"
    report.report(closed)
    let text = report.mail().body.text
    #expect(!text.contains("What to do first") && !text.contains("No finding is open."))
  }

  @Test func twentyOwnersAreNamedAndTheRestIsCounted() {
    var summary = FindingsSummary()
    for number in 1...23 {
      var finding = reported(Identifier("o\(number)"), nil)
      finding.owner = number == 23 ? nil : "owner \(number)"
      summary.add(finding, asOf: SampleReport.asOf, today: "2026-11-20")
    }
    let shown = summary.shownOwners
    #expect(shown.count == 22 && shown.prefix(20).allSatisfy { $0.name.hasPrefix("owner ") && $0.line.open == 1 })
    #expect(shown.suffix(2).map(\.name) == ["No owner", "2 more owners"])
    #expect(shown.suffix(2).map(\.line.open) == [1, 2])
  }
}
