import Foundation
import TestSupport
import Testing

@Suite struct PublishingTests {
  @Test func foreignFoldersAreNotTouched() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [], isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let notes = shop.directory.file("notes")
    try FileManager.default.createDirectory(atPath: notes, withIntermediateDirectories: false)
    try "precious".write(toFile: notes + "/plan.txt", atomically: true, encoding: .utf8)
    let before = try shop.requests()
    for out in [notes, shop.reports, shop.directory.url.path] {
      for command in ["run", "reconcile"] {
        let result = try await shop.nightAudit(command, "--as-of", Rehearsal.asOf, "--out", out, exits: [73])
        #expect(result.errors.contains("nothing there was touched"), "\(result.errors)")
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: notes) == ["plan.txt"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports).sorted() == ["2026-11-19", "latest"])
    // No request is sent if the report cannot be placed.
    #expect(try shop.requests() == before)

    let folder = shop.reports + "/2026-11-19"
    try "signed off".write(toFile: folder + "/notes.txt", atomically: true, encoding: .utf8)
    try "edited".write(toFile: folder + "/orders.csv", atomically: true, encoding: .utf8)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, says: "orders.csv, now orders.edited.csv")
    let files = try shop.files(folder)
    #expect(files["notes.txt"] == Data("signed off".utf8))
    #expect(files["orders.edited.csv"] == Data("edited".utf8))
    #expect(files["orders.csv"]?.starts(with: Data("order_id,".utf8)) == true)
    try await shop.nightAudit("run", "--as-of", "2026-11-20T02:59:59Z", exits: [73])
    #expect(try shop.files(folder) == files)
  }

  /// A night of a future day would remain the newest night until that day.
  @Test func aFutureDayIsNoNight() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit(
      "run", "--date", "2027-11-19", "--as-of", Rehearsal.asOf, "--offline", exits: [0, 3])
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports) == ["ad-hoc"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs WHERE is_nightly") == "0")
  }

  @Test func aLatestThatIsADirectoryIsRefusedBeforeTheNightBegins() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [], isSmall: true)
    try FileManager.default.createDirectory(atPath: shop.reports + "/latest", withIntermediateDirectories: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [73])
    #expect(try shop.requests() == 0)
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

  /// The states after a kill between the rename and the final update, and before the rename.
  @Test func aKilledRunIsPublishedIfItsFolderHasAppeared() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    #expect(try await state(shop) == "published f 3")
    for (change, found, says) in [
      ("finished_at = NULL", "published f 3, published", nil),
      ("content = 'none'", "not_published 3, published", "died before its report"),
    ] as [(String, String, String?)] {
      try await shop.execute(
        """
        SET session_replication_role = replica;
        UPDATE night_audit.runs SET publication = 'publishing', complete = NULL, \(change) WHERE is_nightly
        """)
      try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--user", "x", says: says)
      #expect(try await state(shop).hasPrefix(found), "\(change)")
    }
  }

  @Test func theLockHolderIsNamed() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: ["--latency", "50ms"])
    let running = try shop.start(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_APPSTORE_CONCURRENCY": "1"])
    while running.process.isRunning, try await shop.value("SELECT count(*) FROM night_audit.answers") == "0" {
      await pause()
    }
    let second = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--json", exits: [75])
    let error = try #require(try second.json()["error"] as? [String: Any])
    let message = try #require(error["message"] as? String)
    let (host, process) = (ProcessInfo.processInfo.hostName, running.process.processIdentifier)
    #expect(message.contains("host \(host), process \(process), since 20") && error["status"] as? Int == 75, "\(error)")
    #expect(second.errors.contains(message))

    _ = try await shop.value(
      """
      SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objid = 3 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """)
    // The run asks the rest of its questions without the latency, which gave the second run its time.
    try await shop.control("faults", #"{"latency":"0"}"#)
    let first = await running.finish()
    #expect(first.status == 69, "\(first.status) \(first.errors)")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/latest"))
  }

  @Test func theReportPathDoesNotDependOnTheWorkingDirectory() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--offline", environment: ["NIGHT_AUDIT_REPORT_DIRECTORY": "nightly/reports"],
      exits: [3])
    let directory = try await shop.value("SELECT directory FROM night_audit.runs")
    #expect(directory.hasPrefix("/") && directory.hasSuffix("/nightly/reports/2026-11-19"), "\(directory)")
  }

  /// `FindingsThresholdTests` have all forms of a threshold.
  @Test func aNightExitsWith2AboveItsThreshold() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.execute(
      """
      TRUNCATE sales.receipts;
      UPDATE sales.orders SET transaction_id = NULL, status = 'failed', created_at = created_at - interval '3 days'
      """)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", exits: [0])
    let critical = try await shop.value(
      "SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL AND severity = 'critical'")
    #expect(Int(critical) ?? 0 > 0)
    for (above, status) in [(critical, Int32(0)), ("0.01USD", 2)] {
      let result = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--accept", "--fail-above", above)
      #expect(result.status == status, "\(above): \(result.output)")
      #expect(
        try await shop.value("SELECT exit_status FROM night_audit.runs ORDER BY started_at DESC LIMIT 1")
          == String(status))
      let run = try shop.files("2026-11-19")["run.json"] ?? Data()
      #expect(String(decoding: run, as: UTF8.self).contains("\"exit_status\" : \(status)"), "\(above)")
    }
    try await shop.nightAudit("run", "--fail-above", "many", exits: [64])
  }
}
