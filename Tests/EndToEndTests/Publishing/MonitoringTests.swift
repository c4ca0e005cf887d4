import Foundation
import TestSupport
import Testing

@Suite struct MonitoringTests {
  private static let monitor = #"""
    import http.server, json, os, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with open(sys.argv[2], "a") as file:
                file.write(json.dumps([self.path, body]) + "\n")
            self.send_response(200)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_port))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()
    """#

  private func withMonitor(
    _ shop: Rehearsal, _ body: (_ url: String, _ pings: () throws -> [[String]]) async throws -> Void
  ) async throws {
    let (portFile, log) = (shop.directory.file("monitor-port"), shop.directory.file("pings"))
    try "".write(toFile: log, atomically: false, encoding: .utf8)
    let monitor = try Program(path: "/usr/bin/python3").start(["-c", Self.monitor, portFile, log])
    defer { monitor.kill() }
    let port = try await Rehearsal.port(in: portFile, of: monitor)
    try await body("http://127.0.0.1:\(port)/secret-uuid") {
      try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map {
        try JSONDecoder().decode([String].self, from: Data($0.utf8))
      }
    }
  }

  @Test func theMonitorIsPingedForNightsOnly() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await withMonitor(shop) { url, pings in
      let metrics = shop.directory.file("night_audit.prom")
      let environment = ["NIGHT_AUDIT_NOTIFY_PING_URL": url, "NIGHT_AUDIT_METRICS_TEXTFILE": metrics]
      func run(_ more: String...) async throws -> Program.Result {
        try await shop.nightAudit("run", more: ["--as-of", Rehearsal.asOf] + more, environment: environment)
      }
      #expect(try await run().status == 3)
      #expect(try pings().map { $0[0] } == ["/secret-uuid/start", "/secret-uuid"])
      #expect(try pings().last?[1].contains("Exit status: 3") == true)
      #expect(try await run("--user", "x").status != 70)
      #expect(try await run("--dry-run").status == 3)
      #expect(try pings().count == 2)
      let text = try String(contentsOfFile: metrics, encoding: .utf8)
      for line in ["night_audit_exit_status 3\n", "night_audit_stage_duration_seconds{stage=\"audit\"}"] {
        #expect(text.contains(line), "\(text)")
      }
      for name in [
        "night_audit_last_run_timestamp_seconds ", "night_audit_orders ",
        "night_audit_findings_open{kind=\"paid_not_delivered\",severity=\"critical\"} ",
        "night_audit_at_stake{currency=\"USD\"} ", "night_audit_at_stake_unknown ",
        "night_audit_receipts{state=\"due\"} ", "night_audit_receipts{state=\"answered\"} ",
        "night_audit_receipts{state=\"unanswered\"} ", "night_audit_apple_requests_total{app=",
        "night_audit_stage_duration_seconds{stage=\"recheck\"} ",
        "night_audit_apple_latency_seconds_bucket{le=\"0.1\"} ",
        "night_audit_apple_latency_seconds_bucket{le=\"+Inf\"} ", "night_audit_apple_latency_seconds_sum ",
        "night_audit_apple_latency_seconds_count ",
      ] { #expect(text.contains("\n" + name), "\(name)") }

      // Alerts and dashboard use only metrics that this night writes, and the time of the last complete night.
      let written = Set(text.matches(of: /night_audit_[a-z_]+/).map { String($0.0) })
      for file in ["night-audit-alerts.yaml", "night-audit-dashboard.json"] {
        let read = try String(contentsOf: Repository.root.appending(path: "cron/\(file)"), encoding: .utf8)
        let names = Set(read.matches(of: /night_audit_[a-z_]+/).map { String($0.0) })
        #expect(names.count > 3)
        #expect(names.subtracting(written) == ["night_audit_last_complete_timestamp_seconds"], "\(file)")
      }

      let replies = text.firstMatch(of: /night_audit_apple_latency_seconds_count (\d+)/).flatMap { Int($0.1) }
      let asked = try shop.requests().count
      #expect(replies == asked)
      let counted = text.matches(of: /night_audit_apple_requests_total\{app="game",outcome="([a-z_]+)"\} (\d+)/)
      #expect(counted.reduce(0) { $0 + (Int($1.2) ?? 0) } == asked)
      #expect(counted.contains { $0.1 == "answered" }, "\(text)")

      try await shop.execute("ALTER TABLE sales.deliveries RENAME TO gone")
      let failed = try await run()
      #expect(failed.status == 78, "\(failed.status) \(failed.errors)")
      #expect(try pings().last?[0] == "/secret-uuid/fail")
      let after = try String(contentsOfFile: metrics, encoding: .utf8)
      #expect(after.contains("night_audit_exit_status 78\n"))
      func findings(_ text: String) -> [Substring] {
        text.split(separator: "\n").filter { $0.contains(/^night_audit_(findings|at_stake)/) }
      }
      #expect(findings(after) == findings(text) && findings(text).count > 20)
      #expect(!(failed.errors + failed.output).contains("secret-uuid"))
    }
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")))
  func promtoolAcceptsTheMetricsRealParts() async throws {
    let shop = try await Rehearsal.sampleShop()
    let metrics = shop.directory.file("night_audit.prom")
    _ = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_METRICS_TEXTFILE": metrics])
    let judged = try await Program(path: "/bin/sh").run(["-c", "promtool check metrics < '\(metrics)'"])
    #expect(judged.status == 0 && judged.errors == "", "\(judged)")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")))
  func prometheusAlertsAfterThreeDaysWithoutACompleteNightRealParts() async throws {
    let directory = try TemporaryDirectory()
    let spoken = """
      exp_alerts: [{exp_labels: {severity: ticket}, exp_annotations: {summary: No complete night for three days, \
      description: Apple has not answered for everything that was due; night-audit status says for what.}}]
      """
    let text = """
      rule_files: [\(Repository.root.appending(path: "cron/night-audit-alerts.yaml").path)]
      evaluation_interval: 30m
      tests:
        - interval: 30m
          input_series:
            - {series: night_audit_exit_status, values: 3x480}
            - {series: night_audit_last_run_timestamp_seconds, values: 0x47 86400x47 172800x47 259200x47 345600x47 432000x100}
          alert_rule_test:
            - {eval_time: 2d, alertname: NightAuditNotComplete, exp_alerts: []}
            - {eval_time: 4d, alertname: NightAuditNotComplete, \(spoken)}
            - {eval_time: 6d, alertname: NightAuditNotComplete, \(spoken)}
        - interval: 30m
          input_series:
            - {series: night_audit_last_run_timestamp_seconds, values: 0+1800x480}
            - {series: night_audit_last_complete_timestamp_seconds, values: 0+1800x480}
          alert_rule_test: [{eval_time: 9d, alertname: NightAuditNotComplete, exp_alerts: []}]
      """
    try text.write(toFile: directory.file("test.yaml"), atomically: false, encoding: .utf8)
    let judged = try await Program(path: "/usr/bin/promtool").run(["test", "rules", directory.file("test.yaml")])
    #expect(judged.status == 0, "\(judged)")
  }

  @Test(arguments: [0, 3, 69]) func missingAnswersCauseNoCronMail(_ status: Int) async throws {
    let crontab = try String(contentsOf: Repository.root.appending(path: "cron/night-audit.crontab"), encoding: .utf8)
    let line = try #require(crontab.split(separator: "\n").first { $0.hasPrefix("5,35") })
    let command = try #require(line.firstMatch(of: /^(?:\S+ ){6}(.*)/)).1
    let directory = try TemporaryDirectory()
    let stub = directory.file("night-audit")
    try "#!/bin/sh\necho \"$1 is said\"; exit \(status)\n".write(toFile: stub, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: stub)
    let said = try await Program(path: "/bin/sh").run(
      ["-c", String(command)], environment: ["PATH": directory.url.path + ":/usr/bin:/bin"])
    #expect(said.output + said.errors == (status == 69 ? "recheck is said\n" : ""), "\(said)")
  }

  @Test func anUnreachableMonitorChangesNothing() async throws {
    let shop = try await Rehearsal.sampleShop()
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_NOTIFY_PING_URL": "http://127.0.0.1:1/x"])
    #expect(result.status == 3, "\(result.errors)")
    #expect(result.errors.contains("notify.pingUrl was not reached"), "\(result.errors)")
  }

  /// An empty shop, so that its nights are complete and equal.
  @Test(arguments: [("change", "1"), ("always", "3")])
  func anUnchangedNightIsMailedOnlyToSubscribersOfEveryNight(_ word: String, mails: String) async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute("TRUNCATE sales.orders, sales.receipts, sales.deliveries")
    let yaml =
      try shop.configuration() + """

          deliver: [finance, archive]
        deliver:
          finance: {url: "smtp://127.0.0.1:1", from: a@example.com, to: [b@example.com], attempts: 1}
          archive: {command: [/bin/true]}
        notify: {on: \(word)}
        """
    try yaml.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
    for day in 20...22 { _ = try await shop.nightAudit("run", "--as-of", "2026-11-\(day)T03:00:00Z", "--accept") }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs WHERE complete") == "3")
    func count(_ target: String) async throws -> String {
      try await shop.value("SELECT count(DISTINCT run_id) FROM night_audit.dispatches WHERE target = '\(target)'")
    }
    #expect(try await count("archive") == "3")
    #expect(try await count("finance") == mails)
  }

  @Test(arguments: ["json", "logfmt"]) func everyLineOfTheLogNamesTheRun(_ format: String) async throws {
    let shop = try await Rehearsal.sampleShop()
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--log-format", format)
    let run = try await shop.value("SELECT run_id FROM night_audit.runs")
    let lines = result.errors.split(separator: "\n")
    #expect(!lines.isEmpty)
    for line in lines {
      #expect(line.contains(run), "\(line)")
      if format == "json" { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
    }
    try await shop.execute("ALTER TABLE sales.deliveries RENAME TO gone")
    let failed = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--log-format", format)
    let last = try #require(failed.errors.split(separator: "\n").last.map(String.init))
    #expect(failed.status == 78 && last.contains("sales.deliveries"), "\(failed)")
    let fields = format == "json" ? [#""level":"error""#, #""run":""#] : [" level=error ", " run="]
    for field in fields { #expect(last.contains(field), "\(last)") }
  }

  @Test func statusIsOneScreenAndVerifyProvesTheReport() async throws {
    let shop = try await Rehearsal.sampleShop()
    let none = try await shop.nightAudit("status")
    #expect(none.status == 0 && none.output.contains("none yet") && none.output.contains("OVERDUE"), "\(none.output)")
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    let status = try await shop.nightAudit("status", "--json")
    let document = try #require(try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any])
    // A report of an old night, made just now, does not replace tonight's.
    let asOf = try Date(Rehearsal.asOf, strategy: .iso8601)
    #expect(document["overdue"] as? Bool == (Date.now > asOf.addingTimeInterval(30 * 3_600)))
    let patient = try await shop.nightAudit(
      "status", environment: ["NIGHT_AUDIT_RECHECK_MAX_DURATION": "3650d"])
    #expect(patient.output.contains("Overdue        no"), "\(patient)")
    #expect((document["last_night"] as? [String: Any])?["state"] as? String == "incomplete")
    #expect((document["open_findings"] as? [String: Int])?["critical"] ?? 0 > 0)

    let folder = shop.reports + "/2026-11-19"
    for arguments in [[folder], [shop.reports + "/latest"], ["--run", "latest"]] {
      let proven = try await shop.nightAudit("verify", more: arguments)
      #expect(proven.status == 0, "\(proven.output)\(proven.errors)")
      #expect(proven.output.contains("balanced"), "\(proven.output)")
    }
    try "x".write(toFile: folder + "/orders.csv", atomically: true, encoding: .utf8)
    let spoilt = try await shop.nightAudit("verify", folder)
    #expect(spoilt.status == 70 && spoilt.output.contains("orders.csv: is not as it was written"), "\(spoilt.output)")
    #expect(try await shop.nightAudit("verify", shop.directory.url.path).status == 1)
    #expect(try await shop.nightAudit("verify", "x", "--run", "y").status == 64)

    // `status` shows the day of a run in another report time zone.
    let elsewhere = try await shop.nightAudit(
      "run", more: ["--offline", "--as-of", "2026-11-21T03:00:00Z"],
      environment: ["NIGHT_AUDIT_REPORT_TIME_ZONE": "GMT+0200"])
    #expect([0, 3].contains(elsewhere.status), "\(elsewhere.errors)")
    let after = try await shop.nightAudit("status")
    #expect(after.status == 0 && after.output.contains("2026-11-20"), "\(after.output)\(after.errors)")
  }

  @Test func aManualReportOfAnOldDayIsNoNight() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute("TRUNCATE sales.orders, sales.receipts, sales.deliveries")
    try await withMonitor(shop) { url, pings in
      let environment = [
        "NIGHT_AUDIT_NOTIFY_PING_URL": url, "NIGHT_AUDIT_METRICS_TEXTFILE": shop.directory.file("night_audit.prom"),
      ]
      func status() async throws -> [String: Any] {
        let said = try await shop.nightAudit("status", "--json").output
        return try #require(try JSONSerialization.jsonObject(with: Data(said.utf8)) as? [String: Any])
      }
      let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", environment: environment)
      #expect(night.status == 0, "\(night)")
      let (heard, before) = (try pings(), try await status())
      #expect(before["last_complete_day"] as? String == "2026-11-19")
      let made = try #require((before["last_night"] as? [String: Any])?["finished_at"] as? String)
      #expect(before["last_complete_at"] as? String == made)
      #expect(try await shop.nightAudit("status").output.contains("Last complete  2026-11-19, ended \(made)\n"))
      let metrics = try String(contentsOfFile: shop.directory.file("night_audit.prom"), encoding: .utf8)
      let old = try await shop.nightAudit(
        "run", "--as-of", "2026-11-22T03:00:00Z", "--date", "2026-11-10", environment: environment)
      #expect(old.status == 0 && FileManager.default.fileExists(atPath: shop.reports + "/2026-11-10"), "\(old)")
      #expect(try pings() == heard)
      #expect(try String(contentsOfFile: shop.directory.file("night_audit.prom"), encoding: .utf8) == metrics)
      let after = try await status()
      #expect((after["last_night"] as? [String: Any])?["day"] as? String == "2026-11-19")
      #expect(after["last_complete_at"] as? String == before["last_complete_at"] as? String)
      #expect(after["overdue"] as? Bool == before["overdue"] as? Bool)
    }
  }

  @Test func aFutureAsOfIsRejectedAndUndone() async throws {
    let shop = try await Rehearsal.sampleShop()
    for command in ["run", "recheck"] {
      let result = try await shop.nightAudit(command, "--as-of", "2126-01-01T03:00:00Z")
      #expect(result.status == 64, "\(command): \(result.errors)")
      #expect(result.errors.contains("is in the future"), "\(result.errors)")
    }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs") == "0")

    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    let findings =
      "SELECT string_agg(finding_id, ',' ORDER BY finding_id) FROM night_audit.findings WHERE closed_at IS NULL"
    let before = try await shop.value(findings)
    // A later night with most orders missing, accepted by a person.
    try await shop.execute("CREATE SCHEMA kept; CREATE TABLE kept.orders AS TABLE sales.orders; TRUNCATE sales.orders")
    #expect([0, 3].contains(try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", "--accept").status))
    #expect(try await shop.value(findings) != before)
    try await shop.execute("INSERT INTO sales.orders SELECT * FROM kept.orders")
    // A later night depends on the one before.
    let first = try await shop.value("SELECT run_id FROM night_audit.runs ORDER BY as_of LIMIT 1")
    let refused = try await shop.nightAudit("runs", "forget", first)
    #expect(refused.status == 64 && refused.errors.contains("Forget the newest run first"), "\(refused)")
    let forgotten = try await shop.nightAudit("runs", "forget", "latest")
    #expect(forgotten.status == 0, "\(forgotten.errors)")
    #expect(try await shop.value(findings) == before)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: shop.reports + "/latest") == "2026-11-19")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/2026-11-20"))
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.runs WHERE publication = 'forgotten' AND complete IS NULL")
        == "1")
    let run = try await shop.value("SELECT run_id FROM night_audit.runs WHERE publication = 'forgotten'")
    let again = try await shop.nightAudit("runs", "forget", run)
    #expect(again.status == 1 && again.errors.contains("was forgotten before"), "\(again)")
    #expect(try await shop.nightAudit("runs").output.contains("forgotten"))
    let status = try await shop.nightAudit("status").output
    #expect(status.contains("Last night     2026-11-19: incomplete") && !status.contains("/2026-11-20"), "\(status)")

    // The re-run had replaced its report, so undoing it leaves the day without one.
    #expect([0, 3].contains(try await shop.nightAudit("run", "--as-of", "2026-11-20T09:00:00Z", "--accept").status))
    let taken = try await shop.nightAudit("runs", "forget", "latest")
    #expect(taken.output.contains("no report covers 2026-11-19"), "\(taken)")
    #expect(try await shop.nightAudit("status").output.contains("Last night     none left"))
    #expect(try await shop.nightAudit("runs").output.contains("gone"))
    let verified = try await shop.nightAudit("verify", "--run", "2026-11-19")
    #expect(verified.status == 0 && verified.output.contains("a forgotten run had replaced"), "\(verified)")
  }
}
