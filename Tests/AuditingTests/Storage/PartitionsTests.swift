import Postgres
import Reconciliation
import Settings
import TestSupport
import Testing

@testable import AuditStore
@testable import Run
@testable import SampleWorlds

@Suite struct PartitionsTests {
  private func with(_ settings: Settings, _ body: @escaping @Sendable (borrowing BlockingConnection) throws -> Void)
    async throws
  {
    try await withBlockingThread { scope in
      try body(try scope.connect(settings.databaseURL, applicationName: "night-audit tests"))
    }
  }

  private func fact(signed: Int64, revoked: Bool = false, token: String? = nil) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: "t", productId: "gems", channel: .serverApi,
      signedDate: Instant(seconds: signed))
    fact.revocation = .stated(revoked ? Revocation(date: Instant(seconds: signed)) : nil)
    fact.appAccountToken = token.map { .stated($0) } ?? .absent
    return fact
  }

  @Test func onlyFactsReplacedByTheSameProofAreRemoved() {
    func statement(_ id: Int64, _ subject: String?, _ fact: TransactionFact, isOld: Bool) -> EvidenceRetention.Statement
    {
      EvidenceRetention.Statement(id: id, subject: subject, fact: fact, isOld: isOld)
    }
    let newer = statement(9, "r", fact(signed: 9), isOld: false)
    // The first fact dates the transaction.
    let first = statement(0, "r", fact(signed: 0), isOld: true)
    #expect(EvidenceRetention.kept([first, statement(1, "r", fact(signed: 1), isOld: true), newer]) == [0])
    // Another proof has only this fact, and would lose its link.
    #expect(EvidenceRetention.kept([statement(1, "s", fact(signed: 1), isOld: true), newer]) == [1])
    // Only the old fact has a field, a revocation that was reversed later, or the later date.
    #expect(EvidenceRetention.kept([statement(1, "r", fact(signed: 1, token: "a"), isOld: true), newer]) == [1])
    #expect(EvidenceRetention.kept([statement(1, "r", fact(signed: 1, revoked: true), isOld: true), newer]) == [1])
    #expect(EvidenceRetention.kept([statement(1, "r", fact(signed: 10), isOld: true), newer]) == [1])
  }

  @Test func partitionsAreCreatedAheadAndRemovedUnchanged() async throws {
    let shop = CrowdedShop(seed: 6)
    let settings = try await shop.load(reports: "/nonexistent", arrival: CrowdedShop.Arrival(seed: 5, nights: 2))
    try await with(settings) { connection in
      try connection.executeScript(
        """
        SET session_replication_role = replica; TRUNCATE night_audit.trail;
        DO $$ DECLARE parent text; BEGIN
          FOREACH parent IN ARRAY ARRAY['evidence', 'answers'] LOOP
            EXECUTE format('ALTER TABLE night_audit.%1$I DETACH PARTITION night_audit.%2$I', parent, parent || '_first');
            EXECUTE format('UPDATE night_audit.%I SET recorded_at = recorded_at - interval ''40 days''', parent || '_first');
            EXECUTE format('ALTER TABLE night_audit.%1$I ATTACH PARTITION night_audit.%2$I FOR VALUES FROM (MINVALUE) TO (%3$L)',
              parent, parent || '_first', date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC');
          END LOOP;
        END $$;
        SELECT night_audit.append_trail('start', NULL);
        SELECT night_audit.append_trail('found', run_id) FROM night_audit.runs ORDER BY started_at, run_id;
        SET session_replication_role = origin;
        """)
      try Partitions.ensure(on: connection)
      try Partitions.ensure(on: connection)
      let before = try connection.execute("SELECT count(*) FROM night_audit.evidence").single().int64(0)
      try connection.executeScript(
        """
        CREATE TEMPORARY TABLE names AS SELECT string_agg(quote_ident(column_name), ', ') AS list
        FROM information_schema.columns WHERE table_schema = 'night_audit' AND table_name = 'evidence'
          AND column_name NOT IN ('evidence_id', 'recorded_at', 'signed_at');
        DO $$ BEGIN
          EXECUTE format('INSERT INTO night_audit.evidence (%1$s, signed_at, recorded_at)
            SELECT %1$s, signed_at + n * interval ''1 second'', now() + (CASE n WHEN 1 THEN 0 ELSE 32 END) * interval ''1 day''
            FROM night_audit.evidence, generate_series(1, 2) n WHERE transaction_id <> ''t1''', (SELECT list FROM pg_temp.names));
        END $$;
        INSERT INTO night_audit.answers (run_id, as_of, recorded_at, subject_kind, subject_id, channel, outcome, facts,
          evidence_through)
        SELECT run_id, as_of, recorded_at, coalesce(subject_kind, 'sweep'), coalesce(subject_id, ''), channel, 'verified', 1,
          evidence_id
        FROM night_audit.evidence WHERE recorded_at >= now()
        """)
      #expect(try Rebuild.run(isRepairing: true, on: connection).transactions > 0)
      let cutoff = try connection.execute(
        "SELECT date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"
      ).single().timestamp(0)
      // A caller cannot release a month that has not ended, or facts that must be kept.
      try Partitions.record(retention: .seconds(1), on: connection)
      for (table, problem) in [
        ("to_char(now() AT TIME ZONE 'UTC', '\"evidence_\"YYYY_MM')", "not over"), ("'evidence_first'", "have to stay"),
      ] {
        let error = #expect(throws: (any Error).self) {
          try connection.transaction { try $0.execute("SELECT night_audit.release_partition(\(table), '{}')") }
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains(problem), "\(table): \(String(describing: error))")
      }
      // A caller cannot release a month within the retention that the schema's owner recorded, either.
      try Partitions.record(retention: .days(400), on: connection)
      #expect(throws: (any Error).self) {
        try Partitions.release(before: Instant(microseconds: cutoff), on: connection)
      }
      try Partitions.record(retention: .seconds(1), on: connection)
      let released = try Partitions.release(before: Instant(microseconds: cutoff), on: connection)
      #expect(released.contains("evidence_first") && released.contains("answers_first"), "\(released)")
      let after = try connection.execute("SELECT count(*) FROM night_audit.evidence").single().int64(0)
      #expect(after < before * 3 && after >= before, "\(before) then \(after)")
      #expect(try Rebuild.run(isRepairing: false, on: connection).agrees)
      #expect(try Partitions.release(before: Instant(microseconds: cutoff), on: connection) == [])
    }
  }
}
