import AuditStore
import Foundation
import Testing

@testable import Publishing

@Suite struct MetricsFileTests {
  private static let file = MetricsFile([
    MetricsFile.Metric("night_audit_orders", help: "Orders of the period.", value: "7"),
    MetricsFile.Metric(
      "night_audit_apple_requests_total", .counter, help: "Questions.",
      [(labels: [("app", "a \"b\" \\ c\nd"), ("outcome", "verified")], value: "3")]),
    MetricsFile.Metric("night_audit_at_stake", help: "Nothing is written without a value.", []),
  ])

  @Test func metricsFollowTheExpositionFormat() {
    #expect(
      Self.file.text == #"""
        # HELP night_audit_orders Orders of the period.
        # TYPE night_audit_orders gauge
        night_audit_orders 7
        # HELP night_audit_apple_requests_total Questions.
        # TYPE night_audit_apple_requests_total counter
        night_audit_apple_requests_total{app="a \"b\" \\ c\nd",outcome="verified"} 3

        """#)
  }

  @Test func theFileIsReplacedAtomicallyAndWorldReadable() throws {
    let reports = try ReportsDirectory()
    let path = reports.path + "/night_audit.prom"
    try reports.write("night_audit_orders 1\n", "night_audit.prom")
    let before = umask(0o077)
    defer { umask(before) }
    try Self.file.write(to: path)
    #expect(reports.text("night_audit.prom") == Self.file.text)
    #expect(MetricsFile.value("night_audit_orders", in: path) == "7")
    for name in ["night_audit_none", "night_audit_order"] { #expect(MetricsFile.value(name, in: path) == nil) }
    let others = [
      MetricsFile.Metric("night_audit_orders", help: "Orders of the period.", value: "8"),
      MetricsFile.Metric("night_audit_apple_requests_total", .counter, help: "Questions.", []), Self.file.metrics[2],
    ]
    #expect(MetricsFile(others.map { $0.valued(asIn: path) }).text == Self.file.text)
    #expect(try reports.entries() == ["night_audit.prom"])
    #expect(try reports.mode("night_audit.prom") == 0o644)
    #expect(throws: PublishingFailure.self) { try Self.file.write(to: reports.path + "/none/x.prom") }
  }

  @Test func countersAreTheSumOfAllNightsAndRestartIfTheFileIsCorrupt() throws {
    let reports = try ReportsDirectory()
    let path = reports.path + "/night_audit.prom"
    func requests(_ counts: [(String, Int)]) -> MetricsFile.Metric {
      MetricsFile.Metric(
        "night_audit_apple_requests_total", .counter, help: "Requests.",
        counts.map { (labels: [("app", $0.0), ("outcome", "answered")], value: String($0.1)) })
    }
    func latency(_ atMost: Int, _ count: Int, _ sum: Double) -> MetricsFile.Metric {
      MetricsFile.Metric(
        "night_audit_apple_latency_seconds", help: "Latency.", buckets: [(bound: 0.5, atMost: atMost)], count: count,
        sum: sum)
    }
    try MetricsFile([requests([("a", 3), ("b", 4)]), latency(1, 2, 1.5)]).write(to: path)
    let second = MetricsFile([requests([("a", 10)]), latency(5, 6, 2)].map { $0.accumulated(from: path) })
    #expect(second.text.contains(#"{app="a",outcome="answered"} 13"#))
    #expect(second.text.contains(#"{app="b",outcome="answered"} 4"#))
    #expect(second.text.contains(#"_bucket{le="0.5"} 6"#) && second.text.contains(#"_bucket{le="+Inf"} 8"#))
    #expect(second.text.contains("_sum 3.5") && second.text.contains("_count 8"))
    try second.write(to: path)
    let third = MetricsFile([requests([]), latency(0, 0, 0)].map { $0.accumulated(from: path) })
    #expect(third.text == second.text)

    for corrupt in [
      #"night_audit_apple_requests_total{app="a",outcome="answered"} -5"#,
      #"night_audit_apple_requests_total{app="a",outcome="answered"} nan"#,
      #"night_audit_apple_requests_total{app="a",outcome="answered" 5"#, "night_audit_apple_requests_total{} x",
    ] {
      try reports.write(corrupt + "\n", "night_audit.prom")
      #expect(requests([("a", 10)]).accumulated(from: path).samples.map(\.value) == ["10"], "\(corrupt)")
    }
    try reports.write(
      #"night_audit_apple_requests_total{app="a",outcome="answered"} 9223372036854775807"# + "\n", "night_audit.prom")
    #expect(requests([("a", 10)]).accumulated(from: path).samples.map(\.value) == ["9.223372036854776e+18"])
  }

  @Test func aPipeInPlaceOfTheFileIsNotOpened() throws {
    let reports = try ReportsDirectory()
    let path = reports.path + "/night_audit.prom"
    #expect(mkfifo(path, 0o644) == 0)
    #expect(MetricsFile.value("night_audit_orders", in: path) == nil)
    #expect(throws: PublishingFailure.self) { try Self.file.write(to: path) }
  }

  @Test func foreignFilesAreNotOverwritten() throws {
    let reports = try ReportsDirectory()
    for (name, content) in [
      ("other.prom", "node_disk_free 1\n"), ("notes", "night_audit_orders 1\nremember the milk\n"),
    ] {
      try reports.write(content, name)
      #expect(throws: PublishingFailure.self) { try Self.file.write(to: reports.path + "/" + name) }
      #expect(reports.text(name) == content)
    }
    try reports.write("", "real.prom")
    try reports.link("link.prom", to: "real.prom")
    try Self.file.write(to: reports.path + "/link.prom")
    #expect(reports.text("real.prom") == Self.file.text)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: reports.path + "/link.prom") == "real.prom")
  }

  @Test func aLeftoverMetricsFileIsReplaced() throws {
    let reports = try ReportsDirectory()
    try reports.write(String(repeating: "longer than what is written. ", count: 100), ".night_audit.prom.next")
    try Self.file.write(to: reports.path + "/night_audit.prom")
    #expect(reports.text("night_audit.prom") == Self.file.text)
    #expect(try reports.entries() == ["night_audit.prom"])
  }

  @Test func concurrentWritersLeaveWholeFiles() async throws {
    let reports = try ReportsDirectory()
    let path = reports.path + "/night_audit.prom"
    let texts = (0..<4).map { String(repeating: "\($0)", count: 100_000 + $0) }
    try await withThrowingTaskGroup { group in
      for text in texts {
        group.addTask { for _ in 0..<50 { try WholeFile(path: path).write(Array(text.utf8)) } }
      }
      for _ in 0..<200 { if let seen = reports.text("night_audit.prom") { #expect(texts.contains(seen)) } }
      try await group.waitForAll()
    }
    #expect(try reports.entries() == ["night_audit.prom"])
  }
}

@Suite struct ReportVerificationTests {
  @Test func everyChangedByteIsFound() throws {
    let reports = try ReportsDirectory()
    try reports.publish("a", reports.exact("out"))
    let folder = reports.path + "/out"
    // The fixture has no control totals, which is a fault of its own.
    #expect(
      ReportVerification(directory: folder).checks.filter { $0.problem != nil }.map(\.subject) == ["control totals"])
    try reports.write("b", "out/orders.csv")
    try FileManager.default.removeItem(atPath: folder + "/book.xlsx")
    try reports.write("mine", "out/notes.txt")
    let found = ReportVerification(directory: folder)
    #expect(found.checks.filter { $0.problem != nil }.map(\.subject) == ["book.xlsx", "orders.csv", "control totals"])
    #expect(found.checks.contains { $0.problem != nil })
    try reports.write("{}", "out/summary.json")
    #expect(
      ReportVerification(directory: folder).checks.contains {
        $0.subject == "control totals" && $0.problem?.contains("summary.json") == true
      })
    try reports.write("malformed\n", "out/SHA256SUMS")
    let edited = ReportVerification(directory: folder)
    #expect(edited.isReport && edited.content == nil)
    #expect(edited.checks.first?.problem?.contains("SHA256SUMS is missing, cannot be read, or was edited") == true)
    // Any file of the report shows that the folder was one.
    for name in ["SHA256SUMS", "summary.json"] { try reports.remove("out/" + name) }
    try reports.write("{}", "out/run.json")
    #expect(ReportVerification(directory: folder).isReport)
    try reports.remove("out/run.json")
    #expect(ReportVerification(directory: folder).isReport)
    let other = ReportVerification(directory: reports.path)
    #expect(!other.isReport && other.content == nil)
  }

  @Test func aHugeFileIsNotReadAsPartOfAReport() throws {
    let reports = try ReportsDirectory()
    try reports.publish("a", reports.exact("out"))
    let folder = reports.path + "/out"
    let stored = reports.text("out/SHA256SUMS")
    let sums = try #require(stored)
    #expect(ReportContents(directory: folder)?.runId != nil)
    try reports.write(#"{"run_id": "a"}"# + String(repeating: " ", count: 17 << 20), "out/run.json")
    let contents = try #require(ReportContents(directory: folder))
    #expect(contents.runId == nil)
    try reports.write(sums + String(repeating: "\n", count: 17 << 20), "out/SHA256SUMS")
    #expect(ReportContents(directory: folder) == nil)
  }
}
