import AppStore
import Postgres
import Reconciliation
import Settings
import Synchronization
import TestSupport
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// The rows of the shop that the queue takes in, in a real database.
@Suite struct IntakeTests {
  private static let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// An order that states an ID, and an order with a receipt.
  private func fill(age: Reconciliation.Span) async throws {
    try await shop.order("naming", transaction: "1", age: age)
    try await shop.order("proven", transaction: nil, age: age)
    try await shop.receipt("r", for: "proven", age: age)
  }

  @Test(arguments: [true, false])
  func aLongerHorizonAddsOlderOrdersAtOnce(isLookback: Bool) async throws {
    var shop = shop
    try await fill(age: .days(150))
    // A receipt of any age is queued, because it proves the owner of a payment.
    #expect(try await shop.queue().enqueue() == 1)
    if isLookback { shop.settings.lookback = .days(200) } else { shop.settings.refundWindow = .days(200) }
    #expect(try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue() == 2)
    #expect(try await shop.queue(asOf: Self.asOf + .hours(2)).enqueue() == 0)
  }

  /// A signed proof beyond the horizon was judged offline only. Within a longer lookback, Apple is asked about it.
  @Test(arguments: [true, false])
  func oldSignedProofsAreAskedAboutAfterALongerLookback(isOld: Bool) async throws {
    var shop = shop
    try await fill(age: .days(isOld ? 150 : 20))
    try await shop.queue().enqueue()
    try await shop.session.executeScript(
      """
      UPDATE night_audit.receipt_checks SET outcome = 'verified', reason = NULL, channel = 'offline', attempts = 1,
        answered_at = known_since, last_attempt = known_since
      """)
    shop.settings.lookback = .days(200)
    try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue()
    let outcome = try await shop.rows("outcome", from: "receipt_checks WHERE subject_kind = 'receipt'")
    #expect(outcome == [isOld ? "pending" : "verified"])
  }

  @Test func localRefusalsAreJudgedAgainWithOtherRootsOrAnotherVersion() async throws {
    try await shop.receipt("r", for: nil)
    try await shop.queue().enqueue(judge: "roots")
    try await shop.session.executeScript(
      """
      UPDATE night_audit.receipt_checks SET outcome = 'rejected', reason = 'signature_invalid', channel = 'offline',
        attempts = 1, answered_at = known_since, last_attempt = known_since
      """)
    let next = try await shop.queue(asOf: Self.asOf + .hours(1))
    #expect(try await next.enqueue(judge: "roots") == 0)
    #expect(try await next.enqueue(judge: "other roots") == 1)
    #expect(try await next.enqueue(judge: "other roots") == 0)
    try await shop.session.executeScript(
      "UPDATE night_audit.asking_state SET value = 'other roots 0.0.1' WHERE key = 'judge'")
    #expect(try await next.enqueue(judge: "other roots") == 1)
  }

  /// The queue reads from the date of a late row that an audit has found.
  @Test func lateRowsAreAddedFromTheirDate() async throws {
    #expect(try await shop.queue().enqueue() == 0)
    try await fill(age: .days(20))
    // No row was changed lately.
    try await shop.session.executeScript("UPDATE sales.orders SET updated_at = created_at - INTERVAL '40 days'")
    let next = try await shop.queue(asOf: Self.asOf + .hours(1))
    #expect(try await next.enqueue() == 0)
    #expect(try await next.enqueue(from: Self.asOf - .days(20)) == 2)
    #expect(Set(try await next.claim().map(\.subject.id)) == ["r", "com.example.game/1"])
  }

  @Test func aPastAuditAddsOrdersOfItsHorizon() async throws {
    try await fill(age: .days(150))
    #expect(try await shop.queue().enqueue() == 1)
    #expect(try await shop.queue(asOf: Self.asOf - .days(60)).enqueue() == 1)
  }

  /// The as-of is compared with the clock at the beginning of the run, not at this step.
  @Test(arguments: [true, false])
  func futureRowsAreAddedUnlessTheAsOfIsPast(isPastAudit: Bool) async throws {
    try await fill(age: .hours(-2))
    let expected = isPastAudit ? 0 : 2
    let queue = try await shop.queue(isPastAudit: isPastAudit)
    #expect(try await queue.unknownCount() == expected)
    #expect(try await queue.enqueue() == expected)
    #expect(try await queue.dueCount() == expected)
  }

  /// Apple's acceptance of a payload does not depend on the order.
  @Test func payloadAndOrderFingerprintsDiffer() async throws {
    try await shop.order("o", transaction: nil)
    try await shop.receipt("r", for: "o")
    let source = try await shop.queue().source
    func fingerprint() async throws -> ProofFingerprint {
      let described = try await source.describe(["r"])
      return ProofFingerprint(try #require(described["r"]?.fingerprint))
    }
    let first = try await fingerprint()
    try await shop.session.execute("UPDATE sales.orders SET transaction_id = '1'")
    let filled = try await fingerprint()
    #expect(filled.isOfSamePayload(as: first) && !filled.isSame(as: first))
    try await shop.session.execute("UPDATE sales.receipts SET payload = 'another'")
    let replaced = try await fingerprint()
    #expect(!replaced.isOfSamePayload(as: filled) && !replaced.isSame(as: filled))
  }

  /// An acceptance is kept while the order changes or an answer is missing. Another payload or a refusal ends it.
  @Test(arguments: [true, false])
  func acceptanceIsKeptUntilThePayloadChanges(isSilent: Bool) async throws {
    let states = [
      "gone": ("account_gone", nil, nil), "contradicted": ("contradiction", "Production", nil),
      "replaced": ("account_gone", "Production", nil), "odd": ("apple_error", nil, nil),
      // The refused payload is not the one that Apple accepted.
      "deferred": ("systemic", "Production", "rejected"), "refused": ("apple_error", "Production", "review"),
    ]
    for id in states.keys {
      try await shop.order(id, transaction: nil)
      try await shop.receipt(id, for: id)
    }
    let queue = try await shop.queue()
    try await queue.enqueue()
    for (id, described) in try await queue.source.describe(states.keys.map { Identifier($0) }) {
      let (reason, environment, deferred) = try #require(states[id.text])
      try await shop.session.execute(
        """
        UPDATE night_audit.receipt_checks SET outcome = 'review', reason = $2, environment = $3, deferred_outcome = $4,
          refusal = CASE WHEN $4 <> '' THEN 'signature_invalid' END, answered_at = $6, last_attempt = $6,
          fingerprint = $5
        WHERE subject_id = $1
        """,
        [
          .text(id.text), .text(reason), .text(environment), .text(deferred), .text(described.fingerprint),
          .timestamp(Self.asOf.microseconds),
        ])
    }
    try await shop.session.executeScript(
      """
      UPDATE sales.orders SET transaction_id = order_id;
      UPDATE sales.receipts SET payload = 'another' WHERE receipt_id = 'replaced'
      """)
    try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue()
    for accepted in [1, 2] {
      let asOf = Self.asOf + .days(Int64(accepted) * 20)
      let described = try await queue.source.describe(states.keys.map { Identifier($0) })
      let known = try await shop.session.execute(
        "SELECT \(CheckRow.columns) FROM night_audit.receipt_checks c WHERE subject_kind = 'receipt'"
      ).map { try CheckRow($0) }
      #expect(known.count == states.count)
      var remembered: Set<String> = []
      for row in known {
        var check = CheckInProgress(row: row)
        check.shop.fingerprint = described[row.subject.id]?.fingerprint
        check.kind = .app
        check.judgement = .noRoots(nil)
        if check.isKnownToApple { remembered.insert(row.subject.id.text) }
        if isSilent {
          try await shop.writer(asOf: asOf).write([
            CheckResult(of: check, .unanswered, .unreachable, channel: .verifyReceipt)
          ])
        }
      }
      #expect(remembered == ["gone", "contradicted"], "\(accepted)")
    }
  }

  /// A moved receipt keeps the order of the last complete night until it is back, or until such a night has the new one.
  @Test func aMovedReceiptKeepsItsOrderOfTheLastCompleteNight() async throws {
    func night(_ hours: Int64) async throws {
      try await shop.session.execute(
        """
        INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
          is_nightly, host, version, complete, publication)
        VALUES (gen_random_uuid(), 'run', $1, '2026-11-19', '2026-11-19', 'UTC', '', true, 'h', '1', true, 'published')
        """, [.timestamp((Self.asOf + .hours(hours)).microseconds)])
    }
    /// The order in the last complete night, after an intake.
    func former(_ hours: Int64, _ order: String?) async throws -> String? {
      try await shop.session.execute("UPDATE sales.receipts SET order_id = $1", [.text(order)])
      try await shop.queue(asOf: Self.asOf + .hours(hours)).enqueue()
      return try await shop.session.execute(
        "SELECT \(FormerOrder.inLastNight("c")) FROM night_audit.receipt_checks c WHERE c.order_id IS NOT DISTINCT FROM $1",
        [.text(order)]
      ).single().optionalText(0)
    }
    for order in ["a", "b", "c"] { try await shop.order(order, transaction: nil) }
    try await shop.receipt("r", for: nil)
    try await shop.queue().enqueue()
    try await night(0)
    // A first assignment is no move.
    #expect(try await former(1, "a") == "a")
    try await night(1)
    #expect(try await former(2, "b") == "a")
    #expect(try await former(3, "c") == "a")
    #expect(try await former(4, nil) == "a")
    #expect(try await former(5, "a") == "a")
    #expect(try await former(6, "b") == "a")
    try await night(6)
    #expect(try await former(7, "b") == "b")
    #expect(try await former(8, "a") == "b")
  }

  /// Payloads of other customers' receipts are a fault of the mapping. New payloads of the same customers are none.
  @Test(arguments: [true, false]) func payloadsOfOtherCustomersEndTheRecheck(isExchanged: Bool) async throws {
    for number in 10..<40 {
      try await shop.order("o\(number)", transaction: nil)
      try await shop.receipt("r\(number)", for: "o\(number)")
    }
    let queue = try await shop.queue()
    try await queue.enqueue()
    let described = try await queue.source.describe((10..<40).map { Identifier("r\($0)") })
    await queue.close()
    for (id, receipt) in described {
      try await shop.session.execute(
        """
        UPDATE night_audit.receipt_checks SET outcome = 'verified', reason = NULL, fingerprint = $2, user_id = $3,
          answered_at = $4, last_attempt = $4
        WHERE subject_id = $1
        """,
        [.text(id.text), .text(receipt.fingerprint), .text(receipt.userId), .timestamp(Self.asOf.microseconds)])
    }
    try await shop.session.executeScript(
      isExchanged
        ? """
        UPDATE sales.receipts r SET payload = s.payload FROM (
          SELECT receipt_id, lag(payload) OVER (ORDER BY receipt_id) AS payload FROM sales.receipts) s
        WHERE s.receipt_id = r.receipt_id AND s.payload IS NOT NULL
        """ : "UPDATE sales.receipts SET payload = payload || ' renewed'")
    let verified = "SELECT count(*) FROM night_audit.receipt_checks WHERE outcome = 'verified'"
    if isExchanged {
      // The next run finds it again.
      for hours in 1...2 {
        let script = AnswerScript([:])
        let summary = try await shop.recheck(script, asOf: Self.asOf + .hours(Int64(hours)))
        #expect(summary.exitStatus == .configuration && script.asked.isEmpty)
        let fault = try #require(summary.faults["com.example.game"])
        #expect(fault.hasPrefix("Receipts of 29 of 30 customers show payloads"), "\(fault)")
        #expect(fault.contains("For example receipt r11 shows the payload of receipt r10; receipt r12 "), "\(fault)")
      }
      #expect(try await shop.session.execute(verified).single().int64(0) == 30)
    } else {
      #expect(try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue() == 30)
      #expect(try await shop.session.execute(verified).single().int64(0) == 0)
    }
  }

  /// The row that counts in the audit is judged, with its own order.
  @Test func theCountedReceiptOfADuplicateIDIsJudged() async throws {
    try await shop.session.executeScript("ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey")
    // Order, payload, hours after the first.
    let rows: [String: [(order: String?, payload: String, hours: Int64)]] = [
      "named": [(nil, "a", 0), ("x", "b", 0)], "earlier": [("a", "a", 1), ("x", "b", 0)],
      "smaller": [("y", "a", 0), ("x", "b", 0)], "alike": [("x", "c", 0), ("x", "b", 0)],
    ]
    for (id, rows) in rows {
      for row in rows { try await shop.receipt(id, for: row.order, payload: row.payload, age: .hours(24 - row.hours)) }
    }
    // Invalid rows count for nothing, although they are earlier.
    try await shop.session.executeScript(
      """
      ALTER TABLE sales.receipts ALTER payload DROP NOT NULL;
      INSERT INTO sales.receipts SELECT r.receipt_id, 'a', b.user_id, b.payload, NULL, 'timeout', b.checked_at,
        r.received_at - interval '1 hour'
      FROM sales.receipts r, (VALUES ('u', NULL, NULL::timestamptz), ('u', 'bad', 'infinity'),
        (repeat('u', 1001), 'bad', NULL)) AS b (user_id, payload, checked_at) WHERE r.payload = 'b'
      """)
    let source = try await shop.queue().source
    let described = try await source.describe(rows.keys.map { Identifier($0) })
    #expect(described.values.allSatisfy { $0.orderId == "x" })
    let payloads = try await source.payloads(described.compactMapValues(\.fingerprint))
    #expect(payloads.count == 4)
    for (id, payload) in payloads where id != "alike" { #expect(payload == "b", "\(id)") }
    // A payload that was changed in the meantime is not returned.
    try await shop.session.executeScript("UPDATE sales.receipts SET payload = 'changed'")
    #expect(try await source.payloads(described.compactMapValues(\.fingerprint)).isEmpty)
  }

  /// A database without an encoding accepts bytes that are no UTF-8.
  @Test func rowsWithInvalidTextStopNothing() async throws {
    let conninfo = try await PrivatePostgres.shared().createDatabase(encoding: "SQL_ASCII")
    let session = try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
    try await session.withConnection { try SalesSchema.create("sales", $0) }
    try await session.executeScript(
      #"""
      INSERT INTO sales.orders VALUES
        ('sound', 'u', NULL, 'p', 1, 1, 'USD', 'verified', '1', NULL, '2026-11-18Z', NULL, '2026-11-18Z'),
        (E'\351', 'u', NULL, 'p', 1, 1, 'USD', 'verified', '2', NULL, '2026-11-18Z', NULL, '2026-11-18Z'),
        ('app', 'u', E'\351', 'p', 1, 1, 'USD', 'verified', '3', NULL, '2026-11-18Z', NULL, '2026-11-18Z'),
        ('name', 'u', NULL, 'p', 1, 1, 'USD', 'verified', E'\351', NULL, '2026-11-18Z', NULL, '2026-11-18Z');
      INSERT INTO sales.receipts VALUES
        ('sound', 'sound', 'u', 'payload', NULL, 'timeout', NULL, '2026-11-18Z'),
        ('bytes', 'app', 'u', E'\351', NULL, 'timeout', NULL, '2026-11-18Z'),
        (E'\351', 'sound', 'u', 'payload', NULL, 'timeout', NULL, '2026-11-18Z'),
        ('order', E'\351', 'u', 'payload', NULL, 'timeout', NULL, '2026-11-18Z'),
        ('user', 'sound', E'\351', 'payload', NULL, 'timeout', NULL, '2026-11-18Z')
      """#)
    let source = ProofSource(session: OpenSession { session }, sales: try SalesRows(schema: "sales"))
    let taken = Mutex<[Identifier]>([])
    let (from, until) = (Instant(seconds: 0), Self.asOf)
    let receipts = try await source.receipts(from: from, until: until, asOf: until) { found in
      taken.withLock { $0 += found.map(\.subject.id) }
      return found.count
    }
    #expect(receipts == 2 && taken.withLock { $0.sorted() } == ["bytes", "sound"])
    taken.withLock { $0 = [] }
    _ = try await source.orders(changedFrom: from, createdFrom: from, until: until, onlyBundleId: "app") { found in
      taken.withLock { $0 += found.map(\.id) }
      return found.count
    }
    // An ID that is no text is ignored.
    #expect(taken.withLock { $0.sorted() } == ["name", "sound"])
    let described = try await source.describe(["bytes", "order", "sound", "user"])
    #expect(described.mapValues(\.statedTransactionId) == ["bytes": nil, "sound": "1"])
    let payloads = try await source.payloads(described.compactMapValues(\.fingerprint))
    #expect(payloads == ["bytes": "", "sound": "payload"])
    var selection = Selection()
    selection.userId = "u"
    let listed = try await source.listed(selection, onlyBundleId: nil)
    #expect(listed.receiptIds == ["bytes", "order", "sound", "user"] && listed.orderIds == ["app", "name", "sound"])
    await session.close()
  }

  /// The receipts of its orders count, whenever they came. A receipt without an order belongs to no period.
  @Test func aPeriodNarrowsARecheckToTheProofsOfItsOrders() async throws {
    for (id, age) in [("earlier", 4), ("first", 3), ("later", 1)] as [(String, Int64)] {
      try await shop.order(id, transaction: nil, age: .days(age))
      try await shop.receipt("r \(id)", for: id)
    }
    try await shop.receipt("restore", for: nil)
    var selection = Selection()
    selection.period = Period(
      since: "2026-11-17", until: "2026-11-18", start: Self.asOf - .days(3), end: Self.asOf - .days(1))
    let queue = try await shop.queue(selection: selection)
    let listed = try await queue.source.listed(selection, onlyBundleId: nil)
    #expect(listed.orderIds == ["first"] && listed.receiptIds == ["r first"])
    #expect(try await queue.unknownCount() == 1)
    try await queue.enqueue()
    #expect(try await queue.dueCount() == 1 && !queue.isWhole)
    await queue.close()
  }

  /// A relation during a reload, or a delayed replica, may lack a row for a while.
  @Test func aReceiptThatReappearsIsQueuedAgain() async throws {
    for id in ["soon", "late"] {
      try await shop.order(id, transaction: nil, age: .days(20))
      try await shop.receipt(id, for: id, age: .days(20))
    }
    try await shop.queue().enqueue()
    try await shop.session.executeScript(
      "CREATE TABLE sales.aside AS SELECT * FROM sales.receipts; DELETE FROM sales.receipts")
    let judge = OfflineJudge(hasRoots: true) { _ in (.signed, .refused(.signatureInvalid)) }
    let nights: [(day: Int64, back: String, wanted: [String])] = [
      (0, "none", []), (1, "soon", ["soon"]),
      // All rows are read again.
      (10, "late", ["late", "soon"]),
    ]
    for (day, back, wanted) in nights {
      try await shop.session.execute(
        "INSERT INTO sales.receipts SELECT * FROM sales.aside WHERE receipt_id = $1", [.text(back)])
      let asOf = Self.asOf + .days(day)
      let summary = try await shop.recheck([:], asOf: asOf, judge: judge)
      #expect(summary.outcomes[.rejected, default: 0] == (wanted.isEmpty ? 0 : 1), "day \(day)")
      let known = try await shop.rows("subject_id", from: "receipt_checks WHERE is_wanted ORDER BY 1")
      #expect(known == wanted, "day \(day)")
    }
  }

  /// A receipt that was sent again is asked about as long as a new one.
  @Test func aLaterDateOfAReceiptIsTaken() async throws {
    for id in ["r", "kept"] { try await shop.receipt(id, for: nil, age: .days(90)) }
    try await shop.queue().enqueue()
    try await shop.session.execute(
      "UPDATE sales.receipts SET received_at = received_at + interval '89 days' WHERE receipt_id = 'r'")
    try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue()
    let ages = try await shop.rows(
      "subject_id, (extract(epoch FROM known_since - received_at) / 86400)::int",
      from: "receipt_checks ORDER BY subject_id")
    #expect(ages == ["kept 90", "r 1"])
  }

  /// IDs are compared by their bytes, whatever the collation of the shop's columns.
  @Test func idsThatACollationEquatesStayDistinct() async throws {
    try await shop.session.executeScript(
      """
      CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey, ALTER receipt_id TYPE text COLLATE public.loose,
        ALTER order_id TYPE text COLLATE public.loose, ALTER status TYPE text COLLATE public.loose;
      ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey, ALTER order_id TYPE text COLLATE public.loose
      """)
    for (id, transaction) in [("twin", "1"), ("TWIN", "2")] {
      try await shop.order(id, transaction: transaction)
      try await shop.receipt(id, for: id)
    }
    try await shop.receipt("unknown", for: "twin", status: "TIMEOUT")
    let queue = try await shop.queue()
    let source = queue.source
    let described = try await source.describe(["twin", "TWIN", "unknown"])
    let payloads = try await source.payloads(described.compactMapValues(\.fingerprint))
    #expect(payloads == ["twin": "payload of twin", "TWIN": "payload of TWIN"])
    #expect(described.mapValues(\.orderId) == ["twin": "twin", "TWIN": "TWIN"])
    #expect(described.mapValues(\.statedTransactionId) == ["twin": "1", "TWIN": "2"])
    let present = try await source.present(["TWIN"])
    #expect(present == ["TWIN"])
    let ordersWithReceipts = try await source.present(["TWIN"], in: "order_id")
    #expect(ordersWithReceipts == ["TWIN"])
    let one = try await source.describe(["TWIN"])
    #expect(Array(one.keys) == ["TWIN"])
    var selection = Selection()
    selection.orderId = "twin"
    let listed = try await source.listed(selection, onlyBundleId: nil)
    #expect(listed.orderIds == ["twin"] && listed.receiptIds == ["twin", "unknown"])
    await queue.close()
  }
}
