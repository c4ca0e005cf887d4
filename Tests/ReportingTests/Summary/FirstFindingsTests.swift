import Reconciliation
import Testing

@testable import Reporting

@Suite struct FirstFindingsTests {
  private func reported(_ id: String, _ money: Money?, _ kind: FindingKind = .paidNotDelivered) -> ReportedFinding {
    var finding = Finding(kind: kind, subject: .order(Identifier(id)), reason: "")
    finding.amount = money
    finding.atStake = money
    return ReportedFinding(finding, firstSeen: SampleReport.asOf)
  }

  private func ranked(_ findings: [ReportedFinding]) -> [String] {
    var first = FirstFindings()
    for finding in findings.sorted(by: {
      $0.urgency(asOf: SampleReport.asOf).lexicographicallyPrecedes($1.urgency(asOf: SampleReport.asOf))
    }) { first.add(finding) }
    let averages = ["JPY": 500.0, "USD": 500.0, "CNY": 3_000.0].map { (Currency(code: $0), $1) }
    return first.ranked { currency in averages.first { $0.0 == currency }?.1 }.map { $0.finding.subject.id.text }
  }

  @Test func theLargestAmountsOfAllCurrenciesComeFirst() throws {
    let (cny, usd, kwd) = try (
      #require(Currency(code: "CNY")), #require(Currency(code: "USD")), #require(Currency(code: "KWD"))
    )
    var findings = (1...9).map { reported("cny\($0)", Money(minorUnits: 600 + Int64($0), currency: cny)) }
    findings.append(reported("usd", Money(minorUnits: 9_999, currency: usd)))
    findings.append(reported("kwd", Money(minorUnits: 9_999, currency: kwd)))
    findings.append(reported("unknown", nil))
    #expect(ranked(findings) == ["usd", "kwd", "cny9", "cny8", "cny7"])
    findings.append(reported("minor", Money(minorUnits: 99_999, currency: usd), .accountTokenMissing))
    #expect(ranked(findings) == ["usd", "kwd", "cny9", "cny8", "cny7"])
    #expect(ranked(Array(findings.suffix(3))) == ["kwd", "unknown", "minor"])
  }

  @Test func acceptedAndClosedFindingsAreNotListed() throws {
    let usd = try #require(Currency(code: "USD"))
    var findings: [ReportedFinding] = []
    for (place, status) in FindingStatus.allCases.enumerated() {
      var finding = reported(status.rawValue, Money(minorUnits: 100 + Int64(place), currency: usd))
      (finding.status, finding.owner, finding.due) = (status.rawValue, "Dana", "2026-11-01")
      findings.append(finding)
    }
    #expect(ranked(findings) == ["acknowledged", "open"])
    var summary = FindingsSummary()
    for finding in findings { summary.add(finding, asOf: SampleReport.asOf, today: "2026-11-20") }
    #expect(summary.owners == [.init(owner: "Dana", open: 2, critical: 2, overdue: 2)])
    #expect(summary.liability.parts == [usd: [.paidNotDelivered: 201]])
    #expect(summary.liability.note.hasSuffix("2 findings that a person accepted or closed are excluded."))
    #expect(summary.closing == 4 && summary.atStake == MoneyByCurrency([usd: 406]))
  }

  @Test func aMailReportsNoOpenFindingOnlyWithoutAnyFinding() throws {
    var report = try SampleReport()
    func text() -> String {
      let document = SummaryDocument(
        totals: report.totals, summary: report.summary, control: [], asOf: SampleReport.asOf)
      return SummaryMail(document, folder: "reports", attachment: nil).body.text
    }
    #expect(text().contains("What to do first\n  No finding is open."))
    var closed = reported("o1", nil)
    closed.status = "closed"
    report.report(closed)
    #expect(!text().contains("What to do first") && !text().contains("No finding is open."))
  }

  @Test func twentyOwnersAreNamedAndTheRestIsCounted() throws {
    var summary = FindingsSummary()
    for number in 1...23 {
      var finding = reported("o\(number)", nil)
      finding.owner = number == 23 ? nil : "owner \(number)"
      summary.add(finding, asOf: SampleReport.asOf, today: "2026-11-20")
    }
    let shown = summary.shownOwners
    #expect(shown.count == 22 && shown.prefix(20).allSatisfy { $0.name.hasPrefix("owner ") && $0.line.open == 1 })
    #expect(shown.suffix(2).map(\.name) == ["No owner", "2 more owners"])
    #expect(shown.suffix(2).map(\.line.open) == [1, 2])
  }
}
