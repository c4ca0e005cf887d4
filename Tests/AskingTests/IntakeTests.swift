import AppStore
import Postgres
import Reconciliation
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// What the queue takes in of the shop's relations, in a real database.
@Suite struct IntakeTests {
  private static let asOf = RecheckRehearsal.asOf

  /// An order that names an id, and one with a receipt.
  private func fill(_ shop: RecheckRehearsal, age: Reconciliation.Span) async throws {
    try await shop.order("naming", transaction: "1", age: age)
    try await shop.order("proven", transaction: nil, age: age)
    try await shop.receipt("r", for: "proven")
    try await shop.session.execute(
      "UPDATE sales.receipts SET received_at = $1", [.timestamp((Self.asOf - age).microseconds)])
  }

  @Test(arguments: [true, false])
  func whatALongerSpanTakesInIsKnownAtOnce(isLookback: Bool) async throws {
    try await RecheckRehearsal.run { shop in
      var shop = shop
      try await fill(shop, age: .days(150))
      #expect(try await shop.queue().enqueue() == 0)
      if isLookback { shop.settings.lookback = .days(200) } else { shop.settings.refundWindow = .days(200) }
      #expect(try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue() == 2)
      #expect(try await shop.queue(asOf: Self.asOf + .hours(2)).enqueue() == 0)
    }
  }

  /// What an audit has met is read from there, at once.
  @Test func whatComesToLightLateIsTakenInWhereItIsKnownToBe() async throws {
    try await RecheckRehearsal.run { shop in
      #expect(try await shop.queue().enqueue() == 0)
      try await fill(shop, age: .days(20))
      // The shop's job has changed nothing lately.
      try await shop.session.executeScript("UPDATE sales.orders SET updated_at = created_at - INTERVAL '40 days'")
      let next = try await shop.queue(asOf: Self.asOf + .hours(1))
      #expect(try await next.enqueue() == 0)
      #expect(try await next.enqueue(from: Self.asOf - .days(20)) == 2)
      #expect(Set(try await next.claim().map(\.subject.id)) == ["r", "com.example.game/1"])
    }
  }

  @Test func whatAnAuditOfThePastTakesInIsKnown() async throws {
    try await RecheckRehearsal.run { shop in
      try await fill(shop, age: .days(150))
      #expect(try await shop.queue().enqueue() == 0)
      #expect(try await shop.queue(asOf: Self.asOf - .days(60)).enqueue() == 2)
    }
  }

  /// By what the run was when it began, not by the clock when it comes to this.
  @Test(arguments: [true, false])
  func whatIsDatedAheadIsTakenInUnlessTheRunIsOfThePast(isOfThePast: Bool) async throws {
    try await RecheckRehearsal.run { shop in
      try await fill(shop, age: .hours(-2))
      let expected = isOfThePast ? 0 : 2
      let looking = try await shop.queue(isOfThePast: isOfThePast)
      #expect(try await looking.unknownCount() == expected)
      #expect(try await looking.enqueue() == expected)
      #expect(try await looking.dueCount() == expected)
    }
  }

  /// What Apple accepted it accepted whatever the order says afterwards.
  @Test func aFingerprintTellsThePayloadFromTheOrder() async throws {
    try await RecheckRehearsal.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let source = try await shop.queue().source
      func fingerprint() async throws -> ProofFingerprint {
        let described = try await source.describe(["r"])
        return ProofFingerprint(try #require(described["r"]).fingerprint)
      }
      let first = try await fingerprint()
      try await shop.session.execute("UPDATE sales.orders SET transaction_id = '1'")
      let filled = try await fingerprint()
      #expect(filled.isOfSamePayload(as: first) && !filled.isSame(as: first))
      try await shop.session.execute("UPDATE sales.receipts SET payload = 'another'")
      let replaced = try await fingerprint()
      #expect(!replaced.isOfSamePayload(as: filled) && !replaced.isSame(as: filled))
    }
  }

  /// While something else becomes of the order, too: only another payload, and a refusal of nobody knows which, are news.
  @Test func whatAppleAcceptedIsRememberedUntilThePayloadIsAnother() async throws {
    try await RecheckRehearsal.run { shop in
      for id in ["filled", "held", "replaced"] {
        try await shop.order(id, transaction: nil)
        try await shop.receipt(id, for: id)
      }
      let queue = try await shop.queue()
      try await queue.enqueue()
      for (id, described) in try await queue.source.describe(["filled", "held", "replaced"]) {
        try await shop.session.execute(
          """
          UPDATE night_audit.receipt_checks SET outcome = 'review', reason = $2, fingerprint = $3 WHERE subject_id = $1
          """, [.text(id.text), .text(id == "held" ? "systemic" : "contradiction"), .text(described.fingerprint)])
      }
      try await shop.session.executeScript(
        """
        UPDATE sales.orders SET transaction_id = order_id;
        UPDATE sales.receipts SET payload = 'another' WHERE receipt_id = 'replaced'
        """)
      try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue()
      let known = try await shop.rows(
        "subject_id] ) FROM night_audit.receipt_checks WHERE outcome = 'pending' AND fingerprint IS NOT NULL ORDER BY 1"
      )
      #expect(known == ["filled"])
    }
  }

  /// A relation that is loaded anew, or a replica that is behind, lacks what was there a moment ago.
  @Test func aReceiptThatWasGoneIsAskedAboutWhenItIsThere() async throws {
    try await RecheckRehearsal.run { shop in
      for id in ["soon", "late"] {
        try await shop.order(id, transaction: nil, age: .days(20))
        try await shop.receipt(id, for: id)
      }
      try await shop.session.execute(
        "UPDATE sales.receipts SET received_at = $1", [.timestamp((Self.asOf - .days(20)).microseconds)])
      try await shop.queue().enqueue()
      try await shop.session.executeScript(
        "CREATE TABLE sales.aside AS SELECT * FROM sales.receipts; DELETE FROM sales.receipts")
      let judge = OfflineJudge(hasRoots: true) { _ in (.signed, .refused(.signatureInvalid)) }
      let nights: [(day: Int64, back: String, wanted: [String])] = [
        (0, "none", []), (1, "soon", ["soon"]),
        // When everything is read again.
        (10, "late", ["late", "soon"]),
      ]
      for (day, back, wanted) in nights {
        try await shop.session.execute(
          "INSERT INTO sales.receipts SELECT * FROM sales.aside WHERE receipt_id = $1", [.text(back)])
        let asOf = Self.asOf + .days(day)
        let summary = try await shop.recheck([ScriptedChannel(.init([:]), asOf: asOf)], asOf: asOf, judge: judge)
        #expect(summary.outcomes[.rejected, default: 0] == (wanted.isEmpty ? 0 : 1), "day \(day)")
        let known = try await shop.rows("subject_id] ) FROM night_audit.receipt_checks WHERE is_wanted ORDER BY 1")
        #expect(known == wanted, "day \(day)")
      }
    }
  }

  /// Ids are what their bytes are, whatever the shop's columns take for one.
  @Test func idsThatACollationTakesForOneAreTwo() async throws {
    try await RecheckRehearsal.run { shop in
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
      let payloads = try await source.payloads(["twin", "TWIN"])
      #expect(payloads == ["twin": "payload of twin", "TWIN": "payload of TWIN"])
      let described = try await source.describe(["twin", "TWIN", "unknown"])
      #expect(described.mapValues(\.orderId) == ["twin": "twin", "TWIN": "TWIN"])
      #expect(described.mapValues(\.namedTransactionId) == ["twin": "1", "TWIN": "2"])
      let present = try await source.present(["TWIN"])
      #expect(present == ["TWIN"])
      let ordersWithReceipts = try await source.ordersWithReceipts(["twin", "TWIN"])
      #expect(ordersWithReceipts == ["twin", "TWIN"])
      var selection = Selection()
      selection.orderId = "twin"
      let listed = try await source.listed(selection, onlyBundleId: nil)
      #expect(listed.orderIds == ["twin"] && listed.receiptIds == ["twin", "unknown"])
      await queue.close()
    }
  }
}
