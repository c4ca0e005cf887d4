import Foundation
import Postgres
import Testing
import TestSupport

@Suite struct ExitStatusTests {
  private static let app = "app: {game: {bundleId: com.example.game}}"

  private func run(
    _ arguments: [String], configuration: String = app, database: String, _ environment: [String: String] = [:]
  ) async throws -> Program.Result {
    let directory = try TemporaryDirectory()
    let options = arguments == ["frobnicate"] ? [] : ["--config", try directory.write(configuration, "config.yaml")]
    return try await Program.nightAudit.run(
      arguments + options, environment: ["NIGHT_AUDIT_DATABASE_URL": database].merging(environment) { $1 })
  }

  @Test(arguments: [
    ["run", "--dat", "2026-11-19"], ["run", "--date", "2026-02-30"],
    ["run", "--date", "2026-11-19", "--since", "2026-11-01"],
    ["run", "--as-of", "yesterday"], ["run", "--max-duration", "soon"], ["frobnicate"],
    ["run", "--as-of", "2026-11-31T03:00:00Z"], ["explain", "4711", "--as-of", "0001-01-01T00:00:00Z"],
    ["run", "--quiet", "--verbose"], ["findings", "list", "--min-age", "999999999999999d"],
    ["run", "--since", "2026-11-02", "--until", "2026-11-01"],
  ])
  func usageIs64(_ arguments: [String]) async throws {
    #expect(try await run(arguments, database: "host=/nonexistent").status == 64)
  }

  /// The results of a run with a future as-of would remain the newest ones until that instant.
  @Test func aFutureAsOfExitsWith64ForWritingCommands() async throws {
    let shop = try await Rehearsal.sampleShop()
    let out = shop.directory.file("out")
    try FileManager.default.createDirectory(atPath: out + "-files", withIntermediateDirectories: true)
    try shop.configure("tieOut:\n  folder: \(out)-files\n")
    for arguments in [["run"], ["recheck"], ["reconcile", "--out", out], ["tie-out"]] {
      try await shop.nightAudit(
        more: arguments + ["--as-of", "2036-11-20T03:00:00Z"], environment: ["NIGHT_AUDIT_AUDIT_CLOCK_SKEW": "5m"],
        exits: [64], says: "2036-11-20T03:00:00Z is in the future")
    }
    #expect(!FileManager.default.fileExists(atPath: out) && !FileManager.default.fileExists(atPath: shop.reports))
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs") == "0")
    #expect(try await shop.value("SELECT count(*) FROM night_audit.receipt_checks") == "0")
  }

  @Test(arguments: [
    ("\(app)\nreport: {timeZone: Mars/Olympus}", "report.timeZone"),
    ("\(app)\nrecheck: {staleAfter: soon}", "recheck.staleAfter"),
    ("\(app)\naudit: {lookbak: 1d}", "audit.lookback"),
    ("app: {game: {}}", "app.game.bundleId"), ("app: [", "config.yaml"), ("- a\n- b", "config.yaml"),
    ("app: {game: {bundleId: com.example.game, sharedSecretFile: /nonexistent/secret}}", "sharedSecretFile"),
    (
      "\(app)\nappstore: {channel: verifyReceipt, verifyReceiptUrl: 'http://example.com/x'}",
      "appstore.verifyReceiptUrl"
    ),
    (
      """
      \(app)
      report: {deliver: [post]}
      deliver: {post: {url: 'https://example.com/x', user: u, passwordFile: /nonexistent/secret}}
      """, "deliver.post.passwordFile"
    ),
    ("app: {a: {bundleId: x}, b: {bundleId: y}}", "appstore.apps"),
    ("\(app)\nappstore: {channel: serverApi}", "appstore.channel"),
  ])
  func brokenConfigurationIs78(_ yaml: String, _ key: String) async throws {
    let database = try await PrivatePostgres.shared().conninfo(database: "postgres")
    let result = try await run(["run"], configuration: yaml, database: database)
    #expect(result.status == 78 && result.errors.contains(key), "\(result.errors)")
  }

  @Test func aDatabaseThatCannotBeUsedIs69Or78() async throws {
    let cluster = try await PrivatePostgres.shared()
    for (command, database, status, says) in [
      ("run", "host=/nonexistent dbname=x", 69, "night-audit:"),
      ("run", cluster.conninfo(database: "absent"), 78, "check dbname"),
      ("reconcile", try await cluster.createDatabase(), 78, "night-audit init"),
    ] as [(String, String, Int32, String)] {
      let result = try await run([command], database: database)
      #expect(result.status == status && result.errors.contains(says), "\(result)")
    }
  }

  @Test(arguments: [(SIGINT, Int32(130)), (SIGTERM, Int32(143)), (SIGHUP, Int32(143))])
  func signalsKeepAnswersAndPublishNothing(_ signal: Int32, _ status: Int32) async throws {
    let shop = try await Rehearsal.sampleShop(simulator: ["--latency", "20ms"])
    // Signals ignored by the parent, as by nohup, would be ignored here too.
    let running = try Program(path: "/usr/bin/env").start(
      [
        "--default-signal=HUP", Program.nightAudit.executable.path, "run", "--quiet", "--as-of", Rehearsal.asOf,
        "--config",
        shop.directory.file("night-audit.yaml"),
      ], environment: ["NIGHT_AUDIT_APPSTORE_CONCURRENCY": "2"])
    while running.process.isRunning, try await shop.value("SELECT count(*) > 5 FROM night_audit.answers") != "true" {
      await pause()
    }
    kill(running.process.processIdentifier, signal)
    let result = await running.finish()
    #expect(result.status == status, "\(result.errors)")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/2026-11-19"))
    #expect(try await shop.value("SELECT exit_status FROM night_audit.runs") == String(status))
    #expect(result.errors == "night-audit: stopped by a signal\n")
    let told = try await shop.nightAudit("status").output
    let run = try await shop.value("SELECT run_id FROM night_audit.runs")
    #expect(
      told.contains("failed, exit status \(status)\n               - the log of run \(run) says why\n"), "\(told)")
    #expect(
      try await shop.value("SELECT count(*) > 0 FROM night_audit.receipt_checks WHERE worker IS NOT NULL") == "true")
    if signal == SIGTERM {
      try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, exits: [0, 3])
      #expect(try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE worker IS NOT NULL") == "0")
    }
  }

  @Test func aWrongSharedSecretIs78WithReportsAndNoVerdicts() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [], isSmall: true)
    try "wrong".write(toFile: shop.directory.file("shop") + "/shared-secret", atomically: true, encoding: .utf8)
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [78])
    #expect(result.errors.contains("21004"))
    let summary = try shop.files("2026-11-19")["summary.json"]
    #expect(summary != nil)
    let again = shop.directory.file("again")
    try await shop.nightAudit("reconcile", "--as-of", Rehearsal.asOf, "--out", again, exits: [78])
    #expect(try shop.files(again)["summary.json"] == summary)
    #expect(
      try await shop.value(
        """
        SELECT count(*) FROM night_audit.receipt_checks
        WHERE outcome NOT IN ('pending', 'rejected', 'review', 'verified') OR outcome = 'review' AND due_from IS NULL
        """) == "0")
  }

  @Test func initIsSafeTwiceAtOnceAndAgain() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withThrowingTaskGroup(of: Program.Result.self) { group in
      for _ in 0..<4 { group.addTask { try await run(["init", "--with-sales-schema"], database: database) } }
      for try await result in group { #expect(result.status == 0, "\(result.errors)") }
    }
    let again = try await run(["init"], database: database)
    #expect(again.status == 0 && again.output.contains("up to date"), "\(again)")
    // With `database.salesUrl`, init creates nothing in the shop's store, and no command reads a sales schema here.
    let elsewhere = try await run(
      ["init", "--with-sales-schema"], database: database, ["NIGHT_AUDIT_DATABASE_SALES_URL": database])
    #expect(elsewhere.status == 78 && elsewhere.errors.contains("database.salesUrl"), "\(elsewhere)")
    let place = try TemporaryDirectory()
    let environment = [
      "NIGHT_AUDIT_REPORT_DIRECTORY": place.file("reports"), "NIGHT_AUDIT_APPSTORE_CHANNEL": "verifyReceipt",
      "NIGHT_AUDIT_APPSTORE_ROOT_CERTIFICATES": place.file("none"),
      // As Kubernetes sets it for a service of that name.
      "NIGHT_AUDIT_PORT": "tcp://10.0.0.1:80",
    ]
    let doctor = try await run(["doctor"], database: database, environment)
    #expect(doctor.status == 0 && doctor.output.contains("NIGHT_AUDIT_PORT"), "\(doctor.output)")
    let quiet = try await run(["doctor", "--quiet"], database: database, environment)
    #expect(quiet.status == 0 && quiet.output == "", "\(quiet.output)")
  }

  @Test func aLockWithoutARunEndsARunWith75() async throws {
    let shop = try await Rehearsal.unchanged.value
    let holder = try await shop.session()
    #expect(try await holder.execute("SELECT pg_try_advisory_lock(1852401512, 3)").single().bool(0))
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [75])
    #expect(!FileManager.default.fileExists(atPath: shop.reports))
    await holder.close()
  }
}
