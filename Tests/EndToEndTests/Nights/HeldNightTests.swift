import Foundation
import TestSupport
import Testing

@Suite struct HeldNightTests {
  private func completeShop() async throws -> Rehearsal {
    let shop = try await Rehearsal.auditedShop()
    try await shop.execute("SET session_replication_role = replica; UPDATE night_audit.runs SET complete = true")
    return shop
  }

  private let next = "2026-11-21T03:00:00Z"

  @Test func aNightWithoutItsDeliveriesIsHeldUntilItIsAccepted() async throws {
    let shop = try await completeShop()
    let open = try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")
    let metrics = shop.directory.file("night_audit.prom")
    let environment = ["NIGHT_AUDIT_METRICS_TEXTFILE": metrics, "NIGHT_AUDIT_REPORT_FORMATS": "csv,xlsx"]
    func told() throws -> [Substring] {
      try String(contentsOfFile: metrics, encoding: .utf8).split(separator: "\n").filter {
        $0.hasPrefix("night_audit_findings_open{") || $0.hasPrefix("night_audit_at_stake")
      }
    }
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, environment: environment, exits: [0, 3])
    let before = try told()
    try await shop.execute(
      "SET session_replication_role = replica; UPDATE night_audit.runs SET complete = true; TRUNCATE sales.deliveries")
    let events = try await shop.value("SELECT count(*) FROM night_audit.finding_events")
    let held = try await shop.nightAudit("run", "--as-of", next, "--quiet", environment: environment, exits: [4])
    // Metrics do not include findings of a held night.
    #expect(try !before.isEmpty && told() == before)
    #expect(try String(contentsOfFile: metrics, encoding: .utf8).contains("night_audit_exit_status 4\n"))
    for part in ["HELD", "The lookback has 0 deliveries", "would newly have the finding “Paid, not delivered”"] {
      #expect(held.output.contains(part), "\(held.output)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/held") == ["2026-11-20"])
    #expect(try shop.files("held/2026-11-20")["findings.csv"] != nil)
    // Its workbook can be imported, but contains no change.
    let workbook = shop.reports + "/held/2026-11-20/night-audit-2026-11-20.xlsx"
    let returned = try await shop.nightAudit("findings", "import", workbook, "--json").json()
    #expect(returned["as_of"] as? String == next && (returned["changes"] as? [Any])?.isEmpty == true, "\(returned)")
    #expect(try shop.latestDay() == "2026-11-19")
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/2026-11-20"))
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL") == open)
    #expect(try await shop.value("SELECT count(*) FROM night_audit.finding_events") == events)
    #expect(
      try await shop.value(
        """
        SELECT concat_ws(' ', publication, exit_status, complete IS NULL, cardinality(held_because) > 1)
        FROM night_audit.runs ORDER BY started_at DESC LIMIT 1
        """) == "held 4 t t")

    try await shop.nightAudit("run", "--as-of", next, "--accept", exits: [0, 3])
    #expect(try shop.latestDay() == "2026-11-20")
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/held") == [])
  }

  /// A repeated run is held too, although the first one has queued the receipts with their new orders.
  @Test func aNightWithReceiptsOfOtherOrdersIsHeld() async throws {
    let shop = try await completeShop()
    try await shop.execute(
      """
      UPDATE sales.receipts r SET order_id = s.order_id FROM (
        SELECT receipt_id, lag(order_id) OVER (ORDER BY receipt_id) AS order_id FROM sales.receipts) s
      WHERE s.receipt_id = r.receipt_id
      """)
    let words = " receipts name another order than in the last complete night: check whether order_id"
    for arguments in [[next, "--dry-run"], [next], ["2026-11-21T04:00:00Z"]] {
      let night = try await shop.nightAudit("run", "--as-of", more: arguments, exits: [4], says: words)
      #expect(night.output.contains(#/For example receipt \S+: order \S+, now /#), "\(night)")
    }
  }

  /// Corrections of Apple's reports do not indicate a problem with the shop's tables.
  @Test func correctionsByAppleDoNotHoldANight() async throws {
    let shop = try await completeShop()
    for kind in ["unreported_by_shop", "orphan_payment"] {
      let database = try await shop.cluster.copyDatabase(shop.conninfo)
      try await shop.execute(
        """
        CREATE TEMPORARY TABLE f AS SELECT f.* FROM night_audit.findings f, generate_series(1, 2000) LIMIT 2000;
        UPDATE f SET finding_id = encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex'), kind = '\(kind)';
        INSERT INTO night_audit.findings SELECT * FROM f;
        INSERT INTO night_audit.finding_nights (finding_id, as_of, run_id, is_open, status)
        SELECT f.finding_id, r.as_of, r.run_id, true, 'open' FROM f, night_audit.runs r
        """, conninfo: database)
      let night = try await shop.nightAudit(
        "run", "--as-of", next, "--offline",
        environment: [
          "NIGHT_AUDIT_DATABASE_URL": database, "NIGHT_AUDIT_REPORT_DIRECTORY": shop.directory.file(kind),
        ])
      #expect((night.status == 4) == (kind == "orphan_payment"), "\(night)")
    }
  }

  @Test("status names the day whose only report was forgotten, but not the held run before it")
  func statusAfterForgetting() async throws {
    let shop = try await completeShop()
    try await shop.execute("TRUNCATE sales.deliveries")
    try await shop.nightAudit("run", "--as-of", next, exits: [4])
    try await shop.nightAudit("run", "--as-of", next, "--accept", exits: [0, 3])
    try await shop.execute(
      "SET session_replication_role = replica; UPDATE night_audit.runs SET complete = true WHERE complete IS NOT NULL")
    let runs = try await shop.value(
      "SELECT string_agg(run_id::text, ' ' ORDER BY started_at DESC) FROM night_audit.runs WHERE complete")
    let ids = runs.split(separator: " ").map(String.init)
    try await shop.nightAudit("runs", "forget", ids[0], exits: [0])
    let status = try await shop.nightAudit("status").output
    #expect(status.contains("Last night     2026-11-19: complete"), "\(status)")
    #expect(status.contains("Taken back     2026-11-20"), "\(status)")
    #expect(status.contains("run: night-audit run --date 2026-11-20"), "\(status)")

    try await shop.nightAudit("runs", "forget", ids[1], exits: [0])
    let bare = try await shop.nightAudit("status").output
    #expect(bare.contains("Last night     none left"), "\(bare)")
    #expect(bare.contains("Last complete  none left"), "\(bare)")
    let document = try await shop.nightAudit("status", "--json").json()
    #expect(document["taken_back_day"] as? String == "2026-11-20")
    #expect(Set((document["open_findings"] as? [String: Int] ?? [:]).keys) == ["critical", "major", "minor"])
  }

  @Test func narrowedRunsAreNotHeldAndNarrowNothing() async throws {
    let shop = try await completeShop()
    try await shop.execute("TRUNCATE sales.deliveries")
    // More rows than libpq buffers, none of them about this user. The run must read them to the end.
    try await shop.execute(
      """
      INSERT INTO night_audit.order_nights (order_id, as_of, run_id, created_at, disposition)
      SELECT 'z' || n, as_of, run_id, as_of, 'settled' FROM night_audit.runs, generate_series(1, 200000) n
      """)
    try await shop.nightAudit("run", "--as-of", next, "--user", "nobody", exits: [0, 3])
    #expect(!FileManager.default.fileExists(atPath: shop.reports + "/held"))
  }

  @Test func heldAdHocReportsAreStoredSeparatelyAndVerify() async throws {
    let shop = try await completeShop()
    try await shop.execute("TRUNCATE sales.deliveries")
    try await shop.nightAudit("run", "--as-of", next, exits: [4])
    let night = try shop.files("held/2026-11-20")
    for options in [["--out", shop.directory.file("out")], ["--since", "2026-11-01", "--until", "2026-11-20"]] {
      try await shop.nightAudit(
        "run", "--as-of", next, more: options, exits: [4], says: "The same command with --accept")
    }
    #expect(!FileManager.default.fileExists(atPath: shop.directory.file("out")))
    let held = ["2026-11-20", "20261121T030000Z-1", "20261121T030000Z-2"]
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/held").sorted() == held)
    #expect(try shop.files("held/2026-11-20") == night)

    func verified(_ run: String, _ folder: String) async throws -> [Int32] {
      let ofRun = try await shop.nightAudit("verify", "--run", run)
      return [ofRun.status, try await shop.nightAudit("verify", "\(shop.reports)/held/\(folder)").status]
    }
    for folder in held {
      let run = try await shop.value(
        "SELECT run_id FROM night_audit.runs WHERE publication = 'held' AND directory LIKE '%/held/\(folder)'")
      #expect(try await verified(run, folder) == [0, 0], "\(folder)")
      let sums = "\(shop.reports)/held/\(folder)/SHA256SUMS"
      try (String(contentsOfFile: sums, encoding: .utf8) + "\n").write(
        toFile: sums, atomically: true, encoding: .utf8)
      #expect(try await verified(run, folder) == [70, 70], "\(folder)")
      try await shop.nightAudit("runs", "forget", run, exits: [0])
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: shop.reports + "/held") == [])
  }

  /// Errors in the mapping of the shop's tables. The message names the mapping.
  @Test func aFirstNightWithAWrongMappingIsHeld() async throws {
    let shop = try await Rehearsal.sampleShop()
    let dry = ["--as-of", Rehearsal.asOf, "--dry-run"]
    try await shop.nightAudit("run", more: dry, says: "With the stored answers, the night would not be held.")
    try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, exits: [0, 3])
    for (mapping, cause) in [
      ("UPDATE sales.deliveries SET user_id = 'U' || user_id", "user_id of deliveries and of orders"),
      ("UPDATE sales.deliveries SET quantity = quantity * 80", "quantity counts the same unit"),
      ("UPDATE sales.orders SET status = 'forgotten'", "night-audit doctor names columns"),
      ("UPDATE sales.orders SET created_at = created_at - interval '5 days'", "created_at is the time of the order"),
      ("UPDATE sales.orders SET amount = amount * 1000", "looks like thousandths"),
    ] {
      let database = try await shop.cluster.copyDatabase(shop.conninfo)
      let environment = ["NIGHT_AUDIT_DATABASE_URL": database]
      try await shop.execute("SET session_replication_role = replica; " + mapping, conninfo: database)
      // The copies have one report folder.
      try? FileManager.default.removeItem(atPath: shop.reports + "/held")
      let held = try await shop.nightAudit(
        "run", "--as-of", Rehearsal.asOf, environment: environment, exits: [4], says: cause)
      #expect(held.output.contains(#/[Ee]xamples?:? order /#), "\(held.output)")
      #expect(try await shop.value("SELECT count(*) FROM night_audit.findings", conninfo: database) == "0")
    }
    try await shop.execute("SET session_replication_role = replica; UPDATE sales.orders SET status = 'forgotten'")
    let rehearsed = try await shop.nightAudit("run", more: dry, exits: [4], says: "WOULD BE HELD")
    #expect(rehearsed.output.contains("night-audit doctor names columns"), "\(rehearsed.output)")
  }
}
