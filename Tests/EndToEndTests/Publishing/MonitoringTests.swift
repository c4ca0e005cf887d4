import Foundation
import TestSupport
import Testing

@Suite struct MonitoringTests {
  @Test func theMonitorIsPingedForNightsOnly() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [], isSmall: true)
    let monitor = try await Receiver.http()
    let url = "http://127.0.0.1:\(monitor.port)/secret-uuid"
    let metrics = shop.directory.file("night_audit.prom")
    let environment = ["NIGHT_AUDIT_NOTIFY_PING_URL": url, "NIGHT_AUDIT_METRICS_TEXTFILE": metrics]
    func run(_ more: String...) async throws -> Program.Result {
      try await shop.nightAudit("run", more: ["--as-of", Rehearsal.asOf] + more, environment: environment)
    }
    #expect(try await run().status == 3)
    #expect(try monitor.posts().map(\.path) == ["/secret-uuid/start", "/secret-uuid"])
    #expect(try monitor.posts().last?.body.contains("Exit status: 3") == true)
    #expect(try await run("--user", "x").status != 70)
    #expect(try await run("--dry-run").status == 3)
    #expect(try monitor.posts().count == 2)
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
    let asked = try shop.requests()
    #expect(replies == asked)
    let counted = text.matches(of: /night_audit_apple_requests_total\{app="game",outcome="([a-z_]+)"\} (\d+)/)
    #expect(counted.reduce(0) { $0 + (Int($1.2) ?? 0) } == asked)
    #expect(counted.contains { $0.1 == "answered" }, "\(text)")

    // An unreachable monitor changes nothing.
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_NOTIFY_PING_URL": "http://127.0.0.1:1/x"],
      exits: [3], says: "notify.pingUrl was not reached")
    try await shop.execute("ALTER TABLE sales.deliveries RENAME TO gone")
    let failed = try await run()
    #expect(failed.status == 78, "\(failed.status) \(failed.errors)")
    #expect(try monitor.posts().last?.path == "/secret-uuid/fail")
    let after = try String(contentsOfFile: metrics, encoding: .utf8)
    #expect(after.contains("night_audit_exit_status 78\n"))
    func findings(_ text: String) -> [Substring] {
      text.split(separator: "\n").filter { $0.contains(/^night_audit_(findings|at_stake)/) }
    }
    #expect(findings(after) == findings(text) && findings(text).count > 20)
    #expect(!(failed.errors + failed.output).contains("secret-uuid"))
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool")))
  func promtoolAcceptsTheMetricsRealParts() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
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

  /// An empty shop, so that its nights are complete and equal.
  @Test func anUnchangedNightIsMailedOnlyToSubscribersOfEveryNight() async throws {
    let shop = try await Rehearsal.emptyShop()
    func count(_ target: String) async throws -> String {
      try await shop.value("SELECT count(DISTINCT run_id) FROM night_audit.dispatches WHERE target = '\(target)'")
    }
    for (word, days, mails) in [("change", 20...21, "1"), ("always", 22...22, "2")] {
      try shop.configure(
        """
          deliver: [finance, archive]
        deliver:
          finance: {url: "smtp://127.0.0.1:1", from: a@example.com, to: [b@example.com], attempts: 1}
          archive: {command: [/bin/true]}
        notify: {on: \(word)}
        """)
      for day in days { _ = try await shop.nightAudit("run", "--as-of", "2026-11-\(day)T03:00:00Z", "--accept") }
      #expect(try await count("finance") == mails, "\(word)")
    }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs WHERE complete") == "3")
    #expect(try await count("archive") == "3")
  }

  @Test func everyLineOfTheLogNamesTheRun() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    func night(_ format: String) async throws -> (result: Program.Result, lines: [String]) {
      let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--log-format", format)
      return (result, result.errors.split(separator: "\n").map(String.init))
    }
    for format in ["json", "logfmt"] {
      let lines = try await night(format).lines
      let run = try await shop.value("SELECT run_id FROM night_audit.runs ORDER BY started_at DESC LIMIT 1")
      #expect(!lines.isEmpty)
      for line in lines {
        #expect(line.contains(run), "\(line)")
        if format == "json" { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
      }
    }
    try await shop.execute("ALTER TABLE sales.deliveries RENAME TO gone")
    for (format, fields) in [("json", [#""level":"error""#, #""run":""#]), ("logfmt", [" level=error ", " run="])] {
      let failed = try await night(format)
      let last = try #require(failed.lines.last)
      #expect(failed.result.status == 78 && last.contains("sales.deliveries"), "\(failed)")
      for field in fields { #expect(last.contains(field), "\(last)") }
    }
  }

  @Test func statusIsOneScreenAndVerifyProvesTheReport() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    let none = try await shop.nightAudit("status")
    #expect(none.status == 0 && none.output.contains("none yet"), "\(none.output)")
    // A new installation is overdue once its first night is.
    #expect(none.output.contains("Overdue        no"), "\(none.output)")
    let days = "UPDATE night_audit.schema_migrations SET applied_at = applied_at"
    try await shop.execute("\(days) - interval '9 days'")
    try await shop.nightAudit("status", exits: [0], says: "OVERDUE        no night has made a report")
    try await shop.execute("\(days) + interval '9 days'")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let document = try await shop.nightAudit("status", "--json").json()
    // A report of an old night, made just now, does not replace tonight's.
    let asOf = try Date(Rehearsal.asOf, strategy: .iso8601)
    #expect(document["overdue"] as? Bool == (Date.now > asOf.addingTimeInterval(30 * 3_600)))
    try await shop.nightAudit(
      "status", environment: ["NIGHT_AUDIT_RECHECK_MAX_DURATION": "3650d"], says: "Overdue        no")
    #expect((document["last_night"] as? [String: Any])?["state"] as? String == "incomplete")
    #expect((document["open_findings"] as? [String: Int])?["critical"] ?? 0 > 0)

    let folder = shop.reports + "/2026-11-19"
    for arguments in [[folder], [shop.reports + "/latest"], ["--run", "latest"]] {
      let proven = try await shop.nightAudit("verify", more: arguments, exits: [0])
      #expect(proven.output.contains("balanced"), "\(proven.output)")
    }
    try "x".write(toFile: folder + "/orders.csv", atomically: true, encoding: .utf8)
    let changed = try await shop.nightAudit("verify", folder, "--quiet", exits: [70])
    #expect(changed.output == "PROBLEM  orders.csv: is not as it was written\n", "\(changed)")
    try await shop.nightAudit("verify", shop.directory.url.path, exits: [1])
    try await shop.nightAudit("verify", "x", "--run", "y", exits: [64])

    // `status` shows the day of a run in another report time zone.
    try await shop.nightAudit(
      "run", more: ["--offline", "--as-of", "2026-11-21T03:00:00Z"],
      environment: ["NIGHT_AUDIT_REPORT_TIME_ZONE": "GMT+0200"], exits: [0, 3])
    try await shop.nightAudit("status", exits: [0], says: "2026-11-20")
  }

  @Test func aManualReportOfAnOldDayIsNoNight() async throws {
    let shop = try await Rehearsal.emptyShop()
    let monitor = try await Receiver.http()
    let url = "http://127.0.0.1:\(monitor.port)/secret-uuid"
    let environment = [
      "NIGHT_AUDIT_NOTIFY_PING_URL": url, "NIGHT_AUDIT_METRICS_TEXTFILE": shop.directory.file("night_audit.prom"),
    ]
    func status() async throws -> [String: Any] { try await shop.nightAudit("status", "--json").json() }
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", environment: environment, exits: [0])
    let (heard, before) = (try monitor.posts().map(\.path), try await status())
    #expect(before["last_complete_day"] as? String == "2026-11-19")
    let made = try #require((before["last_night"] as? [String: Any])?["finished_at"] as? String)
    #expect(before["last_complete_at"] as? String == made)
    try await shop.nightAudit("status", says: "Last complete  2026-11-19, ended \(made)\n")
    let metrics = try String(contentsOfFile: shop.directory.file("night_audit.prom"), encoding: .utf8)
    let old = try await shop.nightAudit(
      "run", "--as-of", "2026-11-22T03:00:00Z", "--date", "2026-11-10", environment: environment)
    #expect(old.status == 0 && FileManager.default.fileExists(atPath: shop.reports + "/2026-11-10"), "\(old)")
    #expect(try monitor.posts().map(\.path) == heard)
    #expect(try String(contentsOfFile: shop.directory.file("night_audit.prom"), encoding: .utf8) == metrics)
    let after = try await status()
    #expect((after["last_night"] as? [String: Any])?["day"] as? String == "2026-11-19")
    #expect(after["last_complete_at"] as? String == before["last_complete_at"] as? String)
    #expect(after["overdue"] as? Bool == before["overdue"] as? Bool)
  }

  @Test func aForgottenRunIsUndone() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let findings =
      "SELECT string_agg(finding_id, ',' ORDER BY finding_id) FROM night_audit.findings WHERE closed_at IS NULL"
    let before = try await shop.value(findings)
    // A later night with most orders missing, accepted by a person.
    try await shop.execute("CREATE SCHEMA kept; CREATE TABLE kept.orders AS TABLE sales.orders; TRUNCATE sales.orders")
    try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", "--accept", exits: [0, 3])
    #expect(try await shop.value(findings) != before)
    try await shop.execute("INSERT INTO sales.orders SELECT * FROM kept.orders")
    // A later night depends on the one before.
    let first = try await shop.value("SELECT run_id FROM night_audit.runs ORDER BY as_of LIMIT 1")
    try await shop.nightAudit("runs", "forget", first, exits: [64], says: "Forget the newest run first")
    try await shop.nightAudit("runs", "forget", "latest", exits: [0])
    #expect(try await shop.value(findings) == before)
    #expect(try shop.latestDay() == "2026-11-19")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/2026-11-20"))
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.runs WHERE publication = 'forgotten' AND complete IS NULL")
        == "1")
    let run = try await shop.value("SELECT run_id FROM night_audit.runs WHERE publication = 'forgotten'")
    try await shop.nightAudit("runs", "forget", run, exits: [1], says: "was forgotten before")
    try await shop.nightAudit("runs", says: "forgotten")
    let status = try await shop.nightAudit("status").output
    #expect(status.contains("Last night     2026-11-19: incomplete") && !status.contains("/2026-11-20"), "\(status)")

    // The re-run had replaced its report, so undoing it leaves the day without one.
    try await shop.nightAudit("run", "--as-of", "2026-11-20T09:00:00Z", "--accept", exits: [0, 3])
    try await shop.nightAudit("runs", "forget", "latest", says: "no report covers 2026-11-19")
    try await shop.nightAudit("status", says: "Last night     none left")
    try await shop.nightAudit("runs", says: "gone")
    try await shop.nightAudit("verify", "--run", "2026-11-19", exits: [0], says: "a forgotten run had replaced")
  }
}
