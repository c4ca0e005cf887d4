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
}
