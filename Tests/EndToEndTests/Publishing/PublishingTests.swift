import Foundation
import Testing

@Suite struct PublishingTests {
  @Test func foreignFoldersAreNotTouched() async throws {
    let shop = try await Rehearsal.sampleShop()
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    let notes = shop.directory.file("notes")
    try FileManager.default.createDirectory(atPath: notes, withIntermediateDirectories: false)
    try "precious".write(toFile: notes + "/plan.txt", atomically: true, encoding: .utf8)
    let before = try shop.requests().count
    for out in [notes, shop.reports, shop.directory.url.path] {
      for command in ["run", "reconcile"] {
        let result = try await shop.nightAudit(command, "--as-of", Rehearsal.asOf, "--out", out)
        #expect(result.status == 73, "\(command) \(out): \(result.errors)")
        #expect(result.errors.contains("nothing there was touched"), "\(result.errors)")
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: notes) == ["plan.txt"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports).sorted() == ["2026-11-19", "latest"])
    // No request is sent if the report cannot be placed.
    #expect(try shop.requests().count == before)

    let folder = shop.reports + "/2026-11-19"
    try "signed off".write(toFile: folder + "/notes.txt", atomically: true, encoding: .utf8)
    try "edited".write(toFile: folder + "/orders.csv", atomically: true, encoding: .utf8)
    let again = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(again.output.contains("orders.csv, now orders.edited.csv"), "\(again.output)")
    let files = try shop.files(folder)
    #expect(files["notes.txt"] == Data("signed off".utf8))
    #expect(files["orders.edited.csv"] == Data("edited".utf8))
    #expect(files["orders.csv"]?.starts(with: Data("order_id,".utf8)) == true)
    let earlier = try await shop.nightAudit("run", "--as-of", "2026-11-20T02:59:59Z")
    #expect(earlier.status == 73, "\(earlier.errors)")
    #expect(try shop.files(folder) == files)
  }

  /// A night of a future day would remain the newest night until that day.
  @Test func aFutureDayIsNoNight() async throws {
    let shop = try await Rehearsal.sampleShop()
    let result = try await shop.nightAudit(
      "run", "--date", "2027-11-19", "--as-of", Rehearsal.asOf, "--offline")
    #expect([0, 3].contains(result.status), "\(result.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports) == ["ad-hoc"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs WHERE is_nightly") == "0")
  }

  @Test func aLatestThatIsADirectoryIsRefusedBeforeTheNightBegins() async throws {
    let shop = try await Rehearsal.sampleShop()
    try FileManager.default.createDirectory(atPath: shop.reports + "/latest", withIntermediateDirectories: true)
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(result.status == 73, "\(result.errors)")
    #expect(try shop.requests().isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports) == ["latest"])
  }
}

@Suite struct PublicationTests {
  private func state(_ shop: Rehearsal) async throws -> String {
    try await shop.value(
      """
      SELECT string_agg(concat_ws(' ', publication, complete, exit_status), ', ' ORDER BY started_at)
      FROM night_audit.runs
      """)
  }

  @Test func aFolderThatHasAppearedMakesItsRunPublished() async throws {
    let shop = try await Rehearsal.sampleShop()
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    #expect(try await state(shop) == "published f 3")
    // The state after a kill between the rename and the final update.
    try await shop.execute(
      """
      SET session_replication_role = replica;
      UPDATE night_audit.runs SET publication = 'publishing', complete = NULL, finished_at = NULL
      """)
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--user", "x").status != 73)
    #expect(try await state(shop).hasPrefix("published f 3, published"))
  }

  @Test func aFolderThatNeverAppearedMakesItsRunNotPublished() async throws {
    let shop = try await Rehearsal.sampleShop()
    #expect(try await shop.nightAudit("run", "--as-of", Rehearsal.asOf).status == 3)
    try await shop.execute(
      """
      SET session_replication_role = replica;
      UPDATE night_audit.runs SET publication = 'publishing', complete = NULL, content = 'none'
      """)
    let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--user", "x")
    #expect(result.errors.contains("died before its report appeared"), "\(result.errors)")
    #expect(try await state(shop).hasPrefix("not_published 3, published"))
  }

  @Test func theLockHolderIsNamed() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: ["--latency", "50ms"])
    let running = try Program.nightAudit.start(
      ["run", "--as-of", Rehearsal.asOf, "--config", shop.directory.file("night-audit.yaml")],
      environment: ["NIGHT_AUDIT_APPSTORE_CONCURRENCY": "1"])
    while running.process.isRunning, try await shop.value("SELECT count(*) FROM night_audit.answers") == "0" {
      await pause()
    }
    let second = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(second.status == 75, "\(second.errors)")
    let host = ProcessInfo.processInfo.hostName
    #expect(
      second.errors.contains("host \(host), process \(running.process.processIdentifier), since 20"), "\(second.errors)"
    )

    _ = try await shop.value(
      """
      SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objid = 3 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """)
    let first = await running.finish()
    #expect(first.status == 69, "\(first.status) \(first.errors)")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/latest"))
  }

  /// Independent of the working directory.
  @Test func theReportPathDoesNotDependOnTheWorkingDirectory() async throws {
    let shop = try await Rehearsal.sampleShop()
    let night = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_REPORT_DIRECTORY": "nightly/reports"])
    #expect(night.status == 3, "\(night)")
    let directory = try await shop.value("SELECT directory FROM night_audit.runs")
    #expect(directory.hasPrefix("/") && directory.hasSuffix("/nightly/reports/2026-11-19"), "\(directory)")
  }

  @Test func aNightExitsWith2AboveItsThreshold() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute(
      """
      TRUNCATE sales.receipts;
      UPDATE sales.orders SET transaction_id = NULL, status = 'failed', created_at = created_at - interval '3 days'
      """)
    let usual = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept")
    #expect(usual.status == 0, "\(usual.output)")
    let critical = try await shop.value(
      "SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL AND severity = 'critical'")
    #expect(Int(critical) ?? 0 > 0)
    for (above, status) in [(critical, Int32(0)), ("0", 2), ("0.01USD", 2), ("99999999 USD", 0), ("99999999 CHF", 0)] {
      let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", "--fail-above", above)
      #expect(result.status == status, "\(above): \(result.output)")
      #expect(
        try await shop.value("SELECT exit_status FROM night_audit.runs ORDER BY started_at DESC LIMIT 1")
          == String(status))
      let run = try shop.files(shop.reports + "/2026-11-19")["run.json"] ?? Data()
      #expect(String(decoding: run, as: UTF8.self).contains("\"exit_status\" : \(status)"), "\(above)")
    }
    #expect(try await shop.nightAudit("run", "--fail-above", "many").status == 64)
  }
}
