import Foundation
import TestSupport
import Testing

@Suite struct NightTests {
  /// `UPDATE_EXPECTATIONS=1 swift test --filter NightTests` rewrites the expectation. Review the difference.
  private static let isUpdating = ProcessInfo.processInfo.environment["UPDATE_EXPECTATIONS"] == "1"

  private static let expectation = Repository.root.appending(path: "Tests/EndToEndTests/Expected")
  /// The whole sample shop.
  private static let period = ["--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20"]

  @Test func aNightMatchesItsExpectedFiles() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx")
    try await shop.nightAudit("run", more: Self.period, exits: [3])
    let folder = "ad-hoc/2026-09-20_2026-11-20-1"
    var files = try shop.files(folder)
    #expect(
      files.keys.sorted() == [
        "SHA256SUMS", "actions.json", "amounts.csv", "changes.csv", "datapackage.json", "findings.csv",
        "night-audit-2026-09-20_2026-11-20.xlsx", "orders.csv", "products.csv", "receipts.csv", "refund-requests.csv",
        "refunds.csv", "report.html", "run.json", "sandbox.csv", "summary.json", "users.csv",
      ])
    for (name, content) in files where name.hasSuffix(".csv") || name == "summary.json" {
      let expected = Self.expectation.appendingPathComponent(name)
      if Self.isUpdating { try content.write(to: expected) }
      let wanted = try Data(contentsOf: expected)
      #expect(content == wanted, "\(name) differs from Expected/\(name)")
    }
    try expectTheShopsOwnExpectation(of: shop, folder)

    if TestTools.areInstalled {
      let program =
        "import frictionless, sys; sys.exit(str(r) if not (r := frictionless.validate(sys.argv[1])).valid else 0)"
      let valid = try await Program(path: "/usr/bin/env").run([
        "-C", shop.reports + "/" + folder, TestTools.python, "-c", program, "datapackage.json",
      ])
      #expect(valid.status == 0, "\(valid.errors)")
    }

    try await shop.nightAudit("run", more: Self.period, exits: [3])
    var again = try shop.files("ad-hoc/2026-09-20_2026-11-20-2")
    (files["run.json"], again["run.json"]) = (nil, nil)
    #expect(files.keys.sorted() == again.keys.sorted())
    for (name, content) in files {
      #expect(again[name] == content, "\(name) differs between two runs of the same facts")
    }
  }

  /// Transport damage does not change the expected result of an order.
  @Test func everyOrderWithADamagedPayloadHasItsExpectedDisposition() async throws {
    let shop = try await Rehearsal.sampleShop()
    // Every second payload: the kinds of damage that can be undone.
    try await shop.execute(
      #"""
      UPDATE sales.receipts r SET payload = CASE n / 2 % 8
        WHEN 0 THEN replace(payload, '+', ' ')
        WHEN 1 THEN CASE WHEN payload LIKE '%.%' THEN translate(payload, '-_', '+/') ELSE translate(payload, '+/', '-_') END
        WHEN 2 THEN replace(payload, '=', '')
        WHEN 3 THEN regexp_replace(payload, '(.{64})', E'\\1\r\n', 'g')
        WHEN 4 THEN '"' || payload || '"'
        WHEN 5 THEN '{"receipt-data":"' || payload || '","password":"x"}'
        WHEN 6 THEN '\x' || encode(convert_to(payload, 'UTF8'), 'hex')
        ELSE replace(replace(replace(payload, '+', '%2B'), '/', '%2F'), '=', '%3D') END
      FROM (SELECT receipt_id, row_number() OVER (ORDER BY receipt_id) AS n FROM sales.receipts) numbered
      WHERE numbered.receipt_id = r.receipt_id AND n % 2 = 0
      """#)
    let out = shop.directory.file("out")
    try await shop.nightAudit("run", "--out", out, more: Self.period, exits: [3])
    try expectTheShopsOwnExpectation(of: shop, out)
  }

  /// The sample shop knows the expected result of every order, without the audit.
  private func expectTheShopsOwnExpectation(of shop: Rehearsal, _ folder: String) throws {
    let orders = try shop.table("orders", folder)
    let text = try shop.file("expected.json", shop.sample)
    let document = try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
    let expected = try #require(document["orders"] as? [String: [String: Any]])
    #expect(orders.count == expected.count)
    let kinds = try shop.table("findings", folder).map { ($0["kind"] ?? "", 1) }
    #expect(Dictionary(kinds, uniquingKeysWith: +) == document["findings"] as? [String: Int])
    for order in orders {
      let id = order["order_id"] ?? ""
      let wanted = expected[id]
      #expect(order["disposition"] == wanted?["disposition"] as? String, "\(id)")
      let findings = Set((order["findings"] ?? "").split(whereSeparator: { $0 == " " || $0 == ";" }).map(String.init))
      #expect(findings == Set(wanted?["findings"] as? [String] ?? []), "\(id)")
    }
  }

  @Test func reconcileGivesTheSameFilesAsTheRunBeforeIt() async throws {
    let shop = try await Rehearsal.auditedShop(formats: "csv, xlsx")
    let again = shop.directory.file("again")
    try await shop.nightAudit("reconcile", "--as-of", Rehearsal.asOf, "--out", again, exits: [3])
    let reconciled = try shop.files(again)
    for (name, content) in try shop.files("2026-11-19") where name != "run.json" {
      #expect(reconciled[name] == content, "\(name)")
    }
    #expect(try shop.latestDay() == "2026-11-19")
  }

  /// The run on one order has a later as-of, but the night still counts as the newest one.
  @Test func aDryRunLeavesNoTraceAndAFilteredRunDoesNotSupersedeANight() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [])
    let out = shop.directory.file("out")
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--dry-run", "--out", out, exits: [3], says: "Orders read")
    #expect(!FileManager.default.fileExists(atPath: shop.reports) && !FileManager.default.fileExists(atPath: out))
    for table in ["runs", "receipt_checks", "answers", "evidence", "transactions", "findings"] {
      #expect(try await shop.value("SELECT count(*) FROM night_audit.\(table)") == "0", "\(table)")
    }
    try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, "--dry-run", says: "due")
    // No order is of that day.
    let none = try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, "--dry-run", "--date", "2000-01-01")
    #expect(none.output.hasPrefix("0 due: "), "\(none)")
    #expect(try await shop.value("SELECT is_called FROM night_audit.worker_numbers") == "false")
    #expect(try shop.requests() == 0)

    let order = try await shop.value("SELECT min(order_id) FROM sales.orders")
    try await shop.nightAudit(
      "run", "--order", order, "--as-of", Rehearsal.asOf.replacing("T03:00", with: "T03:30"), exits: [0, 3])
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let listed = try shop.table("findings", "2026-11-19")
    #expect(listed.count > 10)
    let open = try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")
    #expect(open == "\(listed.count)")
  }

  @Test func decisionsMadeDuringANightAppearInTheNextNight() async throws {
    let shop = try await Rehearsal.auditedShop()
    let id = try await shop.value("SELECT min(finding_id) FROM night_audit.findings WHERE kind = 'duplicate_claim'")
    try await shop.execute(
      """
      CREATE FUNCTION public.meanwhile() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN UPDATE night_audit.findings SET status = 'acknowledged' WHERE finding_id = '\(id)'; RETURN NEW; END $$;
      CREATE TRIGGER meanwhile BEFORE INSERT ON night_audit.findings_met
      FOR EACH ROW EXECUTE FUNCTION public.meanwhile()
      """)
    for (asOf, day, status) in [("21", "20", "open"), ("22", "21", "acknowledged")] {
      try await shop.nightAudit("run", "--as-of", "2026-11-\(asOf)T03:00:00Z", exits: [0, 3])
      func listed(_ name: String) throws -> [[String: String]] {
        try shop.table(name, "2026-11-\(day)").filter { $0["finding_id"] == id }
      }
      #expect(try listed("findings").map { $0["status"] } == [status])
      #expect(try listed("changes").map { $0["after"] } == (status == "open" ? [] : [status]))
    }
  }

  @Test func filtersLimitTheListedRowsOnly() async throws {
    let shop = try await Rehearsal.auditedShop()
    let duplicate = try await shop.value(
      "SELECT order_id FROM night_audit.findings WHERE kind = 'duplicate_claim' ORDER BY 1 LIMIT 1")
    let count = "SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL"
    let open = try await shop.value(count)
    let day = try await shop.value(
      "SELECT (created_at AT TIME ZONE 'UTC')::date FROM sales.orders WHERE order_id = '\(duplicate)'")
    let out = shop.directory.file("out")
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--date", day, "--order", duplicate, "--out", out, exits: [0])
    let orders = try shop.table("orders", out)
    #expect(orders.map { $0["order_id"] } == [duplicate] && orders.first?["payment_reason"] == "duplicate")
    #expect(try await shop.value(count) == open)
  }
}
