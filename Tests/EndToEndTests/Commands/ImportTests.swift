import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct ImportTests {
  /// Runs the first Python with openpyxl. Debian installs openpyxl for its own Python only, which may not be the first
  /// in `PATH`.
  private func python(_ program: String, _ arguments: String...) throws {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let candidates = ["/usr/bin/python3"] + path.split(separator: ":").map { "\($0)/python3" }
    let python = try #require(candidates.first { (try? Command.run([$0, "-c", "import openpyxl"])) != nil })
    try Command.run([python, "-"] + arguments, input: program)
  }

  private static let edit = #"""
    import sys, openpyxl
    source, target, *edits = sys.argv[1:]
    book = openpyxl.load_workbook(source)
    sheet = book["Findings"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    head = rows[0]
    for edit in edits:
        row, column, value = edit.split("|", 2)
        kinds = {"int": int, "none": lambda _: None}
        kind, _, rest = value.partition(":")
        rows[int(row)][head.index(column)] = kinds[kind](rest) if kind in kinds else value
    # Usual edits by people: another sort order, an additional first column, rows hidden by a filter.
    # Earlier versions wrote "Finding id".
    table = [["My notes"] + [title.replace(" ID", " id") for title in head]] + [["x"] + row for row in sorted(rows[1:], key=lambda r: str(r[3]))]
    copy = openpyxl.Workbook()
    copy.properties.created = book.properties.created
    copy.active.title = "Mine"
    out = copy.create_sheet("Findings")
    for index, row in enumerate(table, 1):
        for column, value in enumerate(row, 1):
            cell = out.cell(index, column)
            cell.value = value
            # A text that begins with "=" is a formula only where a person typed it.
            if isinstance(value, str) and value.startswith("=") and value != "=1+1":
                cell.data_type = "s"
        out.row_dimensions[index].hidden = index % 3 == 0
    copy.save(target)
    """#

  private func importing(_ shop: Rehearsal, _ arguments: String...) async throws -> (Int32, [String: Any]) {
    let result = try await shop.nightAudit("findings", "import", "--by", "finance", "--json", more: arguments)
    let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    return (result.status, try #require(document, "\(result.errors)"))
  }

  private func reasons(_ document: [String: Any]) -> [String] {
    (document["refusals"] as? [[String: Any]] ?? []).compactMap { $0["reason"] as? String }
  }

  @Test func decisionsInTheWorkbookAreImported() async throws {
    let shop = try await Rehearsal.auditedShop()
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("returned.xlsx")

    let (untouched, nothing) = try await importing(shop, source)
    #expect(untouched == 0)
    #expect((nothing["changes"] as? [Any])?.isEmpty == true)
    let count = try #require(nothing["rows"] as? Int)
    #expect(nothing["as_of"] as? String == Rehearsal.asOf)
    #expect(count == Int(try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")))

    try python(
      Self.edit, source, target, "1|Status|Acknowledged", "1|Owner| Zoë ", "1|Remark|=cmd() 😀", "1|Due|int:46357",
      "2|Status|done",
      "2|Owner|bob", "3|Owner|int:42", "3|Remark|=1+1", "4|Finding ID|0000", "5|Finding ID|none:", "5|Owner|x",
      "6|Kind|nonsense")
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
    let shop = try await Rehearsal.auditedShop()
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("returned.xlsx")
    let ids = try await shop.value(
      "SELECT string_agg(finding_id, ',' ORDER BY finding_id) FROM night_audit.findings WHERE closed_at IS NULL"
    ).split(separator: ",").map(String.init)
    _ = try await shop.nightAudit("findings", "assign", "--all", "--yes", "--to", "ops", "--by", "ops")
    try python(Self.edit, source, target, "1|Owner|finance", "2|Remark|seen")
    let (status, document) = try await importing(shop, target)
    #expect(status == 1)
    #expect(reasons(document).count == 1 && reasons(document)[0].contains("changed elsewhere"), "\(document)")
    #expect((document["changes"] as? [Any])?.count == 1)
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.findings WHERE owner = 'ops'") == String(ids.count))

    // Empty cells in a workbook of an unknown run clear no decision.
    try python(
      "import sys, openpyxl; b = openpyxl.load_workbook(sys.argv[1]); "
        + "b.properties.created = __import__('datetime').datetime(2001, 1, 1); b.save(sys.argv[2])", source, target)
    let (strangers, other) = try await importing(shop, target)
    #expect(strangers == 0 && other["as_of"] == nil)
    // The status cells equal the database, and empty cells are ignored.
    #expect((other["changes"] as? [Any])?.isEmpty == true, "\(other)")
  }

  /// The second import sees the changes of the first one, although both began at the same time.
  @Test func twoAtOnceDoNotOverwriteEachOther() async throws {
    let shop = try await Rehearsal.auditedShop()
    let target = shop.directory.file("returned.xlsx")
    try python(Self.edit, shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx", target, "1|Owner|bob")
    // Holds the lock of a night that is being recorded, so that both imports wait.
    let first = try await PostgresSession.connect(
      DatabaseRole.superuser.conninfo(shop.conninfo), applicationName: "night-audit tests")
    try await first.executeScript("BEGIN; SELECT pg_advisory_xact_lock(1852401512, 5)")
    let second = try Program.nightAudit.start([
      "findings", "import", target, "--by", "finance", "--json", "--config", shop.directory.file("night-audit.yaml"),
    ])
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

  /// Fills in lines such as `Prepared by|Dana`, as Excel does. An entry of digits is a date, as a serial number. The
  /// cached results of formulas stay in the file.
  private func sign(_ source: String, as target: String, _ lines: [String], isBalanced: Bool = true) throws {
    try python(
      #"""
      import re, sys, zipfile, openpyxl
      from xml.sax.saxutils import escape
      source, target, balanced, lines = sys.argv[1:]
      entries = dict(line.split("|") for line in lines.split("\x1f"))
      sheet = openpyxl.load_workbook(source)["Summary"]
      places = {f"B{row[0].row}": entries[row[0].value] for row in sheet.iter_rows(max_col=1) if row[0].value in entries}
      with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
          for name in old.namelist():
              content = old.read(name)
              if name == "xl/worksheets/sheet1.xml":
                  text = content.decode()
                  for place, entry in places.items():
                      value = f"><v>{entry}</v>" if entry.isdigit() else (
                          f' t="inlineStr"><is><t>{escape(entry)}</t></is>')
                      text, count = re.subn(f'<c r="{place}"( s="[0-9]+")?/>',
                          lambda m: f'<c r="{place}"{m[1] or ""}{value}</c>', text)
                      assert count == 1, place
                  if balanced == "no":
                      assert "<v>BALANCED: " in text
                      text = text.replace("<v>BALANCED: ", "<v>NOT BALANCED: ")
                  content = text.encode()
              new.writestr(name, content)
      """#, source, target, isBalanced ? "yes" : "no", lines.joined(separator: "\u{1F}"))
  }

  @Test func signOffsOfTheWorkbookBecomeRunEvents() async throws {
    let shop = try await Rehearsal.sampleShop()
    _ = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf, "--user", "nobody")
    _ = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf)
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("signed.xlsx")
    // openpyxl writes no results of formulas, so no cell states that the controls agree.
    try python(
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
    try sign(source, as: target, ["Prepared by|Dana", "Date|46346", "Remark|looks right"])
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
    try python(
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
    try python(
      """
      import datetime, sys, openpyxl
      book = openpyxl.load_workbook(sys.argv[1])
      book.properties.created = datetime.datetime(2020, 1, 1)
      book.save(sys.argv[1])
      """, target)
    let (_, strange) = try await importing(shop, target)
    #expect(reasons(strange).contains("Reviewed by: no run of this database wrote this workbook"), "\(strange)")
  }

  @Test func aSignOffNeedsTwoPeopleACompleteReportAndABalancedWorkbook() async throws {
    let shop = try await Rehearsal.sampleShop()
    let night = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3, "\(night)")
    let source = shop.reports + "/2026-11-19/night-audit-2026-11-19.xlsx"
    let target = shop.directory.file("signed.xlsx")
    func sign(_ lines: String..., isBalanced: Bool = true) throws {
      try self.sign(source, as: target, lines, isBalanced: isBalanced)
    }
    func refused(_ word: String, _ arguments: String...) async throws {
      let result = try await shop.nightAudit("findings", "import", "--by", "finance", target, more: arguments)
      #expect(result.status == 1 && result.output.contains(word), "\(word): \(result)")
      #expect(try await shop.value("SELECT count(*) FROM night_audit.run_events WHERE event = 'reviewed_by'") == "0")
    }
    try sign("Prepared by|Dana", "Reviewed by|Eva")
    try await refused("the report is incomplete (")
    try sign("Prepared by|Dana", "Reviewed by| DANA ")
    try await refused("cannot both prepare and review", "--accept-incomplete")
    try sign("Prepared by|Dana", "Reviewed by|Eva", isBalanced: false)
    try await refused("NOT BALANCED", "--accept-incomplete")

    func take() async throws -> String {
      let result = try await shop.nightAudit("findings", "import", "--by", "finance", "--accept-incomplete", target)
      #expect(result.status == 0, "\(result)")
      let change = try #require(result.output.firstMatch(of: /night-audit findings undo ([0-9a-f]{8})/), "\(result)")
      return String(change.1)
    }
    try sign("Prepared by|Dana")
    _ = try await take()
    try sign("Reviewed by|dana")
    try await refused("cannot both prepare and review", "--accept-incomplete")
    try sign("Prepared by|Dana", "Reviewed by|Eva")
    let second = try await take()
    func signatures() async throws -> [String] {
      try await shop.nightAudit("runs").output.split(separator: "\n").filter { $0.contains("is signed") }
        .compactMap { $0.firstMatch(of: /signed: (.*) \(recorded 20\d\d-\S+Z by finance\)/).map { String($0.1) } }
    }
    #expect(try await signatures() == ["prepared by Dana", "prepared by Dana, reviewed by Eva"])
    // Undo includes the sign-off; the history keeps both.
    let undone = try await shop.nightAudit("findings", "undo", "--by", "cfo")
    #expect(undone.status == 0 && undone.output.contains("Change \(second): took back"), "\(undone)")
    #expect(undone.output.contains("and the sign-off of run"), "\(undone)")
    #expect(try await signatures() == ["prepared by Dana"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.bi_run_events WHERE event = 'undone'") == "1")
    _ = try await take()
    #expect(try await signatures() == ["prepared by Dana", "prepared by Dana, reviewed by Eva"])
    #expect(try await shop.nightAudit("verify").status == 0)
  }

  @Test func undoingABulkChangeKeepsLaterDecisions() async throws {
    let shop = try await Rehearsal.auditedShop()
    let refused = try await shop.nightAudit("findings", "acknowledge", "--all")
    #expect(refused.status == 64 && refused.errors.contains("--yes"), "\(refused.errors)")
    let all = try await shop.value("SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL")
    let bulk = try await shop.nightAudit("findings", "acknowledge", "--all", "--yes", "--by", "ops")
    let told = try #require(
      bulk.output.wholeMatch(of: /Changed (\d+) findings\. To take it back: night-audit findings undo ([0-9a-f]{8})\n/),
      "\(bulk.output)")
    #expect(bulk.status == 0 && String(told.1) == all)
    let one = try await shop.value("SELECT min(finding_id) FROM night_audit.findings")
    _ = try await shop.nightAudit("findings", "close", one, "--by", "dana")
    let last = try await shop.nightAudit("findings", "undo", "--dry-run")
    #expect(last.output.contains("would take back 1 finding. Nothing was changed."), "\(last.output)")
    let tried = try await shop.nightAudit("findings", "undo", String(told.2), "--dry-run")
    #expect(tried.output.hasPrefix("Change \(told.2): would take back "), "\(tried.output)")
    let undone = try await shop.nightAudit("findings", "undo", String(told.2), "--by", "ops")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(
      undone.output
        == "Change \(told.2): took back \((Int(all) ?? 0) - 1) findings; 1 were changed since and stay as they are.\n")
    let statuses =
      "SELECT string_agg(status || '=' || n, ',' ORDER BY status) FROM "
      + "(SELECT status, count(*) AS n FROM night_audit.findings GROUP BY status) s"
    #expect(try await shop.value(statuses) == "closed=1,open=\((Int(all) ?? 0) - 1)")
    #expect(try await shop.nightAudit("findings", "undo").output.contains("took back 1 finding."))
    let nothing = try await shop.nightAudit("findings", "undo")
    #expect(nothing.status == 1, "\(nothing.output) \(nothing.errors)")
  }
}
