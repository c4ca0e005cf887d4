import Foundation
import Testing

/// The roles of the page on the audit trail, created by its statements.
@Suite struct RolesTests {
  @Test func theRoleThatRunsNightsCannotChangeAppendedRows() async throws {
    let shop = try await Rehearsal.sampleShop()
    let doctor = try await shop.nightAudit("doctor")
    #expect(doctor.status == 0 && !doctor.output.contains("schema night_audit:"), "\(doctor)")
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3 && !night.errors.contains("monthly partitions of evidence"), "\(night)")
    try await shop.nightAudit("recheck", "--as-of", Rehearsal.asOf, exits: [0, 3])
    let some = try await shop.value("SELECT min(finding_id) FROM night_audit.findings")
    try await shop.nightAudit("findings", "acknowledge", some, "--by", "Ana", exits: [0])
    try await shop.nightAudit("rebuild", "--write", exits: [0])
    try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", exits: [0, 3])
    try await shop.nightAudit("runs", "forget", "latest", exits: [0])
    try await shop.nightAudit("verify", exits: [0])

    // The role lacks these rights.
    for change in ["evidence", "answers", "runs", "finding_events", "run_events", "trail"].flatMap({ table in
      [
        "DELETE FROM night_audit.\(table)", "TRUNCATE night_audit.\(table)",
        "ALTER TABLE night_audit.\(table) DISABLE TRIGGER ALL",
      ]
    }) + [
      "UPDATE night_audit.evidence SET quantity = 1", "UPDATE night_audit.runs SET complete = true",
      "UPDATE night_audit.answers SET outcome = 'x'", "UPDATE night_audit.finding_events SET event = 'closed'",
      "UPDATE night_audit.run_events SET actor = 'x'", "UPDATE night_audit.trail SET hash = 'x'",
      "INSERT INTO night_audit.trail VALUES (0, '', '', '')", "DELETE FROM sales.orders",
      "CREATE TABLE night_audit.x (n int)",
      "UPDATE night_audit.schema_migrations SET name = 'x'",
    ] {
      let error = await #expect(throws: (any Error).self) { try await shop.execute(change, as: .writer) }
      #expect("\(error.map { "\($0)" } ?? "")".contains("42501"), "\(change): \(String(describing: error))")
    }
    let month = try await #require(throws: (any Error).self) {
      try await shop.execute("SELECT night_audit.release_partition('evidence_first', '{}')", as: .writer)
    }
    #expect("\(month)".contains("is not over"), "\(month)")
    let views = try await shop.value(
      "SELECT string_agg(format('SELECT count(*) FROM night_audit.%I', relname), '; ') FROM pg_class WHERE relnamespace = 'night_audit'::regnamespace AND starts_with(relname, 'bi_')"
    )
    try await shop.execute(views, as: .reader)
    for statement in [
      "SELECT 1 FROM night_audit.runs", "SELECT 1 FROM night_audit.disbelieved_notifications",
      "SELECT 1 FROM sales.orders",
      "SELECT night_audit.append_trail('began', NULL)", "DELETE FROM night_audit.bi_findings",
    ] {
      await #expect(throws: (any Error).self, "\(statement)") { try await shop.execute(statement, as: .reader) }
    }
  }

  @Test func theRoleThatRunsNightsCannotProveAnEditedReport() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let folder = shop.reports + "/2026-11-19"
    let digest = try shop.edit("findings.csv", in: folder)
    let run = try await shop.value("SELECT run_id FROM night_audit.runs")
    let forgeries = [
      "SELECT night_audit.append_trail('published', '\(run)', NULL, '{\"report\": \"\(digest)\"}')",
      "SELECT night_audit.append_trail('published', '\(run)')", "SELECT night_audit.append_trail('oops', NULL)",
      "SELECT night_audit.append_trail('start', NULL, NULL, '{\"entry\": 1, \"marks\": {\"evidence\": 1}}')",
      "SELECT night_audit.write_run('\(run)', '{\"content\": \"\(digest)\"}')",
      "SELECT night_audit.write_run('\(run)', '{\"publication\": \"publishing\", \"content\": \"\(digest)\"}')",
      "INSERT INTO night_audit.evidence OVERRIDING SYSTEM VALUE SELECT * FROM night_audit.evidence LIMIT 1",
      "INSERT INTO night_audit.finding_events (event_id, finding_id, as_of, event) OVERRIDING SYSTEM VALUE VALUES (-1, 'x', now(), 'owner')",
      "INSERT INTO night_audit.finding_events (finding_id, as_of, event, detail) VALUES ('x', now(), 'due', 'someday')",
      "INSERT INTO night_audit.finding_events (finding_id, as_of, event) VALUES ('x', now(), 'nonsense')",
      "INSERT INTO night_audit.answers (recorded_at, run_id, as_of, subject_kind, subject_id, channel, outcome, facts) SELECT '2000-01-01', run_id, as_of, subject_kind, subject_id, channel, outcome, facts FROM night_audit.answers LIMIT 1",
      "INSERT INTO night_audit.runs SELECT gen_random_uuid(), command FROM night_audit.runs",
      "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT night_audit.cover_answers('\(run)'); COMMIT",
      "SELECT night_audit.release_partition(NULL, NULL)",
    ]
    for statement in forgeries {
      await #expect(throws: (any Error).self, "\(statement)") { try await shop.execute(statement, as: .writer) }
    }
    for statement in [
      "SELECT night_audit.write_run(NULL, '{}')", "SELECT night_audit.write_run('\(run)', NULL)",
      "SELECT night_audit.write_run('\(run)', '{\"kind\": \"oops\", \"entry\": 1}')",
      "SELECT night_audit.record_removed(NULL)", "SELECT night_audit.record_removed('{NULL}')",
      "SELECT night_audit.record_adopted(NULL)", "SELECT night_audit.record_adopted('{NULL}')",
      "SELECT night_audit.cover_answers(NULL)", "SELECT night_audit.cover_answers('\(run)')",
      "SELECT night_audit.keep_partitions()",
      "INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host, version) SELECT gen_random_uuid(), command, as_of, period_since, period_until, time_zone, configuration, is_nightly, host, version FROM night_audit.runs",
    ] {
      try await shop.execute(statement, as: .writer)
    }
    // A trigger function that runs for another table would append entries to the trail that describe no run.
    for (number, role) in [DatabaseRole.writer, .superuser].enumerated() {
      for change in ["INSERT INTO t VALUES (NULL, NULL)", "UPDATE t SET publication = 'released'"] {
        await #expect(throws: (any Error).self, "\(role): \(change)") {
          try await shop.execute(
            """
            CREATE TEMPORARY TABLE t (run_id uuid, publication text); INSERT INTO t VALUES (NULL, 'before_release');
            CREATE TRIGGER x\(number) AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION night_audit.record_run();
            \(change)
            """, as: role)
        }
      }
    }
    try await shop.nightAudit("verify", exits: [0])
    for arguments in [[folder], ["--run", run]] {
      try await shop.nightAudit("verify", more: arguments, exits: [70], says: "with another content")
    }
  }

  @Test func aFactOfAnUnknownRunIsReportedAndIgnored() async throws {
    let shop = try await Rehearsal.auditedShop()
    let transactions = "SELECT md5(string_agg(t::text, '' ORDER BY transaction_id)) FROM night_audit.transactions t"
    let before = try await shop.value(transactions)
    let columns = try await shop.value(
      "SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'night_audit.evidence'::regclass AND attnum > 0 AND attname NOT IN ('evidence_id', 'recorded_at', 'signed_at', 'revoked_at')"
    )
    let unknown = columns.replacing("run_id", with: "gen_random_uuid()")
    for (later, copied) in [
      ("400 days", columns), ("1 second", columns), ("2 seconds", unknown),
      ("3 seconds", unknown.replacing("subject_kind, subject_id", with: "NULL, NULL")),
    ] {
      try await shop.execute(
        "INSERT INTO night_audit.evidence (signed_at, \(columns)) SELECT signed_at + interval '\(later)', \(copied) FROM night_audit.evidence WHERE revoked_at IS NOT NULL LIMIT 1",
        as: .writer)
    }
    try await shop.nightAudit("verify", exits: [0], says: "except for those that do not count: fact ")
    try await shop.nightAudit("rebuild", "--write", says: "it does not count")
    #expect(try await shop.value(transactions) == before)
  }

  /// A fact dated before Apple's first answer has no answer, either.
  @Test func aFactFromBeforeTheFirstNightIsReportedAndIgnored() async throws {
    let shop = try await Rehearsal.sampleShop(isSmall: true)
    try await shop.execute(
      """
      INSERT INTO night_audit.evidence (run_id, as_of, channel, signed_at, environment, transaction_id, product_id,
        purchased_at, tells_revocation, tells_account_token)
      VALUES (gen_random_uuid(), '2026-11-18Z', 'serverApi', '2026-11-18Z', 'Production', '4711', 'gems', '2026-11-18Z',
        true, false)
      """, as: .writer)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    try await shop.nightAudit("verify", exits: [0], says: "except for those that do not count: fact 1 ")
    try await shop.nightAudit("rebuild", exits: [0])
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.transactions WHERE transaction_id = '4711'") == "0")
  }

  /// A cursor after the instant that a run recorded is a difference, in the past as in the future.
  @Test func rebuildComparesAndRepairsCursors() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.execute(
      """
      DELETE FROM night_audit.findings_met;
      INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt)
      VALUES ('game', 'Production', 'REFUND', '2026-11-19Z', '2026-11-20Z'),
        ('game', 'Production', 'REVOKE', now() + interval '1 year', '2026-11-20Z');
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts, read_until)
      VALUES (gen_random_uuid(), now() + interval '2 years', 'sweep', 'game/REVOKE', 'notification', 'verified', 0,
        now() + interval '2 years');
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, outcome, answered_at, last_attempt,
        attempts) VALUES ('receipt', 'forged', '2026-11-18Z', 'verified', '2026-11-19Z', '2026-11-19Z', 1);
      UPDATE night_audit.asking_state SET value = '9000000000000000' WHERE key = 'receipts';
      INSERT INTO night_audit.histories (bundle_id, environment, transaction_id, read_at, last_attempt)
      VALUES ('game', 'Production', '1', '2026-11-19Z', '2026-11-20Z')
      """, as: .writer)
    let later = "is later than what runs read"
    let state = [
      "the cursor of REFUND of game \(later)", "the cursor of REVOKE of game \(later)",
      "the history of transaction 1 of game was last read earlier than its row says",
      "the instant up to which the shop's rows were read (receipts) is later than all runs",
    ]
    let found = try await shop.nightAudit("verify", exits: [70], says: "findings_met of run")
    #expect(found.output.contains(state[0]), "\(found)")
    #expect(found.output.contains("1 proof has an outcome that no answer gives, for example forged"), "\(found)")
    let compared = try await shop.nightAudit("rebuild", exits: [70], says: "findings_met of run")
    let doctor = try await shop.nightAudit("doctor")
    for said in state {
      #expect(compared.output.contains(said) && doctor.output.contains(said), "\(compared)\(doctor)")
    }
    try await shop.nightAudit("rebuild", "--write", exits: [0], says: "All differences are mended.")
    for command in ["verify", "rebuild"] {
      try await shop.nightAudit(command, exits: [0])
    }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings_met") == "1")
    #expect(
      try await shop.value("SELECT outcome FROM night_audit.receipt_checks WHERE subject_id = 'forged'") == "pending")

    // `rebuild` cannot restore an earlier disposition; only a repeated night does.
    try await shop.execute("UPDATE night_audit.order_nights SET disposition = 'in_flight'", as: .writer)
    try await shop.nightAudit("rebuild", "--write", exits: [70], says: "make that night again")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [0, 3])
    try await shop.nightAudit("verify", exits: [0])
  }

  @Test func initSucceedsWithoutRightsIfTheSchemaIsCurrent() async throws {
    let shop = try await Rehearsal.sampleShop()
    let done = try await shop.nightAudit("init")
    #expect(done.status == 0 && done.output == "The schema night_audit is up to date.\n", "\(done)")
    let slip = ["NIGHT_AUDIT_REPORT_TIME_ZON": "Europe/Berlin"]
    let quiet = try await shop.nightAudit("init", "--quiet", environment: slip)
    #expect(quiet.status == 0 && quiet.output == "", "\(quiet)")
    #expect(quiet.errors.contains("NIGHT_AUDIT_REPORT_TIME_ZON is not a setting"), "\(quiet)")
    #expect(quiet.errors.contains("did you mean NIGHT_AUDIT_REPORT_TIME_ZONE?"), "\(quiet)")

    try await shop.execute("DELETE FROM night_audit.schema_migrations WHERE version = 1")
    let outdated = try await shop.nightAudit(
      "init", exits: [78], says: "older than this program, and the role night_audit may not change")
    #expect(outdated.errors.contains("init as night_audit_owner or a superuser"), "\(outdated)")
    try await shop.execute("DROP SCHEMA night_audit CASCADE")
    try await shop.nightAudit("init", exits: [78], says: "is missing, and the role night_audit may not create it")
  }

  @Test func aMemberOfTheOwnerMaintainsTheSchemaWithoutSuperuserRights() async throws {
    let shop = try await Rehearsal.sampleShop()
    let dba = "dba_\(UUID().uuidString.lowercased().prefix(8))"
    let owner = try DatabaseRole.pageStatements()[1].split(separator: "\n").suffix(2).joined(separator: "\n")
      .replacing("TO dba", with: "TO \(dba)")
    try await shop.execute("DROP SCHEMA night_audit CASCADE; CREATE ROLE \(dba) LOGIN; \(owner)")
    let url = ["NIGHT_AUDIT_DATABASE_URL": shop.conninfo.replacing("user=night_audit", with: "user=\(dba)")]
    for _ in 1...2 {
      try await shop.nightAudit("init", environment: url, exits: [0])
    }
    let others = try await shop.value(
      "SELECT count(*) FROM pg_class WHERE relnamespace = 'night_audit'::regnamespace AND relowner <> 'night_audit_owner'::regrole"
    )
    #expect(others == "0")
    #expect(
      try await shop.value("SELECT has_any_column_privilege('night_audit_writer', 'night_audit.evidence', 'INSERT')")
        == "true")
  }
}
