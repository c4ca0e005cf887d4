import Asking
import Crypto
import Foundation
import Postgres
import TestSupport
import Testing

@testable import AuditStore

/// `verify` confirms stored records, or names the first mismatch.
@Suite struct TrailTests {
  struct Tampering: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var sql: String
    var found: String

    init(_ description: String, _ found: String, _ sql: String) {
      (testDescription, self.found, self.sql) = (description, found, sql)
    }
  }

  private static let middle = "(SELECT (min(evidence_id) + max(evidence_id)) / 2 FROM night_audit.evidence)"
  private static let last = "finding_id = (SELECT max(finding_id) FROM findings)"
  private static let lastRow = "night_audit.trail WHERE entry_id > (SELECT max(entry_id) - 2 FROM night_audit.trail)"
  /// Recomputes the hashes of the trail from an entry on, like a knowledgeable attacker.
  private static let rehash = """
    DO $$
    DECLARE
      entry record; last text := '';
    BEGIN
      FOR entry IN SELECT * FROM night_audit.trail ORDER BY entry_id LOOP
        UPDATE night_audit.trail SET previous = last,
          hash = encode(sha256(convert_to(last || E'\\n' || entry.content, 'UTF8')), 'hex') WHERE entry_id = entry.entry_id
        RETURNING hash INTO last;
      END LOOP;
    END $$
    """

  static let tamperings: [Tampering] = [
    Tampering(
      "a refund disappears", "evidence: rows",
      "UPDATE evidence SET revoked_at = NULL, tells_revocation = NOT tells_revocation WHERE evidence_id = \(middle)"),
    Tampering(
      "a purchase gets another product", "evidence: rows",
      "UPDATE evidence SET product_id = product_id || 'x' WHERE evidence_id = \(middle)"),
    Tampering("a fact is removed", "evidence: of rows", "DELETE FROM evidence WHERE evidence_id = \(middle)"),
    Tampering(
      "the first fact is removed", "evidence: of rows",
      "DELETE FROM evidence WHERE evidence_id = (SELECT min(evidence_id) FROM evidence)"),
    Tampering("all facts are removed", "evidence: of rows", "TRUNCATE evidence"),
    Tampering(
      "a fact is made up among others", "evidence: row",
      "CREATE TEMPORARY TABLE e AS SELECT * FROM evidence WHERE evidence_id = \(middle); UPDATE e SET evidence_id = -5; INSERT INTO evidence OVERRIDING SYSTEM VALUE SELECT * FROM e"
    ),
    Tampering(
      "a fact is made up before all others", "row -9223372036854775808 has an ID that the table never assigns",
      "CREATE TEMPORARY TABLE e AS SELECT * FROM evidence WHERE evidence_id = \(middle); UPDATE e SET evidence_id = -9223372036854775808; INSERT INTO evidence OVERRIDING SYSTEM VALUE SELECT * FROM e"
    ),
    Tampering(
      "two facts change places", "evidence: rows",
      """
      WITH two AS (SELECT min(evidence_id) AS a, min(evidence_id) + 1 AS b FROM evidence)
      UPDATE evidence e SET transaction_id = o.transaction_id, recorded_at = o.recorded_at
      FROM evidence o, two WHERE e.evidence_id IN (a, b) AND o.evidence_id IN (a, b)
        AND o.evidence_id <> e.evidence_id
      """),
    Tampering(
      "a fact gets another recording date", "evidence: rows",
      "UPDATE evidence SET recorded_at = recorded_at - interval '1 year' WHERE evidence_id = \(middle)"),
    Tampering(
      "an answer gets another outcome", "answers: rows",
      "UPDATE answers SET outcome = 'verified' WHERE answer_id = (SELECT min(answer_id) FROM answers WHERE outcome <> 'verified')"
    ),
    Tampering(
      "an answer is removed", "answers: of rows",
      "DELETE FROM answers WHERE answer_id = (SELECT max(answer_id) FROM answers)"),
    Tampering(
      "a decision gets another person", "finding_events: rows",
      "UPDATE finding_events SET actor = 'Mallory' WHERE actor IS NOT NULL"),
    Tampering(
      "the opening of a finding is removed", "finding_events: of rows",
      "DELETE FROM finding_events WHERE event_id = (SELECT min(event_id) FROM finding_events)"),
    Tampering(
      "a closing of a finding is inserted", "finding_events: row",
      "INSERT INTO finding_events (event_id, finding_id, as_of, run_id, event) OVERRIDING SYSTEM VALUE SELECT -1, finding_id, as_of, run_id, 'closed' FROM finding_events WHERE run_id IS NOT NULL LIMIT 1"
    ),
    Tampering(
      "a finding is closed without a decision", "findings: finding",
      "UPDATE findings SET status = 'closed' WHERE \(last)"),
    Tampering(
      "a finding gets a closing date", "findings: finding", "UPDATE findings SET closed_at = now() WHERE \(last)"),
    Tampering("a finding is removed", "findings: finding", "DELETE FROM findings WHERE \(last)"),
    Tampering("the status becomes open", "findings: finding", "UPDATE findings SET status = 'open'"),
    Tampering("a finding gets another owner", "findings: finding", "UPDATE findings SET owner = 'cfo' WHERE \(last)"),
    Tampering(
      "a finding gets another age", "findings: finding",
      "UPDATE findings SET first_seen = first_seen - interval '20 days' WHERE \(last)"),
    Tampering(
      "a finding gets the lowest severity", "findings: finding",
      "UPDATE findings SET severity = 'minor' WHERE finding_id = (SELECT min(finding_id) FROM findings WHERE severity <> 'minor')"
    ),
    Tampering("amounts at risk become zero", "findings: finding", "UPDATE findings SET at_stake = 0"),
    Tampering("a finding gets another reason", "findings: finding", "UPDATE findings SET reason = 'x'"),
    Tampering(
      "a check is inserted without an answer", "an outcome that no answer gives",
      "INSERT INTO receipt_checks (subject_kind, subject_id, received_at, outcome, answered_at, last_attempt, attempts) VALUES ('receipt', 'forged', now(), 'verified', '2026-11-19Z', '2026-11-19Z', 1)"
    ),
    Tampering(
      "a check gets a later answer date", "an outcome that no answer gives",
      "UPDATE receipt_checks SET answered_at = answered_at + interval '1 hour' WHERE outcome NOT IN ('pending', 'unanswered')"
    ),
    Tampering("a sign-off is forged", "run_events: rows", "UPDATE run_events SET detail = 'Mallory'"),
    Tampering("a sign-off is removed", "run_events: of rows", "DELETE FROM run_events"),
    Tampering(
      "an incomplete night becomes complete", "runs: run", "UPDATE runs SET complete = true, incomplete_reasons = '{}'"),
    Tampering("a run gets another report digest", "runs: run", "UPDATE runs SET content = repeat('0', 64)"),
    Tampering("a run gets exit status 0", "runs: run", "UPDATE runs SET exit_status = 0"),
    Tampering("a run is removed", "runs: run", "DELETE FROM runs"),
    Tampering(
      "a run is made up", "runs: run",
      "INSERT INTO runs (run_id, command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host, version) SELECT gen_random_uuid(), command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host, version FROM runs"
    ),
    Tampering(
      "an entry is changed", "is not as it was written",
      "UPDATE trail SET content = replace(content, 'began', 'ended') WHERE content LIKE '%\"began\"%'"),
    Tampering("an entry is removed", "is missing", "DELETE FROM trail WHERE entry_id = 2"),
    Tampering("the last entries are removed", "runs: run", "DELETE FROM \(lastRow)"),
    Tampering("the beginning is removed", "is missing", "DELETE FROM trail WHERE entry_id = 1"),
    Tampering("the whole trail is removed", "its beginning is missing", "TRUNCATE trail"),
    Tampering(
      "entries change places", "is not as it was written",
      "UPDATE trail SET content = (SELECT content FROM trail WHERE entry_id = 3) WHERE entry_id = 2"),
    Tampering(
      "all facts are removed, with a forged entry", "deletes rows that the entry before it does not cover",
      """
      TRUNCATE evidence;
      SELECT night_audit.append_trail('released', NULL, '{}', '{"table": "evidence", "before": "2999-01-01"}')
      """),
    Tampering("the findings met by runs are removed", "findings_met of run", "DELETE FROM findings_met"),
    Tampering("an order gets another disposition", "of run", "UPDATE order_nights SET disposition = 'in_flight'"),
    Tampering(
      "an order of the night is removed", "of run",
      "DELETE FROM order_nights WHERE order_id = (SELECT order_id FROM order_nights ORDER BY created_at DESC LIMIT 1)"),
    Tampering(
      "a refund of a night is made up", "refund_nights of run",
      "INSERT INTO refund_nights (transaction_id, as_of, run_id) SELECT '1', as_of, run_id FROM runs"),
    Tampering("the trend is changed", "run_totals of run", "UPDATE run_totals SET amount = 0"),
    Tampering("the reported days are removed", "reported_days of run", "DELETE FROM reported_days"),
    Tampering(
      "a dispatch to an unknown target is inserted", "dispatches of run",
      "INSERT INTO dispatches (run_id, target, directory, state) SELECT run_id, 'x', '/x', 'withdrawn' FROM runs"),
    Tampering(
      "a cursor is moved", "the cursor of REFUND of game is later than what runs read",
      "INSERT INTO sweeps (bundle_id, environment, notification_type, swept_until, last_attempt) VALUES ('game', 'Production', 'REFUND', '2026-11-19Z', '2026-11-20Z')"
    ),
    Tampering(
      "a history is postponed", "the history of transaction 1 of game is put off to a time later than all runs",
      "INSERT INTO histories (bundle_id, environment, transaction_id, last_attempt) VALUES ('game', 'Production', '1', '2999-01-01Z')"
    ),
    Tampering(
      "a view hides findings", "view night_audit.bi_findings_by_night: was defined otherwise",
      "DROP VIEW bi_findings_by_night; CREATE VIEW bi_findings_by_night AS SELECT * FROM run_findings WHERE severity <> 'critical'"
    ),
    Tampering(
      "a trigger is dropped", "trigger append_only of night_audit.evidence: is missing",
      "DROP TRIGGER append_only ON evidence"),
    Tampering(
      "every role may write", "night_audit.findings: everybody may use it (PUBLIC)", "GRANT ALL ON findings TO PUBLIC"),
    Tampering(
      "an entry names another report of a run", "names another report of run",
      "SELECT night_audit.append_trail('found', run_id) FROM runs; UPDATE trail SET content = (content::jsonb || '{\"report\": \"x\"}')::text WHERE content LIKE '%\"found\"%'; \(rehash)"
    ),
    Tampering(
      "an entry is shortened and all hashes are recomputed", "evidence: row",
      "UPDATE trail SET content = jsonb_set(content::jsonb, '{appended}', '[]')::text WHERE content LIKE '%evidence%'; \(rehash)"
    ),
  ]

  @Test func changesOfCoveredRowsAreDetected() async throws {
    let shop = try await Rehearsal.auditedShop()
    let some = try await shop.value("SELECT min(finding_id) FROM night_audit.findings")
    try await shop.nightAudit("findings", "acknowledge", some, "--by", "Ana", exits: [0])
    try await shop.execute(
      "INSERT INTO night_audit.run_events (run_id, event, actor, detail) SELECT run_id, 'prepared_by', 'Ana', 'Ana' FROM night_audit.runs"
    )
    try await shop.nightAudit("verify", exits: [0], says: "1 that the next entry covers")
    try await shop.execute("SELECT night_audit.append_trail('asked', NULL)")
    let sound = try await shop.nightAudit("verify")
    #expect(sound.status == 0 && !sound.output.contains("PROBLEM"), "\(sound)")
    for table in ["evidence", "answers", "finding_events", "run_events", "runs"] {
      #expect(sound.output.contains("ok       \(table) ("), "\(sound.output)")
    }
    for check in [["verify", shop.reports + "/2026-11-19"], ["verify", "--run", "latest"]] {
      try await shop.nightAudit(more: check, exits: [0])
    }

    // Each change is made in a transaction that is rolled back.
    let database = DatabaseRole.superuser.conninfo(shop.conninfo)
    try await withBlockingThread { scope in
      let definitions = SchemaDefinitions()
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      for tampering in Self.tamperings {
        try connection.executeScript(
          """
          BEGIN; SET LOCAL session_replication_role = replica; SET LOCAL search_path = night_audit; \(tampering.sql);
          SET LOCAL session_replication_role = DEFAULT; SET LOCAL search_path = DEFAULT
          """)
        var problems = try TrailVerification.whole(on: connection).checks.compactMap { check in
          check.problem.map { "\(check.subject): \($0)" }
        }
        func isFound() -> Bool { problems.contains { $0.contains(tampering.found) } }
        // The comparison of definitions copies the schema, so only changes that the trail does not show are compared.
        if !isFound() {
          if let problem = try QueueRebuild.problem(on: connection) { problems.append(problem) }
          problems += try definitions.differencesInTransaction(connection).map { "\($0.object): \($0.description)" }
        }
        try connection.executeScript("ROLLBACK")
        #expect(isFound(), "\(tampering): \(problems)")
      }
    }
    try await shop.execute(
      "SET session_replication_role = replica; SET search_path = night_audit; \(Self.tamperings[0].sql)")
    let result = try await shop.nightAudit("verify")
    #expect(result.status == 70 && result.output.contains(Self.tamperings[0].found), "\(result)")
  }

  @Test func aRewrittenTrailContradictsPublishedReports() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.execute(
      """
      SET session_replication_role = replica; DELETE FROM night_audit.evidence WHERE evidence_id = \(Self.middle);
      TRUNCATE night_audit.trail; SELECT night_audit.append_trail('start', NULL);
      SELECT night_audit.append_trail('found', run_id) FROM night_audit.runs
      """)
    try await shop.nightAudit("verify", exits: [0])
    try await shop.nightAudit(
      "verify", shop.reports + "/2026-11-19", "--json", exits: [70], says: "that this database does not have")
  }

  @Test func appendOnlyTablesRejectChanges() async throws {
    let shop = try await Rehearsal.auditedShop()
    for change in [
      "UPDATE night_audit.evidence SET quantity = 7", "DELETE FROM night_audit.answers",
      "TRUNCATE night_audit.evidence",
      "TRUNCATE night_audit.evidence_first", "DELETE FROM night_audit.finding_events", "DELETE FROM night_audit.runs",
      "UPDATE night_audit.runs SET complete = NOT complete", "UPDATE night_audit.runs SET host = 'elsewhere'",
      "UPDATE night_audit.runs SET publication = 'publishing'", "DELETE FROM night_audit.trail",
      "UPDATE night_audit.runs SET complete = NULL", "UPDATE night_audit.runs SET exit_status = 42",
      "UPDATE night_audit.runs SET exit_status = 0", "UPDATE night_audit.runs SET finished_at = now()",
      "UPDATE night_audit.runs SET directory = '/elsewhere'", "UPDATE night_audit.runs SET held_because = '{x}'",
      "UPDATE night_audit.runs SET publication = 'forgotten'",
      """
      SELECT night_audit.write_run(run_id, '{"exit_status": 42, "directory": "/elsewhere", "held_because": ["x"]}')
      FROM night_audit.runs
      """,
      "UPDATE night_audit.trail SET hash = 'x'",
    ] {
      await #expect(throws: (any Error).self, "\(change)") { try await shop.execute(change) }
    }
    try await shop.nightAudit("verify", exits: [0])
    // A later failure is recorded once, and a run without a report keeps its status.
    try await shop.execute(
      """
      UPDATE night_audit.runs SET exit_status = 73;
      INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration, is_nightly,
        host, version, exit_status)
      SELECT gen_random_uuid(), command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host,
        version, 70 FROM night_audit.runs;
      """)
    for change in ["exit_status = 73", "publication = 'publishing'", "complete = true", "content = 'x'"] {
      let sql = "UPDATE night_audit.runs SET \(change) WHERE exit_status = 70"
      await #expect(throws: (any Error).self, "\(change)") { try await shop.execute(sql) }
    }
  }

  /// The removals are removed folders, forgotten runs and released months.
  @Test func removalsKeepTheTrailVerifiable() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let first = try await shop.value("SELECT run_id FROM night_audit.runs")
    try await shop.execute(
      """
      SET session_replication_role = replica;
      CREATE TABLE public.moved AS TABLE night_audit.answers; UPDATE public.moved SET recorded_at = '2026-01-15Z';
      TRUNCATE night_audit.answers, night_audit.trail;
      ALTER TABLE night_audit.answers DETACH PARTITION night_audit.answers_first; DROP TABLE night_audit.answers_first;
      CREATE TABLE night_audit.answers_2026_01 PARTITION OF night_audit.answers
        FOR VALUES FROM ('2026-01-01Z') TO ('2026-02-01Z');
      ALTER TABLE night_audit.answers_2026_01 OWNER TO night_audit_owner;
      CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.answers_2026_01
        FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change();
      INSERT INTO night_audit.answers OVERRIDING SYSTEM VALUE SELECT * FROM public.moved; DROP TABLE public.moved;
      DELETE FROM night_audit.retention; INSERT INTO night_audit.retention VALUES ('30 days', '1 day');
      UPDATE night_audit.receipt_checks SET answered_at = '2026-01-15Z' WHERE answered_at IS NOT NULL;
      SELECT night_audit.append_trail('start', NULL);
      SELECT night_audit.append_trail('found', run_id) FROM night_audit.runs
      """)
    try await shop.nightAudit("verify", exits: [0])
    let retention = ["NIGHT_AUDIT_EVIDENCE_RETENTION": "30d", "NIGHT_AUDIT_REPORT_RETENTION": "1d"]
    for night in ["2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z", "2026-11-23T03:00:00Z"] {
      try await shop.nightAudit("run", more: ["--as-of", night], environment: retention, exits: [0, 3])
    }
    #expect(try await shop.value("SELECT to_regclass('night_audit.answers_2026_01') IS NULL") == "true")
    try await shop.nightAudit("runs", "forget", "latest", exits: [0])
    let all = try await shop.nightAudit("verify", exits: [0])
    #expect(all.output.contains("; expired rows before 2026-02-01 were deleted)"), "\(all)")
    let kinds = try await shop.value("SELECT string_agg(DISTINCT kind, ',' ORDER BY kind) FROM night_audit.bi_trail")
    #expect(kinds.contains("forgotten") && kinds.contains("released"), "\(kinds)")
    try await shop.nightAudit("verify", "--run", String(first.prefix(8)), exits: [0])
  }

  /// Changes a published report with matching sums, under an unknown run.
  private func forge(_ shop: Rehearsal, _ folder: String, command: String) throws {
    _ = try shop.edit("orders.csv", in: folder)
    let run = #"{"run_id": "\#(UUID().uuidString.lowercased())", "command": "\#(command)"}"#
    try Data(run.utf8).write(to: URL(filePath: folder + "/run.json"))
  }

  @Test func aReportOfAnUnknownRunIsDetected() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let (folder, out) = (shop.reports + "/2026-11-19", shop.directory.file("out"))
    for (command, said) in [("run", "is missing"), ("reconcile", "is missing; the folder is that of run ")] {
      try forge(shop, folder, command: command)
      try await shop.nightAudit("verify", shop.reports + "/latest", exits: [70], says: said)
      try await shop.nightAudit(
        "verify", "--run", "latest", exits: [70], says: "no record shows that this run replaced it")
    }
    // `reconcile` belongs to no run.
    try await shop.nightAudit("reconcile", "--as-of", Rehearsal.asOf, "--out", out, exits: [3])
    try await shop.nightAudit("verify", out, exits: [0], says: "because reconcile records no runs")
    // A report of an unknown run is replaced only with `--adopt`.
    let run = try await shop.value("SELECT run_id FROM night_audit.runs")
    let before = try shop.files(folder)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [73], says: "--adopt")
    #expect(try shop.files(folder) == before)
    let adopted = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, "--adopt")
    #expect([0, 3].contains(adopted.status) && adopted.errors.contains("took over"), "\(adopted)")
    try await shop.nightAudit("verify", exits: [0])
    try await shop.nightAudit("verify", "--run", run, exits: [0], says: "has replaced since")
  }

  @Test func movedReportsVerifyAtTheirPath() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let run = try await shop.value("SELECT run_id FROM night_audit.runs")
    let moved = shop.directory.file("moved")
    try FileManager.default.moveItem(atPath: shop.reports, toPath: moved)
    let environment = ["NIGHT_AUDIT_REPORT_DIRECTORY": moved]
    func verify(_ arguments: String...) async throws -> Program.Result {
      try await shop.nightAudit("verify", more: arguments, environment: environment)
    }
    #expect(try await verify("--run", run).status == 0)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, environment: environment, exits: [0, 3])
    let replaced = try await verify("--run", run)
    #expect(replaced.status == 0 && replaced.output.contains("has replaced since"), "\(replaced)")
    try forge(shop, moved + "/2026-11-19", command: "run")
    let forged = try await verify("--run", run)
    #expect(forged.status == 70 && forged.output.contains("is missing"), "\(forged)")
  }

  /// An earlier removal of the day's report does not explain a missing new one.
  @Test func anEarlierRemovalDoesNotExplainAMissingFolder() async throws {
    let shop = try await Rehearsal.auditedShop()
    let removed = """
      SELECT night_audit.append_trail('removed', NULL, '{}', jsonb_build_object('folders', ARRAY['2026-11-19']))
      """
    try await shop.execute(removed)
    let again = Rehearsal.asOf.replacing("T03:00", with: "T03:01")
    try await shop.nightAudit("run", "--as-of", again, exits: [3])
    try FileManager.default.removeItem(atPath: shop.reports + "/2026-11-19")
    try await shop.nightAudit("verify", "--run", "latest", exits: [70], says: "is missing")
    try await shop.execute(removed)
    try await shop.nightAudit("verify", "--run", "latest", exits: [0], says: "removed after report.retention")
  }
}

extension Rehearsal {
  /// Changes a file and its sums; returns the digest of the new `SHA256SUMS`.
  func edit(_ file: String, in folder: String) throws -> String {
    func digest(_ path: String) throws -> String {
      SHA256.hash(data: try Data(contentsOf: URL(filePath: path))).map { String(format: "%02x", $0) }.joined()
    }
    let edited = URL(filePath: "\(folder)/\(file)")
    try (Data(contentsOf: edited) + Data("\n".utf8)).write(to: edited)
    let sums = try String(contentsOfFile: folder + "/SHA256SUMS", encoding: .utf8).split(separator: "\n")
      .map { line -> String in
        let name = line.dropFirst(66)
        return "\(try digest("\(folder)/\(name)"))  \(name)\n"
      }
    try Data(sums.joined().utf8).write(to: URL(filePath: folder + "/SHA256SUMS"))
    return try digest(folder + "/SHA256SUMS")
  }
}
