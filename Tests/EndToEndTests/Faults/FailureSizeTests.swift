import Foundation
import Postgres
import Testing

@Suite struct FailureSizeTests {
  @Test func badRowsAndHostileAnswersAffectOnlyThemselves() async throws {
    let shop = try await Rehearsal.sampleShop()
    let database = shop.conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }?.dropFirst(7) ?? ""
    try await shop.execute(
      """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      VALUES (repeat('x', 3000), 'odd', 'gems.100', 1, 1.00, 'USD', 'verified', '2026-11-19 10:00Z', now()),
        ('far', 'odd', 'gems.100', 1, 1.00, 'USD', 'verified', '1601-01-01', now());
      ALTER TABLE sales.receipts RENAME TO receipts_once;
      CREATE VIEW sales.receipts AS SELECT r.* FROM sales.receipts_once r
        CROSS JOIN LATERAL generate_series(1, CASE WHEN r.receipt_id = (
          SELECT min(receipt_id) FROM sales.receipts_once) THEN 2 ELSE 1 END);
      CREATE FUNCTION public.make_interval() RETURNS interval LANGUAGE sql AS 'SELECT 1/0 * interval ''1 day''';
      ALTER DATABASE "\(database)" SET statement_timeout TO '1ms';
      ALTER DATABASE "\(database)" SET idle_in_transaction_session_timeout TO '1ms';
      ALTER DATABASE "\(database)" SET search_path TO public, pg_catalog;
      ALTER DATABASE "\(database)" SET default_transaction_isolation TO 'serializable';
      ALTER DATABASE "\(database)" SET DateStyle TO 'SQL, DMY';
      -- Like a server in FIPS mode.
      REVOKE EXECUTE ON FUNCTION pg_catalog.md5(text), pg_catalog.md5(bytea) FROM PUBLIC;
      """)
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [3])
    let findings = try shop.table("findings", "2026-11-19")
    let bad = findings.filter { $0["kind"] == "bad_row" }.map { $0["reason"] ?? "" }
    #expect(bad.contains { $0.contains("order_id has 3000 bytes") }, "\(bad)")
    #expect(bad.contains { $0.contains("created_at is not within the years 1900 to 9999") }, "\(bad)")
    #expect(bad.contains { $0.contains("receipt_id is not unique") }, "\(bad)")
    #expect(
      try await shop.value("SELECT count(*) > 300 FROM night_audit.receipt_checks WHERE outcome = 'verified'") == "true"
    )
  }

  /// A single refusal among many accepted questions parks its question, whose answer the night still owes.
  /// `AskingGateTests` and `ServerAPIChannelTests` have all kinds of refusals.
  @Test(arguments: [
    (#""httpStatus":401"#, 3, "token_refused"), (#""fields":{"signedTransactionInfo":7}"#, 3, "not be verified"),
  ])
  func aRefusalAffectsOnlyItsQuestion(_ refusal: String, status: Int32, warning: String) async throws {
    let ids = (100..<140).map(String.init)
    let shop = try await SignedShop(transactions: ids.map { SignedShop.gems($0) })
    try await shop.orders(stating: ids)
    try await shop.control(
      "faults",
      #"""
      {"force":[{"path":"/production/inApps/v1/notifications","fields":{"notificationHistory":[],"hasMore":false}},
        {"path":"/production/inApps/v1/transactions","subjects":["107"],\#(refusal)}]}
      """#)
    let night = try await shop.night(exits: status, "--max-duration", "6s")
    #expect(night.result.errors.components(separatedBy: warning).count == 2, "\(night.result.errors)")
    #expect(night.dispositions.filter { $0.value == "settled" }.count == 39, "\(night.dispositions)")
    #expect(night.dispositions["o107"] == "unconfirmed")
    #expect(!night.result.errors.contains("was ended"))
    try await shop.control("faults", #"{"force":[]}"#)
    let next = try await shop.night(asOf: "2026-11-21T03:00:00Z")
    #expect(next.dispositions.allSatisfy { $0.value == "settled" }, "\(next.dispositions)")
  }

  /// Another developer's receipt gets 21004, a damaged request 21000. A customer must not be able to stop the audit.
  @Test func refusedReceiptsDoNotEndTheRun() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [])
    let refusals = [21_004, 21_000].map { #"{"path":"/production/verifyReceipt","next":2,"status":\#($0)}"# }
    try await shop.control("faults", #"{"force":[\#(refusals.joined(separator: ","))]}"#)
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3 && !night.errors.contains("was ended"), "\(night.errors)")
    #expect(
      try await shop.value("SELECT count(*) > 300 FROM night_audit.receipt_checks WHERE outcome = 'verified'") == "true"
    )
    #expect(
      try await shop.value(
        "SELECT count(*) FROM night_audit.receipt_checks WHERE apple_status IN (21000, 21004) AND due_from IS NULL")
        == "0")
  }

  @Test func anOutageAtTheStartIsAwaited() async throws {
    let ids = (100..<120).map(String.init)
    let shop = try await SignedShop(transactions: ids.map { SignedShop.gems($0) })
    try await shop.orders(stating: ids)
    try await shop.control("faults", #"{"force":[{"next":60,"httpStatus":503}]}"#)
    let night = try await shop.night(exits: 0, "--max-duration", "10m")
    #expect(night.dispositions.allSatisfy { $0.value == "settled" }, "\(night.dispositions)")
  }

  /// A customer who sends false receipts without orders every night stops no night and hides no order of his own.
  @Test(arguments: [false, true]) func strayReceiptsOfOneCustomerHideNothing(areForged: Bool) async throws {
    let ids = (100..<140).map(String.init)
    let shop = try await SignedShop(
      transactions: ids.map { SignedShop.gems($0) } + [SignedShop.gems("900").merging(["quantity": 1]) { $1 }])
    try shop.configure { $0.replacing("holdShare: 1", with: "holdShare: 0.2") }
    try await shop.orders(stating: ids)
    // The last twelve characters belong to the signature; the very last one has unused bits.
    let genuine = try await shop.payload("signed", ["100"], at: "2026-11-18T12:00:00Z")
    let (head, tail) = areForged ? (genuine.dropLast(12), genuine.suffix(2)) : ("junk", "")
    try await shop.order("m")
    try await shop.receipt("junk", for: "m")
    // Two units of a purchase of one, by the sender of the receipts.
    try await shop.order("q", transaction: "900")
    try await shop.execute(
      """
      UPDATE sales.orders SET user_id = 'user of m', quantity = 2 WHERE order_id = 'q';
      UPDATE sales.deliveries SET user_id = 'user of m', quantity = 2 WHERE order_id = 'q'
      """)
    for day in 18...20 {
      try await shop.execute(
        """
        INSERT INTO sales.receipts SELECT 'stray\(day)-' || n, NULL, 'user of m',
          '\(head)' || substr(md5('\(day)-' || n), 1, 10) || '\(tail)', NULL, 'timeout', NULL,
          '2026-11-\(day)T12:00:01Z' FROM generate_series(1, 24) n
        """)
      let night = try await shop.night(asOf: "2026-11-\(day + 1)T03:00:00Z", exits: 0)
      #expect(night.dispositions["m"] == "delivered_not_paid" && night.payments["m"] == "unpaid malformed")
      #expect(night.dispositions.filter { $0.key.hasPrefix("o") && $0.value == "settled" }.count == ids.count)
      #expect(night.findings.contains { $0["kind"] == "quantity_mismatch" && $0["order_id"] == "q" })
      let invalid = night.findings.filter { $0["kind"] == "signature_invalid" }
      #expect(invalid.count == (areForged ? 24 * (day - 17) : 0), "\(invalid.count)")
    }
  }

  /// With a wrong bundle ID, every genuine receipt belongs to an unknown app.
  @Test func aWrongBundleIDCreatesNoFindings() async throws {
    let slip = SignedShop.App(name: "game", bundleId: "com.example.gmae")
    let ids = (100..<130).map(String.init)
    let shop = try await SignedShop(apps: [slip], transactions: ids.map { SignedShop.gems($0) })
    for id in ids {
      try await shop.order("o\(id)", app: slip)
      try await shop.receipt(shop.payload("signed", [id], at: "2026-11-18T12:00:00Z"), for: "o\(id)")
    }
    let night = try await shop.night(exits: 78)
    #expect(night.result.errors.contains("bundleId"), "\(night.result.errors)")
    #expect(night.dispositions.values.allSatisfy { $0 == "unconfirmed" }, "\(night.dispositions)")
    #expect(night.payments.values.allSatisfy { $0 == "unconfirmed systemic" }, "\(night.payments)")
    #expect(night.findings.allSatisfy { $0["severity"] != "critical" }, "\(night.findings)")
  }

  /// Every order names its app, so with the wrong bundle ID none is readable; no finding may close.
  @Test func aWrongBundleIDClosesNoFindings() async throws {
    let ids = (100..<130).map(String.init)
    let orphans = (200..<230).map(String.init)
    let shop = try await SignedShop(transactions: (ids + orphans).map { SignedShop.gems($0) })
    try await shop.orders(stating: ids)
    let good = try await shop.night()
    #expect(good.result.status == 0 && good.findings.count == 30, "\(good.result)")
    try shop.configure {
      $0.replacing("com.example.game", with: "com.example.gmae").replacing("holdShare: 1", with: "holdShare: 0.2")
    }
    let open = "SELECT count(*) FROM night_audit.findings WHERE closed_at IS NULL AND kind = 'orphan_payment'"
    let slipped = try await shop.nightAudit("run", "--as-of", "2026-11-21T03:00:00Z")
    #expect(![0, 2, 3].contains(slipped.status), "\(slipped)")
    #expect(try await shop.value(open) == "30")
    let explained = slipped.output + slipped.errors
    #expect(explained.contains("held") && explained.contains("rows that break the contract"), "\(slipped)")
  }
}
