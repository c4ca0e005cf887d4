import Foundation
import Postgres
import Reconciliation
import Reporting
import SalesStore
import TestSupport
import Testing

@testable import AuditStore
@testable import Run
@testable import SampleWorlds

/// A database that the first release has filled becomes one of this release, and nothing of it is lost.
@Suite struct UpgradeTests {
  /// A row in every table of the first release, as that program wrote them.
  private static let first = """
    INSERT INTO night_audit.runs (run_id, command, as_of, started_at, finished_at, period_since, period_until, time_zone,
      configuration, is_nightly, host, version, complete, orders_read, findings_opening, findings_new, findings_closed,
      findings_closing, directory, exit_status)
    VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'run', '2026-11-19T03:00Z', '2026-11-19T03:00Z', '2026-11-19T03:20Z',
      '2026-11-18', '2026-11-18', 'UTC', 'c', true, 'here', '1.0.0', true, 3, 0, 4, 0, 4, '/reports/2026-11-18', 0);
    INSERT INTO night_audit.run_totals VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'USD', 'settled', 2, 19.80);
    INSERT INTO night_audit.reported_days VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', '2026-11-18', 'UTC');
    INSERT INTO night_audit.reported_totals
      VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', '2026-11-18', 'USD', 'settled', 2, 19.80);
    INSERT INTO night_audit.dispatches (run_id, target, directory, state)
      VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'finance', '/reports/2026-11-18', 'owed');
    INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, app, payload_kind, outcome,
      reason, channel, environment, bundle_id, attempts, last_attempt, next_attempt, answered_at, signed_transaction_id,
      brought_count, is_urgent, leased_by, leased_until)
    VALUES
      ('receipt', '17', '18', '2026-11-18T12:00Z', 'game', 'signed', 'verified', NULL, 'serverApi', 'Production',
        'com.example.game', 1, '2026-11-19T03:00Z', NULL, '2026-11-19T03:00Z', 't1', 1, true, NULL, NULL),
      ('receipt', 'r2', '17', '2026-11-18T13:00Z', 'game', NULL, 'unanswered', 'unreachable', 'serverApi', NULL, NULL, 2,
        '2026-11-19T03:00Z', '2026-11-19T04:00Z', NULL, NULL, 0, true, '6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', now()),
      ('lookup', 'com.example.game/t9', NULL, '2026-11-18T12:00Z', 'game', NULL, 'not_found', NULL, 'serverApi', NULL, NULL,
        1, '2026-11-19T03:00Z', '2026-11-19T23:00Z', '2026-11-19T03:00Z', NULL, 0, true, NULL, NULL);
    INSERT INTO night_audit.lookups VALUES ('19', 'com.example.game/t9');
    INSERT INTO night_audit.evidence (run_id, as_of, recorded_at, subject_kind, subject_id, channel, signed_at, environment,
      transaction_id, original_transaction_id, bundle_id, product_id, product_type, quantity, purchased_at,
      original_purchased_at, tells_revocation, price_milliunits, currency, tells_account_token, ownership, is_renewal)
    VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', '2026-11-19T03:00Z', '2026-11-19T03:05Z', 'receipt', '17', 'serverApi',
      '2026-11-19T03:05Z', 'Production', 't1', 't1', 'com.example.game', 'gems.100', 'Consumable', 1, '2026-11-18T12:00Z',
      '2026-11-18T12:00Z', true, 9900, 'USD', true, 'PURCHASED', false);
    INSERT INTO night_audit.transactions (environment, transaction_id, order_id, original_transaction_id, bundle_id,
      product_id, product_type, quantity, purchased_at, original_purchased_at, price_milliunits, currency, tells_revocation,
      tells_account_token, ownership, is_renewal, is_contradictory, channel, signed_at, checked_at)
    VALUES ('Production', 't1', '18', 't1', 'com.example.game', 'gems.100', 'Consumable', 1, '2026-11-18T12:00Z',
      '2026-11-18T12:00Z', 9900, 'USD', true, true, 'PURCHASED', false, false, 'serverApi', '2026-11-19T03:05Z',
      '2026-11-19T03:00Z');
    INSERT INTO night_audit.receipt_transactions VALUES ('receipt', '17', 'Production', 't1', '18', false);
    -- The first release took an app receipt's silence for a word, and verifyReceipt's dates.
    INSERT INTO night_audit.evidence (run_id, as_of, recorded_at, subject_kind, subject_id, channel, signed_at, environment,
      transaction_id, original_transaction_id, bundle_id, product_id, purchased_at, original_purchased_at, tells_revocation,
      tells_account_token, is_renewal)
    SELECT '6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', timestamptz '2026-11-19T03:00Z', timestamptz '2026-11-19T03:05Z',
      'receipt', '17', channel, timestamptz '2026-11-19T03:05Z', 'Production', id, 't1', 'com.example.game', 'gems.100',
      timestamptz '2026-11-18T12:00Z', timestamptz '2026-11-10T12:00Z', false, false, is_renewal
    FROM (VALUES ('t2', 'offline', false), ('t3', 'verifyReceipt', true), ('t4', 'offline', true))
      AS told (id, channel, is_renewal);
    INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
      purchased_at, original_purchased_at, tells_revocation, tells_account_token, is_renewal, is_contradictory, channel,
      signed_at, checked_at)
    SELECT environment, transaction_id, original_transaction_id, bundle_id, product_id, purchased_at,
      original_purchased_at, false, false, is_renewal, false, channel, signed_at, as_of
    FROM night_audit.evidence WHERE transaction_id <> 't1';
    -- It did not know of refunds of some items.
    UPDATE night_audit.evidence SET tells_revocation = true, revoked_at = '2026-11-18T20:00Z' WHERE transaction_id = 't3';
    UPDATE night_audit.transactions SET tells_revocation = true, revoked_at = '2026-11-18T20:00Z' WHERE transaction_id = 't3';
    INSERT INTO night_audit.receipt_transactions
    SELECT 'receipt', '17', 'Production', transaction_id, '18', false FROM night_audit.evidence WHERE transaction_id <> 't1';
    INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
      VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', '2026-11-19T03:00Z', 'receipt', '17', 'serverApi', 'verified', 1);
    INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, swept_until, last_attempt)
      VALUES ('com.example.game', 'Production', 'REFUND', '2026-11-19T03:00Z', '2026-11-19T03:00Z');
    INSERT INTO night_audit.sweeps (bundle_id, environment, notification_type, last_attempt, reason, window_start,
        window_end, pagination_token)
      VALUES ('com.example.game', 'Production', 'DID_RENEW', '2026-11-19T03:00Z', 'unfinished', '2026-08-01T03:00Z',
        '2026-11-19T03:00Z', 'page 7');
    INSERT INTO night_audit.histories (bundle_id, environment, transaction_id, revision, read_at, last_attempt)
      VALUES ('com.example.game', 'Production', 't1', 'rev', '2026-11-19T03:00Z', '2026-11-19T03:00Z');
    INSERT INTO night_audit.findings (finding_id, kind, severity, subject, order_id, user_id, product_id, transaction_id,
      receipt_id, delivery_id, currency, amount, at_stake, reason, first_seen, opened_at, last_seen, status, owner, remark)
    VALUES
      ('f-order', 'delivered_not_paid', 'critical', '17', '17', 'u', 'gems.100', NULL, NULL, NULL, 'USD', 9.90, 9.90, 'x',
        '2026-11-10T03:00Z', '2026-11-10T03:00Z', '2026-11-19T03:00Z', 'acknowledged', 'Ana', 'looked at'),
      ('f-receipt', 'bad_row', 'minor', '17', '18', NULL, NULL, NULL, '17', NULL, NULL, NULL, NULL, 'x',
        '2026-11-10T03:00Z', '2026-11-10T03:00Z', '2026-11-19T03:00Z', 'open', NULL, NULL),
      ('f-delivery', 'orphan_delivery', 'major', '17', NULL, 'u', 'gems.100', NULL, NULL, '17', NULL, NULL, NULL, 'x',
        '2026-11-10T03:00Z', '2026-11-10T03:00Z', '2026-11-19T03:00Z', 'open', NULL, NULL),
      ('f-transaction', 'orphan_payment', 'critical', '17', NULL, NULL, 'gems.100', '17', NULL, NULL, 'USD', 9.90, 9.90,
        'x', '2026-11-10T03:00Z', '2026-11-10T03:00Z', '2026-11-19T03:00Z', 'open', NULL, NULL);
    INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event, actor, detail)
    SELECT finding_id, timestamptz '2026-11-10T03:00Z', uuid '6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'opened', NULL, NULL
      FROM night_audit.findings
    UNION ALL SELECT 'f-order', timestamptz '2026-11-11T09:00Z', NULL, 'acknowledged', 'Ana', NULL;
    """

  /// An order that still is what the first release found: goods, and no proof of payment.
  private static let shop = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      VALUES ('17', 'u', 'gems.100', 1, 9.90, 'USD', 'verified', '2026-11-09T12:00Z', '2026-11-09T12:00Z');
    INSERT INTO sales.deliveries VALUES ('d', '17', 'u', 'gems.100', 1, '2026-11-09T12:00Z', NULL);
    """

  /// One character that such a database lacks would end every night; the shop's own may stay as it is.
  @Test func aDatabaseThatLacksCharactersIsRefused() async throws {
    for (encoding, isTaken) in [("LATIN1", false), ("SQL_ASCII", true)] {
      let cluster = try await PrivatePostgres.start(encoding: encoding)
      let database = try await cluster.createDatabase()
      try await withBlockingThread { scope in
        let connection = try scope.connect(database, applicationName: "night-audit tests")
        for step in [{ _ = try Migrator.migrate($0) }, Migrator.requireCurrent]
          as [(borrowing BlockingConnection) throws -> Void]
        {
          do {
            try step(connection)
            #expect(isTaken, "\(encoding)")
          } catch let error as SchemaError {
            #expect(!isTaken && error.exitStatus == .configuration)
            #expect("\(error)".contains("LATIN1") && "\(error)".contains("database.salesUrl"), "\(error)")
          }
        }
      }
    }
  }

  @Test func nothingIsLostAndFindingsAreKeptUnderTheirNewNames() async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.channel = .verifyReceipt
    settings.formats = [.csv]
    let database = settings.databaseURL
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      try SalesSchema.create("sales", connection)
      #expect(try Migrator.migrate(connection, through: 5).count == 5)
      // A schema of another release is refused until it is upgraded.
      #expect((try? Migrator.requireCurrent(connection)) == nil)
      try connection.executeScript(Self.first + Self.shop)
      let tables = try Self.counts(connection)
      #expect(tables.count == 15 && tables.values.allSatisfy { $0 > 0 }, "\(tables)")

      #expect(try Migrator.migrate(connection).count == Migrator.migrations.count - 5)
      #expect(try Migrator.migrate(connection) == [])
      try Migrator.requireCurrent(connection)
      let after = try Self.counts(connection)
      for (table, count) in tables { #expect(after[table] == count, "\(table)") }

      // Four findings about things with the id 17 are four; what people made of them stays.
      let subjects: [(FindingKind, Subject)] = [
        (.deliveredNotPaid, .order("17")), (.badRow, .receipt("17")), (.orphanDelivery, .delivery("17")),
        (.orphanPayment, .transaction("17")),
      ]
      for (kind, subject) in subjects {
        let id = Finding(kind: kind, subject: subject, reason: "").findingId
        let row = try connection.execute(
          """
          SELECT count(*), (SELECT count(*) FROM night_audit.finding_events e WHERE e.finding_id = $1)
          FROM night_audit.findings WHERE finding_id = $1
          """, [.text(id)]
        ).single()
        #expect(try row.int64(0) == 1 && row.int64(1) == (kind == .deliveredNotPaid ? 2 : 1), "\(kind)")
      }
      // A window that was being read is read on.
      let cursors = try SweepTable(bundleId: "com.example.game").cursors(connection)
      let left = cursors.filter { $0.window != nil }
      #expect(left.map(\.type) == [.didRenew] && left.first?.slices.map(\.paginationToken) == ["page 7"])
      #expect(left.first?.slices.map(\.end) == [Instant(seconds: 1_795_057_200)])
      let derived = try Rebuild.run(isMending: false, on: connection)
      #expect(derived.agrees && derived.transactions == 4, "\(derived)")
      let first = "SELECT bool_and(first_signed_at = signed_at) FROM night_audit.transactions"
      #expect(try connection.execute(first).single().bool(0))
      let renewals = try connection.execute(
        "SELECT string_agg(transaction_id || coalesce(is_renewal::text, '?'), ' ' ORDER BY transaction_id) FROM night_audit.transactions"
      ).single().text(0)
      #expect(renewals == "t1false t2? t3? t4?")
      try Partitions.ensure(on: connection)
      // What comes next has a number of its own.
      let next = try connection.execute(
        """
        INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts)
        SELECT run_id, as_of, 'receipt', 'r2', channel, 'unanswered', 0 FROM night_audit.answers RETURNING answer_id
        """
      ).single().int64(0)
      #expect(next == 2)
    }

    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("upgrade-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let asOf = Instant(seconds: 1_795_143_600)
    try await CrowdedShop.audit(settings, asOf, folder)
    let findings = String(decoding: try CrowdedShop.bytes(folder, "findings.csv"), as: UTF8.self)
    let line = try #require(findings.split(separator: "\r\n").first { $0.contains(",delivered_not_paid,") })
    #expect(line.contains("2026-11-10T03:00:00Z,10,acknowledged,Ana") && line.hasSuffix(",looked at"), "\(line)")
  }

  /// A column that comes later was empty in all rows of before, and has to stay so: the trail covers them as they were.
  @Test func whatTheTrailCoversIsProvenWhateverColumnsComeLater() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      _ = try Migrator.migrate(connection, through: 12)
      try connection.executeScript(
        """
        INSERT INTO night_audit.evidence (run_id, as_of, channel, signed_at, environment, transaction_id, product_id,
          tells_revocation, tells_account_token)
        SELECT '6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', now(), 'notification', now(), 'Production', 't' || number, 'gems',
          true, false
        FROM generate_series(1, 3) number
        """)
      try Trail.append(.asked, run: nil, on: connection)
      _ = try Migrator.migrate(connection)
      var reversal = TransactionFact(
        environment: .production, transactionId: "t4", productId: "gems", channel: .notification,
        signedDate: Instant(seconds: 1_795_143_600))
      reversal.revocation = .says(nil)
      reversal.reversesRefund = true
      try EvidenceTable.append(
        [(subject: nil, fact: reversal)], runId: "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11",
        asOf: Instant(seconds: 1_795_143_600), on: connection)
      try Trail.append(.asked, run: nil, on: connection)
      let whole = try Self.proof(connection)
      #expect(whole.isProven, "\(whole.checks)")
      #expect(
        try EvidenceTable.fold([TransactionKey(environment: .production, transactionId: "t4")], on: connection)
          .first?.revocationWithdrawnDate == reversal.signedDate)
      for (id, value) in [("t2", "true"), ("t4", "NULL")] {
        try connection.executeScript(
          """
          BEGIN; SET LOCAL session_replication_role = replica;
          UPDATE night_audit.evidence SET reverses_refund = \(value) WHERE transaction_id = '\(id)'; COMMIT
          """)
        #expect(try !Self.proof(connection).isProven, "\(id)")
        try connection.executeScript(
          """
          BEGIN; SET LOCAL session_replication_role = replica;
          UPDATE night_audit.evidence SET reverses_refund = \(id == "t4" ? "true" : "NULL") WHERE transaction_id = '\(id)';
          COMMIT
          """)
      }
      #expect(try Self.proof(connection).isProven)
    }
  }

  @Test func whoBoughtInTheSandboxIsAllowedByAnyOrderOfTestUsersUntilTheNextNight() async throws {
    let database = try await PrivatePostgres.shared().createDatabase()
    let allowed = try await withBlockingThread { scope -> [String] in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      _ = try Migrator.migrate(connection, through: 20)
      try connection.executeScript(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version)
        VALUES ('6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', 'run', '2026-11-19T03:00Z', '2026-11-18', '2026-11-18', 'UTC', '',
          true, 'host', '1');
        INSERT INTO night_audit.order_nights (order_id, as_of, run_id, user_id, product_id, currency, amount, created_at,
          disposition, environment)
        SELECT id, timestamptz '2026-11-19T03:00Z', uuid '6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11', buyer, product, 'USD',
          9.90, timestamptz '2026-11-18T12:00Z', disposition, 'Sandbox'
        FROM (VALUES ('a', 'tester', 'gems', 'sandbox'), ('b', 'tester', 'coins', 'unconfirmed'),
          ('c', 'customer', 'gems', 'unconfirmed')) AS orders (id, buyer, product, disposition)
        """)
      _ = try Migrator.migrate(connection)
      return try connection.execute(
        "SELECT concat_ws(' ', user_id, product_id, allowed) FROM night_audit.bi_sandbox ORDER BY 1"
      ).map { try $0.text(0) }
    }
    #expect(allowed == ["customer gems f", "tester coins t", "tester gems t"])
  }

  private static func proof(_ connection: borrowing BlockingConnection) throws -> TrailVerification {
    try connection.transaction { connection in try TrailVerification.whole(on: connection) }
  }

  /// Rows by table, of the tables of the first release.
  private static func counts(_ connection: borrowing BlockingConnection) throws -> [String: Int64] {
    let names = [
      "runs", "run_totals", "reported_days", "reported_totals", "dispatches", "receipt_checks", "lookups", "evidence",
      "transactions", "receipt_transactions", "answers", "sweeps", "histories", "findings", "finding_events",
    ]
    var counts: [String: Int64] = [:]
    for name in names {
      counts[name] = try connection.execute("SELECT count(*) FROM night_audit.\(name)").single().int64(0)
    }
    return counts
  }
}
