import Publishing
import Testing

@testable import NightAudit
@testable import Reconciliation

@Suite struct NightMonitorTests {
  @Test func theUnusualMetricIsOneForUnusualKindsAndZeroForOthers() {
    let unusual = UnusualShare(
      subject: .kind(.chargedTwice), count: 14, orders: 100, countBefore: 9, ordersBefore: 1_000, nights: 28)
    let text = MetricsFile([NightMonitor.metrics([unusual])]).text
    #expect(text.contains("# TYPE night_audit_unusual gauge\n"))
    #expect(text.contains("\nnight_audit_unusual{kind=\"charged_twice\"} 1\n"), "\(text)")
    #expect(text.contains("\nnight_audit_unusual{kind=\"refunds\"} 0\n"), "\(text)")
    #expect(text.split(separator: "\n").count { $0.hasSuffix("} 1") } == 1)
  }
}
