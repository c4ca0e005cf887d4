import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct ImportTests {
  private func python(_ program: String, _ arguments: String...) async throws {
    let result = try await Program.python.run(["-c", program] + arguments)
    try #require(result.status == 0, "\(result)")
  }

  private func importing(_ shop: Rehearsal, _ arguments: String...) async throws -> (Int32, [String: Any]) {
    let result = try await shop.nightAudit("findings", "import", "--by", "finance", "--json", more: arguments)
    return (result.status, try result.json())
  }

  private func reasons(_ document: [String: Any]) -> [String] {
    (document["refusals"] as? [[String: Any]] ?? []).compactMap { $0["reason"] as? String }
  }

  @Test func decisionsInTheWorkbookAreImported() async throws {
    let shop = try await Rehearsal.auditedShop(formats: "csv, xlsx", isSmall: true)
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("returned.xlsx")

    let (untouched, nothing) = try await importing(shop, source)
    #expect(untouched == 0)
    #expect((nothing["changes"] as? [Any])?.isEmpty == true)
    let count = try #require(nothing["rows"] as? Int)
    #expect(nothing["as_of"] as? String == Rehearsal.asOf)
    #expect(count == Int(try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")))

    try await Program.runScript(
      "edit_findings", source, target, "1|Status|Acknowledged", "1|Owner| Zoë ", "1|Remark|=cmd() 😀", "1|Due|int:46357",
      "2|Status|done", "2|Owner|bob", "3|Owner|int:42", "3|Remark|=1+1", "4|Finding ID|0000", "4|Remark|x",
      "5|Finding ID|none:", "5|Owner|x", "6|Kind|nonsense")
    let facts =
      "SELECT encode(sha256(convert_to(string_agg(f::text, '|' ORDER BY finding_id), 'UTF8')), 'hex') FROM (SELECT finding_id, kind, severity, "
      + "subject, order_id, reason, amount, at_stake, first_seen, closed_at FROM night_audit.findings) f"
    let before = try await shop.value(facts)

    let (triedStatus, tried) = try await importing(shop, target, "--dry-run")
    #expect(triedStatus == 1)
    #expect((tried["changes"] as? [Any])?.count == 4)
    #expect(try await shop.value("SELECT count(*) FROM night_audit.finding_events WHERE run_id IS NULL") == "0")

    let (status, document) = try await importing(shop, target)
    #expect(status == 1)
    #expect((document["changes"] as? [Any])?.count == 4, "\(document)")
    let said = reasons(document)
    // Row 2 is one decision with an unknown status, so its owner is not imported either.
    #expect(said.count == 5, "\(said)")
    for part in [
      "status is not one of", "owner is a number", "remark is a formula", "no finding has the ID 0000", "no finding ID",
    ] {
      #expect(said.contains { $0.contains(part) }, "\(part) in \(said)")
    }
    let people =
      "SELECT string_agg(concat_ws(',', status, owner, remark, due), ';' ORDER BY owner) FROM night_audit.findings "
      + "WHERE owner IS NOT NULL"
    #expect(try await shop.value(people) == "acknowledged,Zoë,=cmd() 😀,2026-12-01")
    #expect(try await shop.value(facts) == before)
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.finding_events WHERE run_id IS NULL AND actor = 'finance'")
        == "4")

    let (_, again) = try await importing(shop, target)
    #expect((again["changes"] as? [Any])?.isEmpty == true)
  }

  @Test func anImportKeepsLaterChanges() async throws {
    let shop = try await Rehearsal.auditedShop(formats: "csv, xlsx", isSmall: true)
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("returned.xlsx")
    let ids = try await shop.value(
      "SELECT string_agg(finding_id, ',' ORDER BY finding_id) FROM night_audit.findings WHERE closed_at IS NULL"
    ).split(separator: ",").map(String.init)
    _ = try await shop.nightAudit("findings", "assign", "--all", "--yes", "--to", "ops", "--by", "ops")
    try await Program.runScript("edit_findings", source, target, "1|Owner|finance", "2|Remark|seen")
    let (status, document) = try await importing(shop, target)
    #expect(status == 1)
    #expect(reasons(document).count == 1 && reasons(document)[0].contains("changed elsewhere"), "\(document)")
    #expect((document["changes"] as? [Any])?.count == 1)
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.findings WHERE owner = 'ops'") == String(ids.count))

    // The cells of a workbook of an unknown run that show an earlier state, and empty ones, take back no decision.
    _ = try await shop.nightAudit("findings", "acknowledge", "--all", "--yes", "--by", "ops")
    try await python(
      "import sys, openpyxl; b = openpyxl.load_workbook(sys.argv[1]); "
        + "b.properties.created = __import__('datetime').datetime(2001, 1, 1); b.save(sys.argv[2])", source, target)
    let (strangers, other) = try await importing(shop, target)
    #expect(strangers == 0 && other["as_of"] == nil)
    #expect((other["changes"] as? [Any])?.isEmpty == true, "\(other)")
  }

  /// The second import sees the changes of the first one, although both began at the same time.
  @Test func twoAtOnceDoNotOverwriteEachOther() async throws {
    let shop = try await Rehearsal.auditedShop(formats: "csv, xlsx", isSmall: true)
    let target = shop.directory.file("returned.xlsx")
    try await Program.runScript(
      "edit_findings", shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx", target, "1|Owner|bob")
    // Holds the lock of a night that is being recorded, so that both imports wait.
    let first = try await shop.session()
    try await first.executeScript("BEGIN; SELECT pg_advisory_xact_lock(1852401512, 5)")
    let second = try shop.start("findings", "import", target, "--by", "finance", "--json")
    let waits = """
      SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 5 AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
      """
    while second.process.isRunning, try await !first.execute(waits).single().bool(0) { await pause() }
    try await first.executeScript(
      """
      UPDATE night_audit.findings SET owner = 'alice';
      INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor, detail)
      SELECT finding_id, now(), 'owner', 'alice', 'alice' FROM night_audit.findings;
      COMMIT
      """)
    let result = await second.finish()
    #expect(result.status == 1 && result.output.contains("changed elsewhere"), "\(result)")
    #expect(try await shop.value("SELECT string_agg(DISTINCT owner, ',') FROM night_audit.findings") == "alice")
    await first.close()
  }

  /// Fills in lines such as `Prepared by|Dana`, as Excel does.
  private func sign(
    _ source: String, as target: String, _ lines: [String], isBalanced: Bool = true
  ) async throws {
    try await Program.runScript(
      "sign_workbook", source, target, isBalanced ? "yes" : "no", lines.joined(separator: "\u{1F}"))
  }

  @Test func signOffsOfTheWorkbookBecomeRunEvents() async throws {
    let shop = try await Rehearsal.sampleShop(formats: "csv, xlsx", isSmall: true)
    _ = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf, "--user", "nobody")
    _ = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf)
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("signed.xlsx")
    // openpyxl writes no results of formulas, so no cell states that the controls agree.
    try await python(
      """
      import sys, openpyxl
      book = openpyxl.load_workbook(sys.argv[1])
      for row in book["Summary"].iter_rows(max_col=2):
          if row[0].value == "Prepared by":
              row[1].value = "Dana"
      book.save(sys.argv[2])
      """, source, target)
    let (_, blank) = try await importing(shop, target, "--accept-incomplete")
    #expect(reasons(blank).contains { $0.contains("no results of its control totals") }, "\(blank)")
    try await sign(source, as: target, ["Prepared by|Dana", "Date|46346", "Remark|looks right"])
    let (status, document) = try await importing(shop, target, "--accept-incomplete")
    #expect(status == 0)
    #expect(
      document["sign_off"] as? [String: String] == [
        "Prepared by": "Dana", "Date": "2026-11-20", "Remark": "looks right",
      ])
    let events = "SELECT string_agg(event || '=' || detail, ',' ORDER BY event_id) FROM night_audit.bi_run_events"
    #expect(try await shop.value(events) == "prepared_by=Dana,signed_on=2026-11-20,remark=looks right")
    let nightly =
      "SELECT count(*) FROM night_audit.bi_run_events JOIN night_audit.bi_runs USING (run_id) WHERE is_nightly"
    #expect(try await shop.value(nightly) == "3")
    let runs = try await shop.nightAudit("runs")
    let signed = /is signed: prepared by Dana, dated 2026-11-20 \(recorded 20\d\d-\S+Z by finance\)/
    #expect(runs.output.contains(signed), "\(runs.output)")
    let (_, again) = try await importing(shop, target, "--accept-incomplete")
    #expect((again["sign_off"] as? [String: String])?.isEmpty == true)
    #expect(try await shop.value("SELECT count(*) FROM night_audit.run_events") == "3")
    try await python(
      """
      import sys, openpyxl
      book = openpyxl.load_workbook(sys.argv[1])
      for row in book["Summary"].iter_rows(max_col=2):
          entry = {"Prepared by": "=A1", "Date": True, "Remark": "x" * 4001, "Reviewed by": "Eva"}
          if row[0].value in entry:
              row[1].value = entry[row[0].value]
      book.save(sys.argv[2])
      """, source, target)
    let (odd, said) = try await importing(shop, target, "--accept-incomplete")
    #expect(odd == 1 && (said["sign_off"] as? [String: String])?.isEmpty == true, "\(said)")
    #expect(
      reasons(said).map { $0.prefix { $0 != ":" } } == ["Prepared by", "Date", "Remark"], "\(reasons(said))")
    try await python(
      """
      import datetime, sys, openpyxl
      book = openpyxl.load_workbook(sys.argv[1])
      book.properties.created = datetime.datetime(2020, 1, 1)
      book.save(sys.argv[1])
      """, target)
    let (_, strange) = try await importing(shop, target)
    #expect(reasons(strange).contains { $0.hasPrefix("Reviewed by: no run of this database wrote") }, "\(strange)")
  }

  @Test func aSignOffNeedsTwoPeopleACompleteReportAndABalancedWorkbook() async throws {
    let shop = try await Rehearsal.auditedShop(formats: "csv, xlsx", isSmall: true)
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("signed.xlsx")
    func sign(_ lines: String..., isBalanced: Bool = true) async throws {
      try await self.sign(source, as: target, lines, isBalanced: isBalanced)
    }
    func refused(_ word: String, _ arguments: String...) async throws {
      try await shop.nightAudit(
        "findings", "import", "--by", "finance", target, more: arguments, exits: [1], says: word)
      #expect(try await shop.value("SELECT count(*) FROM night_audit.run_events WHERE event = 'reviewed_by'") == "0")
    }
    try await sign("Prepared by|Dana", "Reviewed by|Eva")
    try await refused("the report is incomplete (")
    try await sign("Prepared by|Dana", "Reviewed by| DANA ")
    try await refused("cannot both prepare and review", "--accept-incomplete")
    try await sign("Prepared by|Dana", "Reviewed by|Eva", isBalanced: false)
    try await refused("NOT BALANCED", "--accept-incomplete")

    func take() async throws -> String {
      let result = try await shop.nightAudit(
        "findings", "import", "--by", "finance", "--accept-incomplete", target, exits: [0])
      let change = try #require(result.output.firstMatch(of: /night-audit findings undo ([0-9a-f]{8})/), "\(result)")
      return String(change.1)
    }
    try await sign("Prepared by|Dana")
    _ = try await take()
    try await sign("Reviewed by|dana")
    try await refused("cannot both prepare and review", "--accept-incomplete")
    try await sign("Prepared by|Dana", "Reviewed by|Eva")
    let second = try await take()
    func signatures() async throws -> [String] {
      try await shop.nightAudit("runs").output.split(separator: "\n").filter { $0.contains("is signed") }
        .compactMap { $0.firstMatch(of: /signed: (.*) \(recorded 20\d\d-\S+Z by finance\)/).map { String($0.1) } }
    }
    #expect(try await signatures() == ["prepared by Dana", "prepared by Dana, reviewed by Eva"])
    // Undo includes the sign-off; the history keeps both.
    let undone = try await shop.nightAudit(
      "findings", "undo", "--by", "cfo", exits: [0], says: "Change \(second): took back")
    #expect(undone.output.contains("and the sign-off of run"), "\(undone)")
    #expect(try await signatures() == ["prepared by Dana"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_run_events WHERE event = 'undone'") == "1")
    _ = try await take()
    #expect(try await signatures() == ["prepared by Dana", "prepared by Dana, reviewed by Eva"])
    try await shop.nightAudit("verify", exits: [0])
  }

  @Test func undoingABulkChangeKeepsLaterDecisions() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.nightAudit("findings", "acknowledge", "--all", exits: [64], says: "--yes")
    let all = try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")
    let bulk = try await shop.nightAudit("findings", "acknowledge", "--all", "--yes", "--by", "ops")
    let told = try #require(
      bulk.output.wholeMatch(of: /Changed (\d+) findings\. To take it back: night-audit findings undo ([0-9a-f]{8})\n/),
      "\(bulk.output)")
    #expect(bulk.status == 0 && String(told.1) == all)
    let one = try await shop.value("SELECT min(finding_id) FROM night_audit.findings")
    _ = try await shop.nightAudit("findings", "close", one, "--by", "dana")
    try await shop.nightAudit("findings", "undo", "--dry-run", says: "would take back 1 finding. Nothing was changed.")
    let tried = try await shop.nightAudit("findings", "undo", String(told.2), "--dry-run")
    #expect(tried.output.hasPrefix("Change \(told.2): would take back "), "\(tried.output)")
    let undone = try await shop.nightAudit("findings", "undo", String(told.2), "--by", "ops", exits: [0])
    #expect(
      undone.output
        == "Change \(told.2): took back \((Int(all) ?? 0) - 1) findings; 1 was changed since and stays as it is.\n")
    let statuses =
      "SELECT string_agg(status || '=' || n, ',' ORDER BY status) FROM "
      + "(SELECT status, count(*) AS n FROM night_audit.findings GROUP BY status) s"
    #expect(try await shop.value(statuses) == "closed=1,open=\((Int(all) ?? 0) - 1)")
    try await shop.nightAudit("findings", "undo", says: "took back 1 finding.")
    // The later decision no longer keeps its finding from the first undo.
    try await shop.nightAudit("findings", "undo", says: "Change \(told.2): took back 1 finding.")
    #expect(try await shop.value(statuses) == "open=\(all)")
    try await shop.nightAudit("findings", "undo", exits: [1])
  }
}
