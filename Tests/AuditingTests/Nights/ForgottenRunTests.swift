import Foundation
import Postgres
import Reconciliation
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run

/// A forgotten run leaves findings, decisions and dates as if it had never been made.
@Suite struct ForgottenRunTests {
  private func makeAgain(_ night: Int, on connection: borrowing BlockingConnection) throws -> String {
    try connection.execute(
      """
      INSERT INTO night_audit.runs (run_id, command, as_of, started_at, period_since, period_until, time_zone,
        configuration, is_nightly, host, version)
      SELECT gen_random_uuid(), command, as_of, started_at + interval '1 hour', period_since, period_until, time_zone,
        configuration, is_nightly, host, version
      FROM night_audit.runs WHERE run_id = $1::uuid RETURNING run_id::text
      """, [.text(StoredNights.runs[night])]
    ).single().text(0)
  }

  /// An entry for each run, which covers all its events.
  private func entries(_ connection: borrowing BlockingConnection) throws -> [TrailEntry.Content] {
    let runs = try connection.execute(
      "SELECT DISTINCT run_id::text FROM night_audit.finding_events WHERE run_id IS NOT NULL")
    return try runs.map { row throws(PostgresError) in
      TrailEntry.Content(
        entry: 1, kind: .completed, run: try row.text(0), at: "", appended: [], columns: [:],
        marks: ["finding_events": .max])
    }
  }

  private func proof(_ connection: borrowing BlockingConnection) throws -> TrailVerification.Check {
    try FindingsTrail.prove(by: entries(connection), on: connection)
  }

  private func mend(_ connection: borrowing BlockingConnection) throws {
    try connection.transaction { try FindingsTrail.mend(by: entries($0), on: $0) }
  }

  private func provenFindings(_ connection: borrowing BlockingConnection) throws -> [String] {
    #expect(try proof(connection).problem == nil)
    return try connection.texts(
      """
      SELECT concat_ws(' ', finding_id, status, 'closed ' || extract(day FROM closed_at - $1::timestamptz)::int)
      FROM night_audit.findings ORDER BY finding_id
      """, [.timestamp(StoredNights.asOf.microseconds)])
  }

  /// A finding that the first run closed and the repetition found again was never closed.
  @Test func aRepeatedNightKeepsDecisionsAboutFindings() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["stays": "x", "slips": "x"])
      _ = try FindingChange.apply(
        [FindingChange(findingId: "slips", decision: .status(.acknowledged))], by: "anna", at: StoredNights.asOf,
        on: connection
      )
      try connection.apply(1, ["stays": "x", "wrong": "x"])
      let first = try provenFindings(connection)
      #expect(first == ["slips acknowledged closed 1", "stays open", "wrong open"])
      let again = try makeAgain(1, on: connection)
      try connection.apply(1, ["stays": "x", "slips": "x"], by: again)
      #expect(try provenFindings(connection) == ["slips acknowledged", "stays open", "wrong open closed 1"])
      let events = try connection.texts(
        """
        SELECT concat_ws(' ', event, run_id = $1::uuid) FROM night_audit.finding_events
        WHERE finding_id = 'slips' ORDER BY event_id
        """, [.text(again)])
      #expect(events == ["opened f", "status", "closed f", "kept_open t"])
      try connection.forget(again)
      #expect(try provenFindings(connection) == first)
      try connection.forget(StoredNights.runs[1])
      #expect(try provenFindings(connection) == ["slips acknowledged", "stays open"])
    }
  }

  private func decide(_ decision: FindingDecision, on connection: borrowing BlockingConnection) throws {
    _ = try FindingChange.apply(
      [FindingChange(findingId: "x", decision: decision)], by: "anna", at: StoredNights.asOf, on: connection)
  }

  @Test func findingsFollowTheirEventsAfterTwoForgottenRuns() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["x": "x"])
      for decision in [FindingDecision.status(.acknowledged), .owner("anna"), .remark("mine")] {
        try decide(decision, on: connection)
      }
      #expect(try provenFindings(connection) == ["x acknowledged"])
      try connection.forget(StoredNights.runs[0])
      #expect(try provenFindings(connection) == [])
      try connection.apply(1, ["x": "x"])
      try decide(.remark("seen"), on: connection)
      try connection.apply(2, [:])
      #expect(try provenFindings(connection) == ["x open closed 2"])
      try connection.forget(StoredNights.runs[2])
      #expect(try provenFindings(connection) == ["x open"])
      for change in ["closed_at = last_seen", "first_seen = first_seen - interval '1 day'", "owner = 'cfo'"] {
        try connection.execute("UPDATE night_audit.findings SET \(change)")
        #expect(try proof(connection).problem != nil, "\(change)")
        try connection.execute(
          "UPDATE night_audit.findings SET closed_at = NULL, first_seen = $1, owner = NULL",
          [.timestamp(StoredNights.asOf(1).microseconds)])
      }
      #expect(try provenFindings(connection) == ["x open"])
      try connection.execute("DELETE FROM night_audit.findings")
      #expect(try proof(connection).problem != nil)
    }
  }

  /// Who runs nights can mark a run as forgotten without taking it back.
  @Test func theRepairTakesBackARunThatIsOnlyMarkedAsForgotten() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["stays": "x", "slips": "x"])
      try connection.apply(1, ["stays": "x", "wrong": "x"])
      try connection.execute(
        "SELECT night_audit.write_run($1::uuid, jsonb_build_object('publication', 'forgotten'))",
        [.text(StoredNights.runs[1])])
      #expect(try proof(connection).problem != nil)
      try mend(connection)
      #expect(try provenFindings(connection) == ["slips open", "stays open"])
    }
  }

  /// Otherwise the decisions on removed findings would count for the findings of the next night, which have none.
  @Test func findingsFoundAfterSuchARepairFollowTheirEvents() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["x": "x"])
      for decision in [FindingDecision.status(.acknowledged), .owner("anna")] { try decide(decision, on: connection) }
      try connection.execute(
        "SELECT night_audit.write_run($1::uuid, jsonb_build_object('publication', 'forgotten'))",
        [.text(StoredNights.runs[0])])
      try mend(connection)
      #expect(try provenFindings(connection) == [])
      try connection.apply(1, ["x": "x"])
      #expect(try provenFindings(connection) == ["x open"])
    }
  }

  @Test func theRepairRestoresDecisionsFromTheirEvents() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["x": "x"])
      for decision in [FindingDecision.status(.acknowledged), .owner("anna")] { try decide(decision, on: connection) }
      for change in ["status = 'open', owner = NULL", "first_seen = first_seen - interval '1 day'"] {
        try connection.execute("UPDATE night_audit.findings SET \(change)")
        #expect(try proof(connection).problem != nil, "\(change)")
        try mend(connection)
        #expect(try provenFindings(connection) == ["x acknowledged"], "\(change)")
      }
      // A status that no person can have decided does not count.
      try connection.execute(
        """
        INSERT INTO night_audit.finding_events (finding_id, as_of, event, actor, detail)
        VALUES ('x', $1, 'status', 'mallory', 'nonsense')
        """, [.timestamp(StoredNights.asOf.microseconds)])
      #expect(try provenFindings(connection) == ["x acknowledged"])
      // A removed row has lost its texts: the next night writes them, and the repair restores the decisions.
      try connection.execute("DELETE FROM night_audit.findings")
      try mend(connection)
      let remedy = try FindingsTrail.compare(by: entries(connection), on: connection).remedy
      #expect(remedy?.contains("night-audit run --as-of \(StoredNights.asOf.text)") == true, "\(remedy ?? "")")
      try connection.apply(1, ["x": "x"])
      try mend(connection)
      #expect(try provenFindings(connection) == ["x acknowledged"])
      #expect(try connection.texts("SELECT owner FROM night_audit.findings") == ["anna"])
    }
  }

  @Test func aRepeatedNightContinuesFromThePreviousRun() async throws {
    try await StoredNights.with { connection in
      try connection.apply(0, ["stays": "x"], isSaved: true)
      let again = try makeAgain(0, on: connection)
      #expect(try ForgottenRun.newest(after: StoredNights.runs[0], on: connection) == nil)
      try connection.execute(
        "INSERT INTO night_audit.findings_met (run_id, as_of) VALUES ($1::uuid, $2)",
        [.text(again), .timestamp(StoredNights.asOf.microseconds)])
      #expect(try ForgottenRun.newest(after: StoredNights.runs[0], on: connection) == again)
      #expect(try ForgottenRun.newest(after: again, on: connection) == nil)
    }
  }

  @Test func forgettingAFutureRunKeepsAppleDates() async throws {
    try await StoredNights.with { connection in
      try connection.executeScript(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version)
        VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d1f', 'run', '2126-01-01T03:00Z', '2125-12-31', '2125-12-31', 'UTC', '',
          true, 'host', '1');
        INSERT INTO night_audit.transactions (environment, transaction_id, product_id, revocation_told_at,
          tells_account_token, is_contradictory, channel, signed_at, checked_at, renewal_at, first_signed_at,
          subscription_status_at)
        VALUES ('Production', 't1', 'gems', '2126-02-01T00:00Z', false, false, 'serverApi', '2126-02-01T00:00Z', '2126-01-01T03:00Z',
          '2126-02-01T00:00Z', '2126-02-01T00:00Z', '2126-02-01T00:00Z');
        INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, last_attempt, due_from, due_until)
        VALUES ('receipt', 'r1', '2125-12-31T00:00Z', '2126-01-01T03:00Z', '2126-01-02T03:00Z', '2126-02-01T00:00Z');
        """)
      try connection.forget("6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d1f")
      let row = try connection.execute(
        """
        SELECT ARRAY[t.renewal_at, t.first_signed_at, t.subscription_status_at, t.signed_at, c.due_until]
            = array_fill('2126-02-01T00:00Z'::timestamptz, ARRAY[5]),
          ARRAY[t.checked_at, c.last_attempt, c.due_from - interval '1 day'] = array_fill(r.started_at, ARRAY[3])
        FROM night_audit.transactions t, night_audit.receipt_checks c, night_audit.runs r
        WHERE r.publication = 'forgotten'
        """
      ).single()
      #expect(try row.bool(0), "dates by Apple and the shop are unchanged")
      #expect(try row.bool(1), "dates by the run are replaced by its start")
    }
  }

  /// A run with both clocks ahead starts after its as-of like any other run. Its dates are replaced by the instant at
  /// which it is forgotten.
  @Test func forgettingARunWithAClockAheadCorrectsItsDates() async throws {
    try await StoredNights.with { connection in
      let (ahead, run) = (Instant(seconds: 4_922_910_000), "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d1f")
      try connection.execute(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, started_at, period_since, period_until, time_zone,
          configuration, is_nightly, host, version)
        VALUES ($1::uuid, 'run', $2, $2 + interval '1 second', '2125-12-31', '2125-12-31', 'UTC', '', true, 'host', '1')
        """, [.text(run), .timestamp(ahead.microseconds)])
      var random = SeededGenerator(seed: 3)
      var answer = fact("t1", at: StoredNights.asOf, using: &random)
      answer.channel = .serverApi
      try store([answer], runId: run, asOf: ahead, on: connection)
      try connection.execute(
        """
        INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, last_attempt, due_from)
        VALUES ('receipt', 'r1', $1, $2, $2 + interval '7 days')
        """, [.timestamp(StoredNights.asOf.microseconds), .timestamp(ahead.microseconds)])
      try connection.execute(
        """
        INSERT INTO night_audit.asking_state (key, value)
        VALUES ('definition', 'x'), ('orders', $1::text), ('all', $1::text), ('receipts', $2::text)
        """, [.int(ahead.microseconds), .int(StoredNights.asOf.microseconds)])
      try connection.forget(run)
      let row = try connection.execute(
        """
        SELECT t.checked_at <= clock_timestamp(), (c.last_attempt, c.due_from) = (t.checked_at, t.checked_at + interval '7 days'),
          (SELECT string_agg(key, ' ' ORDER BY key) FROM night_audit.asking_state)
        FROM night_audit.transactions t, night_audit.receipt_checks c
        """
      ).single()
      #expect(try row.bool(0), "the answer is dated in the past")
      #expect(try row.bool(1), "the check is due a week after the answer")
      #expect(try row.text(2) == "definition receipts", "all rows are read again")
      let rebuilt = try Rebuild.run(isRepairing: false, on: connection)
      #expect(rebuilt.agrees && rebuilt.transactions == 1, "\(rebuilt)")
    }
  }

  /// Stores facts with the answer that contained them, and folds them.
  private func store(
    _ facts: [TransactionFact], runId: String, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws {
    try connection.transaction { connection in
      try EvidenceTable.append(facts.map { (subject: nil, fact: $0) }, runId: runId, asOf: asOf, on: connection)
      try connection.execute(
        """
        INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts,
          evidence_through)
        SELECT $1::uuid, $2, 'sweep', 'game/REFUND', 'notification', 'verified', 1, max(evidence_id)
        FROM night_audit.evidence
        """, [.text(runId), .timestamp(asOf.microseconds)])
      let records = try EvidenceTable.fold(facts, on: connection)
      try TransactionTable.upsert(records, checkedAt: asOf, unasked: facts.unasked, on: connection)
    }
  }

  @Test func newFactsFoldIntoStoredTransactions() async throws {
    try await StoredNights.with { connection in
      var random = SeededGenerator(seed: 15)
      for night in 0..<4 {
        let facts = (0..<60).map { number in
          fact("t\(random.number(0...20))", at: StoredNights.asOf(night) + .minutes(Int64(number)), using: &random)
        }
        for batch in stride(from: 0, to: facts.count, by: 15).map({ Array(facts[$0..<$0 + 15]) }) {
          try store(batch, runId: StoredNights.runs[night], asOf: StoredNights.asOf(night), on: connection)
        }
      }
      let rebuilt = try Rebuild.run(isRepairing: false, on: connection)
      #expect(rebuilt.agrees && rebuilt.transactions == 21, "\(rebuilt)")
    }
  }

  private func fact(_ id: String, at signed: Instant, using random: inout SeededGenerator) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: random.oneIn(12) ? "coins" : "gems",
      channel: random.pick(.verifyReceipt, .serverApi, .offline, .notification), signedDate: signed)
    fact.bundleId = random.oneIn(20) ? "com.example.other" : "com.example.game"
    fact.quantity = random.pick(nil, 1, 2)
    fact.purchaseDate = random.oneIn(2) ? StoredNights.asOf - .days(Int64(random.number(0...9))) : nil
    fact.originalTransactionId = random.pick("t0", "t1", nil)
    if random.oneIn(3) { fact.expiresDate = signed + .days(Int64(random.number(1...30))) }
    if random.oneIn(4) { fact.subscriptionStatus = random.pick(.active, .expired, .gracePeriod) }
    if random.oneIn(4) { fact.renewalDate = signed + .days(30) }
    fact.revocation =
      random.oneIn(9) ? .stated(Revocation(date: signed - .hours(1))) : random.pick(.absent, .stated(nil))
    if random.oneIn(20) {
      fact.revocation = .stated(Revocation(date: signed - .hours(2), percentage: 30_000, type: "REFUND_PRORATED"))
    }
    fact.reversesRefund = fact.revocation == .stated(nil) && random.oneIn(6)
    fact.cannotStateRefunds = fact.revocation == .absent && random.oneIn(3)
    if random.oneIn(3) { fact.appAccountToken = .stated(random.pick(nil, "aaaa")) }
    fact.ownership = random.pick(nil, .purchased, .familyShared)
    fact.originalPurchaseDate = random.oneIn(3) ? StoredNights.asOf - .days(Int64(random.number(5...9))) : nil
    (fact.isRenewal, fact.hasOffer) = (random.pick(nil, true, false), random.pick(nil, true, false))
    fact.priceMilliunits = random.pick(nil, 990, 4_990)
    fact.currency = random.pick(nil, "USD")
    fact.details.storefront = random.pick(nil, "DEU")
    return fact
  }
}
