import AuditStore
import Foundation
import Testing

/// Attacks by a member of `night_audit_writer`. Each is refused, or reported by `verify` until the next night.
@Suite struct WriterAttackTests {
  private func expectRefused(_ statements: [String], in shop: Rehearsal) async {
    for statement in statements {
      await #expect(throws: (any Error).self, "\(statement)") { try await shop.execute(statement, as: .writer) }
    }
  }

  /// `verify`, `rebuild` and `doctor` have no problem.
  private func expectSound(_ shop: Rehearsal) async throws {
    for command in ["verify", "rebuild", "doctor"] {
      try await shop.nightAudit(command, exits: [0])
    }
  }

  @Test func theEncodingAndQuotingOfASessionChangeNoDigest() async throws {
    let shop = try await Rehearsal.auditedShop()
    try await shop.execute(
      """
      SET client_encoding = 'LATIN1'; SET quote_all_identifiers = on;
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
      SELECT run_id, as_of, 'receipt', chr(233), 'serverApi', 'unanswered', 0 FROM night_audit.runs;
      SELECT night_audit.cover_answers(run_id) FROM night_audit.runs
      """, as: .writer)
    #expect(
      try await shop.value(
        "SELECT count(*) FROM night_audit.trail WHERE content::jsonb ->> 'kind' = 'asked' AND content LIKE '%answers%'")
        != "0")
    try await shop.nightAudit("verify", exits: [0])
  }

  private static let beginning = """
    INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration, is_nightly,
      host, version)
    """

  /// Dates that no run can read, faults of no instant, and events of nobody.
  @Test func rowsThatNoRunWritesAreRefused() async throws {
    let shop = try await Rehearsal.auditedShop()
    var statements = [
      ("infinity", "2026-11-19"), ("-infinity", "2026-11-19"), ("294276-12-31", "2026-11-19"),
      ("2026-11-20", "infinity"),
    ].map { asOf, day in
      "\(Self.beginning) VALUES (gen_random_uuid(), 'run', '\(asOf)', '\(day)', '\(day)', 'UTC', '', true, 'h', '1')"
    }
    statements.append(
      "SELECT night_audit.write_run(run_id, '{\"finished_at\": \"infinity\"}') FROM night_audit.runs")
    for column in ["as_of", "signed_at", "purchased_at", "expires_at", "revoked_at", "renewal_at"] {
      var dates = ["as_of": "now()", "signed_at": "now()"]
      dates[column] = "'-infinity'"
      let columns = dates.sorted { $0.key < $1.key }
      statements.append(
        """
        INSERT INTO night_audit.evidence (run_id, channel, environment, transaction_id, product_id, tells_revocation,
          tells_account_token, \(columns.map(\.key).joined(separator: ", ")))
        VALUES (gen_random_uuid(), 'serverApi', 'Production', '4711', 'gems', true, false,
          \(columns.map(\.value).joined(separator: ", ")))
        """)
    }
    for dates in ["'infinity', NULL", "now(), 'infinity'"] {
      statements.append(
        """
        INSERT INTO night_audit.answers (run_id, subject_kind, subject_id, channel, outcome, facts, as_of, read_until)
        VALUES (gen_random_uuid(), 'sweep', 'game/REFUND', 'notification', 'verified', 0, \(dates))
        """)
    }
    statements.append(
      "INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor) VALUES ('x', 'infinity', 'owner', 'Ana')"
    )
    statements += ["oops", "", "1e9", "9223372036854775808", "-999999999999999999"].map { subject in
      """
      INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts, progress)
      SELECT run_id, as_of, 'faults', '\(subject)', 'night-audit', 'noted', 0, 'x' FROM night_audit.runs
      """
    }
    let events = [
      "opened", "reopened", "kept_open", "changed", "closed", "forgotten", "returned", "owner", "status", "remark",
    ]
    statements += events.map { Self.event($0, run: "NULL", digest: "NULL") }
    statements.append(Self.event("status", run: "r.run_id", digest: "NULL"))
    await expectRefused(statements, in: shop)
    try await expectSound(shop)
    // A refused instant in a row that may change is mended.
    try await shop.execute(
      "UPDATE night_audit.asking_state SET value = 'oops' WHERE key IN ('receipts', 'orders')", as: .writer)
    try await shop.nightAudit("rebuild", "--write", exits: [0])
    try await expectSound(shop)
  }

  @Test func aRunOfTheFutureDoesNotExcuseACursor() async throws {
    let shop = try await Rehearsal.auditedShop()
    let run = UUID().uuidString.lowercased()
    try await shop.execute(
      """
      \(Self.beginning) VALUES ('\(run)', 'run', '9000-01-01', '2026-11-19', '2026-11-19', 'UTC', '', false, 'h', '1');
      UPDATE night_audit.asking_state SET value = '90000000000000000' WHERE key = 'receipts'
      """, as: .writer)
    let found = try await shop.nightAudit("verify")
    #expect(
      found.status == 70 && found.output.contains("(receipts) is later than all runs")
        && found.output.contains("of which run \(run) has an as-of in the future"), "\(found)")
    try await shop.nightAudit("rebuild", "--write", exits: [0])
    try await expectSound(shop)
    for command in [["status"], ["runs", "list"], ["runs", "forget", run]] {
      let result = try await shop.nightAudit(more: command)
      #expect(result.status != 78 && result.status != 70, "\(command): \(result)")
    }
  }

  /// An entry about removed folders would explain a folder that somebody took away.
  @Test func theRemovalOfAReportWithinItsRetentionIsNotRecorded() async throws {
    let shop = try await Rehearsal.auditedShop()
    let removed = "SELECT night_audit.record_removed('{2026-11-19,\"\"}') = '{}'"
    #expect(try await shop.value(removed, as: .writer) == "true")
    for retention in ["NULL", "'200 years'"] {
      try await shop.execute(
        "DELETE FROM night_audit.retention; INSERT INTO night_audit.retention VALUES (NULL, \(retention))")
      #expect(try await shop.value(removed, as: .writer) == "true", "\(retention)")
    }
    #expect(try await shop.value("SELECT count(*) FROM night_audit.trail WHERE content LIKE '%\"removed\"%'") == "0")
    try FileManager.default.removeItem(atPath: shop.reports + "/2026-11-19")
    try await shop.nightAudit("verify", "--run", "latest", exits: [70], says: "is missing")
  }

  /// Columns of an event that a run could have recorded for the first finding.
  private static func event(_ event: String, run: String, asOf: String = "r.as_of", digest: String = "'x'") -> String {
    """
    INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, digest)
    SELECT f.finding_id, \(asOf), \(run), '\(event)', \(digest) FROM night_audit.runs r,
      (SELECT min(finding_id) AS finding_id FROM night_audit.findings) f
    """
  }

  /// An event of an unknown run, of another as-of, or from after the run's entry is reported and does not count.
  @Test func aForgedEventOfARunDoesNotCount() async throws {
    let shop = try await Rehearsal.auditedShop()
    for (run, asOf) in [
      ("gen_random_uuid()", "r.as_of"), ("r.run_id", "r.as_of - interval '1 hour'"), ("r.run_id", "r.as_of"),
    ] {
      for event in ["opened", "changed", "closed", "forgotten", "returned"] {
        try await shop.execute(Self.event(event, run: run, asOf: asOf), as: .writer)
      }
    }
    try await shop.execute(
      """
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, digest)
      VALUES ('dead', now(), gen_random_uuid(), 'opened', 'x')
      """, as: .writer)
    try await shop.nightAudit("verify", exits: [0], says: "does not count, because no run recorded it")
    try await expectSound(shop)
  }

  @Test func aForgedEventDoesNotProveAChangedFinding() async throws {
    let shop = try await Rehearsal.auditedShop()
    let first = "finding_id = (SELECT min(finding_id) FROM night_audit.findings)"
    let digest = try await shop.value(
      "SELECT digest FROM night_audit.finding_events WHERE digest IS NOT NULL AND \(first)")
    for change in ["at_stake = 0, reason = 'x'", "closed_at = last_seen", "status = 'closed'"] {
      try await shop.execute("CREATE TABLE public.kept AS SELECT * FROM night_audit.findings")
      try await shop.execute("UPDATE night_audit.findings SET \(change) WHERE \(first)", as: .writer)
      let forged = try await shop.value(
        "SELECT \(FindingsTrail.digest("f")) FROM night_audit.findings f WHERE \(first)")
      #expect(change.hasPrefix("at_stake") == (forged != digest), "\(change)")
      for run in ["gen_random_uuid()", "r.run_id"] {
        for event in ["changed", "closed", "forgotten"] {
          try await shop.execute(Self.event(event, run: run, digest: "'\(forged)'"), as: .writer)
        }
      }
      try await shop.nightAudit("verify", exits: [70], says: "differs from its events")
      try await shop.execute(
        "DELETE FROM night_audit.findings; INSERT INTO night_audit.findings SELECT * FROM public.kept; DROP TABLE public.kept"
      )
    }
    // A night writes what it finds, whatever was forged.
    try await shop.execute("UPDATE night_audit.findings SET reason = 'x'", as: .writer)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [0, 3])
    try await expectSound(shop)
  }

  /// Claims and results of tie-outs belong to no run, and the next run that writes them covers them again.
  @Test func changedClaimsAndTieOutsAreDetected() async throws {
    let shop = try await Rehearsal.auditedShop()
    #expect(try await shop.value("SELECT count(*) FROM night_audit.claims") != "0")
    for (change, table) in [
      ("UPDATE night_audit.claims SET order_id = order_id || 'x'", "claims"),
      (
        "INSERT INTO night_audit.tie_out_periods (fiscal_period, currency, as_of) VALUES ('2026-11', 'USD', now())",
        "tie_out_periods"
      ),
    ] {
      try await shop.execute(change, as: .writer)
      try await shop.nightAudit("verify", exits: [70], says: "night_audit.\(table) is not as entry")
      if table == "claims" {
        // A narrowed run writes no claims, and does not cover what it did not write.
        _ = try await shop.nightAudit("run", "--as-of", "2026-11-20T04:00:00Z", "--user", "x", "--offline")
        try await shop.nightAudit("verify", exits: [70])
        try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z", exits: [0, 3])
      } else {
        await expectRefused(["SELECT night_audit.cover_tie_outs()"], in: shop)
        try await shop.nightAudit("verify", exits: [70])
        try await shop.execute("DELETE FROM night_audit.tie_out_periods", as: .writer)
      }
      try await shop.nightAudit("verify", exits: [0])
    }
  }
}
