import Foundation
import TestSupport
import Testing

@Suite struct NightTests {
  /// `UPDATE_EXPECTATIONS=1 swift test --filter NightTests` rewrites the expectation. Review the difference.
  private static let isUpdating = ProcessInfo.processInfo.environment["UPDATE_EXPECTATIONS"] == "1"

  private static var expectation: URL {
    Repository.root.appending(path: "Tests/EndToEndTests/Expected")
  }

  @Test func aNightMatchesItsExpectedFiles() async throws {
    let shop = try await Rehearsal.sampleShop()
    let first = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20")
    #expect(first.status == 3, "\(first.errors)")
    let folder = shop.reports + "/ad-hoc/2026-09-20_2026-11-20-1"
    let files = try shop.files(folder)
    #expect(
      files.keys.sorted() == [
        "SHA256SUMS", "actions.json", "amounts.csv", "changes.csv", "datapackage.json", "findings.csv",
        "night-audit-2026-09-20_2026-11-20.xlsx", "orders.csv",
        "products.csv", "receipts.csv",
        "refund-requests.csv", "refunds.csv", "report.html", "run.json", "sandbox.csv", "summary.json", "users.csv",
      ])
    for (name, content) in files where name.hasSuffix(".csv") || name == "summary.json" {
      let expected = Self.expectation.appendingPathComponent(name)
      if Self.isUpdating {
        try FileManager.default.createDirectory(at: Self.expectation, withIntermediateDirectories: true)
        try content.write(to: expected)
      }
      let wanted = try Data(contentsOf: expected)
      #expect(content == wanted, "\(name) differs from Expected/\(name)")
    }

    if TestTools.areInstalled {
      let program =
        "import frictionless, sys; sys.exit(str(r) if not (r := frictionless.validate(sys.argv[1])).valid else 0)"
      let valid = try await Program(path: "/usr/bin/env").run([
        "-C", folder, TestTools.python, "-c", program, "datapackage.json",
      ])
      #expect(valid.status == 0, "\(valid.errors)")
    }

    let again = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20")
    #expect(again.status == 3, "\(again.errors)")
    var second = try shop.files(shop.reports + "/ad-hoc/2026-09-20_2026-11-20-2")
    var once = files
    for name in ["run.json"] {
      once[name] = nil
      second[name] = nil
    }
    #expect(once.keys.sorted() == second.keys.sorted())
    for (name, content) in once {
      #expect(second[name] == content, "\(name) differs between two runs of the same facts")
    }
  }

  /// The sample shop knows the expected result of every order, without the audit. Transport damage must not change it.
  @Test(arguments: [[], ["--damaged-payloads", "0.5"]])
  func everySampleOrderHasItsExpectedDisposition(_ options: [String]) async throws {
    let shop = try await Rehearsal.sampleShop(shop: options)
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20", "--out",
      shop.directory.file("out"))
    #expect(result.status == 3, "\(result.errors)")
    let files = try shop.files(shop.directory.file("out"))
    let orders = rows(files["orders.csv"] ?? Data())
    let text = try Data(contentsOf: URL(fileURLWithPath: shop.directory.file("shop") + "/expected.json"))
    let document = try #require(try JSONSerialization.jsonObject(with: text) as? [String: Any])
    let expected = try #require(document["orders"] as? [String: [String: Any]])
    #expect(orders.count == expected.count)
    let kinds = rows(files["findings.csv"] ?? Data()).map { ($0["kind"] ?? "", 1) }
    #expect(Dictionary(kinds, uniquingKeysWith: +) == document["findings"] as? [String: Int])
    for order in orders {
      let id = order["order_id"] ?? ""
      let wanted = expected[id]
      #expect(order["disposition"] == wanted?["disposition"] as? String, "\(id)")
      let findings = Set((order["findings"] ?? "").split(whereSeparator: { $0 == " " || $0 == ";" }).map(String.init))
      #expect(findings == Set(wanted?["findings"] as? [String] ?? []), "\(id)")
    }
  }

  @Test func anOutageCreatesNoFindings() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: ["--outage"])
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--since", "2026-09-20", "--until", "2026-11-20", "--out",
      shop.directory.file("out"),
      "--max-duration", "3s")
    #expect(result.status == 3, "\(result.errors)")
    let orders = rows(try shop.files(shop.directory.file("out"))["orders.csv"] ?? Data())
    #expect(orders.count == 500)
    let unpaid = orders.filter { $0["payment"] == "unpaid" }
    for order in unpaid {
      #expect(["no_evidence", "never_paid", "malformed"].contains(order["payment_reason"]), "\(order)")
    }
    let summary = try #require(
      try JSONSerialization.jsonObject(with: try shop.files(shop.directory.file("out"))["summary.json"] ?? Data())
        as? [String: Any])
    #expect(summary["complete"] as? Bool == false)
  }

  @Test func aKilledRunAsksNothingTwice() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: ["--latency", "20ms"])
    let undisturbed = try await Rehearsal.sampleShop()
    let arguments = ["--since", "2026-09-20", "--until", "2026-11-20", "--as-of", Rehearsal.asOf]
    let running = try Program.nightAudit.start(
      ["run", "--config", shop.directory.file("night-audit.yaml"), "--out", shop.directory.file("out")] + arguments,
      environment: ["NIGHT_AUDIT_APPSTORE_CONCURRENCY": "4"])
    while running.process.isRunning,
      (Int(
        try await shop.value("SELECT count(DISTINCT subject_id) FROM night_audit.answers WHERE outcome <> 'unanswered'")
      ) ?? 0) < 40
    {
      await pause()
    }
    running.kill()
    _ = await running.finish()
    #expect(!FileManager.default.fileExists(atPath: shop.directory.file("out")))
    let answered = Set(
      try await shop.value("SELECT string_agg(subject_id, ',') FROM night_audit.answers WHERE outcome <> 'unanswered'")
        .split(separator: ","))
    #expect(answered.count >= 40)
    let second = try await Program.nightAudit.run(
      ["run", "--config", shop.directory.file("night-audit.yaml"), "--out", shop.directory.file("out")] + arguments)
    #expect(second.status == 3, "\(second.errors)")
    let askedTwice = try await shop.value(
      "SELECT count(*) FROM (SELECT 1 FROM night_audit.answers WHERE outcome <> 'unanswered' GROUP BY subject_id HAVING count(*) > 1) t"
    )
    #expect(askedTwice == "0")
    let calm = try await Program.nightAudit.run(
      ["run", "--config", undisturbed.directory.file("night-audit.yaml"), "--out", undisturbed.directory.file("out")]
        + arguments)
    #expect(calm.status == 3, "\(calm.errors)")
    let (left, right) = (
      try shop.files(shop.directory.file("out")), try undisturbed.files(undisturbed.directory.file("out"))
    )
    for name in [
      "orders.csv", "users.csv", "amounts.csv", "findings.csv", "refunds.csv", "receipts.csv", "summary.json",
    ] {
      #expect(left[name] == right[name], "\(name)")
    }
  }

  @Test func reconcileGivesTheSameFilesAsTheRunBeforeIt() async throws {
    let shop = try await Rehearsal.auditedShop()
    let folder = shop.reports + "/2026-11-19"
    let result = try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--out", shop.directory.file("again"))
    #expect(result.status == 3, "\(result.errors)")
    let (ran, reconciled) = (try shop.files(folder), try shop.files(shop.directory.file("again")))
    for (name, content) in ran where name != "run.json" { #expect(reconciled[name] == content, "\(name)") }
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: shop.reports + "/latest") == "2026-11-19")
  }

  @Test func aDryRunLeavesNoTrace() async throws {
    let shop = try await Rehearsal.sampleShop()
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--dry-run", "--out", shop.directory.file("out"))
    #expect(result.status == 3, "\(result.errors)")
    #expect(result.output.contains("Orders read"))
    #expect(!FileManager.default.fileExists(atPath: shop.reports))
    #expect(!FileManager.default.fileExists(atPath: shop.directory.file("out")))
    for table in ["runs", "receipt_checks", "answers", "evidence", "transactions", "findings"] {
      #expect(try await shop.value("SELECT count(*) FROM night_audit.\(table)") == "0", "\(table)")
    }
    let counted = try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, "--dry-run")
    #expect(counted.output.contains("due"), "\(counted)")
    #expect(try await shop.value("SELECT is_called FROM night_audit.worker_numbers") == "false")
    #expect((try? shop.requests().count) ?? 0 == 0)
  }

  /// The run on one order has a later as-of, but the night still counts as the newest one.
  @Test func aFilteredRunDoesNotSupersedeANight() async throws {
    let shop = try await Rehearsal.sampleShop()
    let order = try await shop.value("SELECT min(order_id) FROM sales.orders")
    let narrowed = try await shop.nightAudit(
      "run", "--order", order, "--as-of", Rehearsal.asOf.replacing("T03:00", with: "T03:30"))
    #expect([0, 3].contains(narrowed.status), "\(narrowed.errors)")
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3, "\(night.errors)")
    let listed = rows(try Data(contentsOf: URL(fileURLWithPath: shop.reports + "/2026-11-19/findings.csv")))
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
      let night = try await shop.nightAudit("run", "--as-of", "2026-11-\(asOf)T03:00:00Z")
      #expect([0, 3].contains(night.status), "\(night.errors)")
      func listed(_ file: String) throws -> [[String: String]] {
        rows(try Data(contentsOf: URL(fileURLWithPath: shop.reports + "/2026-11-\(day)/\(file)"))).filter {
          $0["finding_id"] == id
        }
      }
      #expect(try listed("findings.csv").map { $0["status"] } == [status])
      #expect(try listed("changes.csv").map { $0["after"] } == (status == "open" ? [] : [status]))
    }
  }

  @Test func filtersLimitTheListedRowsOnly() async throws {
    let shop = try await Rehearsal.auditedShop()
    let duplicate = try await shop.value(
      "SELECT order_id FROM night_audit.findings WHERE kind = 'duplicate_claim' ORDER BY 1 LIMIT 1")
    let open = try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")
    let day = try await shop.value(
      "SELECT (created_at AT TIME ZONE 'UTC')::date FROM sales.orders WHERE order_id = '\(duplicate)'")
    let result = try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, "--date", day, "--order", duplicate, "--out", shop.directory.file("out"))
    #expect(result.status == 0, "\(result.errors)")
    let orders = rows(try shop.files(shop.directory.file("out"))["orders.csv"] ?? Data())
    #expect(orders.map { $0["order_id"] } == [duplicate])
    #expect(orders.first?["payment_reason"] == "duplicate")
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL") == open)
  }
}
