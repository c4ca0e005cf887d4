import AppStore
import AuditStore
import Logging
import Publishing
import Settings
import Synchronization
import Testing

@testable import NightAudit
@testable import Reconciliation
@testable import Run

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

  @Test func unwrittenMetricsAreReportedAlsoWithQuiet() async {
    let lines = Mutex("")
    var settings = Settings()
    settings.metricsTextfile = "/nonexistent/night_audit.prom"
    let asOf = Instant(seconds: 1_795_132_800)
    let record = RunRecord(
      runId: "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d1a", command: "run", asOf: asOf,
      period: Period.dayBefore(asOf, in: settings.timeZone), timeZone: "UTC", configuration: "", isNightly: true,
      host: "host")
    // The level of --quiet.
    let logger = LogFormat.text.logger(.error) { line in lines.withLock { $0 += line } }
    let monitor = NightMonitor(settings: settings, logger: logger, record: record, stop: StopSignal())
    #expect("\(StopSignal.Stopped(reason: .terminated))" == "stopped by a signal before a report was published")
    await monitor.failed(CancellationError(), status: 70, requests: RequestStatistics().counts)
    #expect(lines.withLock(\.self).contains("metrics.textfile: cannot write /nonexistent"))
  }
}
