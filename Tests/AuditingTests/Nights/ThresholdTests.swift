import Auditing
import Reconciliation
import Reporting
import Run
import Testing

@Suite struct ThresholdTests {
  @Test(arguments: [(.critical, true), (.minor, false)] as [(Severity, Bool)])
  func theFindingsSeverityDecidesWhichAmountsCount(_ severity: Severity, isExceeded: Bool) throws {
    let asOf = Instant(seconds: 1_795_132_800)
    let dollars = try #require(Currency(code: "USD"))
    var finding = Finding(kind: .deliveredNotPaid, subject: .order("o1"), reason: "App Review bought at that time.")
    finding.severity = severity
    finding.atStake = Money(minorUnits: 990, currency: dollars)
    var findings = FindingsSummary()
    findings.add(ReportedFinding(finding, firstSeen: asOf), asOf: asOf)
    var threshold = FindingsThreshold()
    threshold.amounts[dollars] = 100
    #expect(threshold.isExceeded(by: findings) == isExceeded)
  }
}
