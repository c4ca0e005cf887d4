import Foundation
import Testing

@Suite struct ExplainCommandTests {
  @Test func explainShowsDispositionPaymentAndOwner() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201")])
    try await shop.order("first", transaction: "201")
    try await shop.order("second", transaction: "201", created: "2026-11-18T14:00:00Z")
    #expect(try await shop.night().result.status == 0)
    let result = try await shop.nightAudit("explain", "second", "--as-of", SignedShop.asOf, exits: [0])
    for part in [
      "Delivered, not paid: Proven unpaid, and a user has the goods.", "Payment: unpaid (duplicate).",
      "9.90 USD", "Look-up of transaction id", "serverApi", "not refunded",
      "This order claims it, but order first of user user of first owns it.",
      "Order first of user user of first, created 2026-11-18 12:00:00, states it, too, and owns it.",
      "1 x gems.100 to user user of second", "YES  Do other orders own every transaction that this order could claim?",
      "Which orders are linked to it?\n        2 orders: order first of user user of first, order second",
      "Which order is the nearest in time?\n        Order first of user user of first is the nearest.",
      "Which order owns it?\n        Order first.",
      "2026-11-18 12:00:00  Apple sold transaction 201",
      "Duplicate claim (critical", "First seen 2026-11-20 03:00:00", "Cancelled, but paid: The shop says verified",
    ] { #expect(result.output.contains(part), "\(part) in\n\(result.output)") }
  }

  @Test func explainShowsTheOfferAndTheNextPriceOfASubscription() async throws {
    var period = SignedShop.gems("301")
    period["type"] = "Auto-Renewable Subscription"
    period["expiresDate"] = SignedShop.milliseconds("2026-12-18T12:00:00Z")
    period["offerType"] = 1
    period["offerPeriod"] = "P1M"
    period["renewalPrice"] = 14_900
    period["price"] = nil
    let shop = try await SignedShop(transactions: [period])
    try await shop.order("pass", transaction: "301")
    let night = try await shop.night()
    #expect(night.payments == ["pass": "paid"] && night.findings.isEmpty, "\(night.findings)")
    let result = try await shop.nightAudit(
      "explain", "pass", "--as-of", SignedShop.asOf, says: "an offer or trial of P1M")
    #expect(result.output.contains("renews at 14.90 USD"), "\(result)")
    // The next price decides nothing: Apple has stated no price of this period.
    #expect(!result.output.contains("price 14.90 USD"), "\(result)")
  }

  @Test func repeatedNonConsumablesAreReportedOnTheOrder() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201"), SignedShop.gems("202")])
    try await shop.order("a", transaction: "202", created: "2026-11-18T14:00:00Z")
    try await shop.order("b", transaction: "201")
    try await shop.execute(
      """
      UPDATE sales.orders SET user_id = CASE order_id WHEN 'a' THEN 'guest' ELSE 'member' END;
      UPDATE sales.deliveries SET user_id = CASE order_id WHEN 'a' THEN 'guest' ELSE 'member' END;
      CREATE TABLE sales.user_aliases AS SELECT 'guest'::text AS user_id, 'member'::text AS same_as;
      CREATE TABLE sales.products AS SELECT 'gems.100'::text AS product_id, 'Non-Consumable'::text AS type,
        'Gems'::text AS name, NULL::timestamptz AS sold_from, NULL::timestamptz AS sold_until;
      """)
    let night = try await shop.night(exits: 0)
    #expect(night.findings.map { "\($0["kind"] ?? "") \($0["order_id"] ?? "")" } == ["bought_twice b"])
    #expect(try shop.table("orders", night.directory).map { $0["findings"] } == ["", "bought_twice"])
    try await shop.nightAudit(
      "explain", "b", "--as-of", SignedShop.asOf, says: "The same person paid for gems.100 before, with order a.")
  }

  /// The order ID of Apple's invoice, as customers quote it.
  @Test func anOrderIdOfApplesMailIsLookedUp() async throws {
    var bought = [SignedShop.gems("201"), SignedShop.gems("202", refunded: "2026-11-19T08:00:00Z")]
    for index in bought.indices { bought[index]["orderId"] = "MK5TYVX1QZ" }
    let shop = try await SignedShop(transactions: bought)
    try await shop.order("first", transaction: "201")
    try await shop.order("second", transaction: "201", created: "2026-11-18T14:00:00Z")
    #expect(try await shop.night().result.status == 0)
    let known = try await shop.value("SELECT count(*) FROM night_audit.evidence")
    let result = try await shop.nightAudit("explain", "MK5TYVX1QZ", "--as-of", SignedShop.asOf, exits: [0])
    for part in [
      "Apple's order MK5TYVX1QZ of the app game", "Transaction 201 (Production): 1 x gems.100 for 9.90 USD",
      "Order first of user user of first: Settled, payment paid\n    This order states it and owns it.",
      "Order second of user user of second: Delivered, not paid, payment unpaid (duplicate)",
      "refunded 2026-11-19 08:00:00\n  No order here states it", "More: night-audit explain second",
    ] { #expect(result.output.contains(part), "\(part) in\n\(result.output)") }
    let document = try await shop.nightAudit("explain", "MK5TYVX1QZ", "--json").json()
    #expect(
      (document["transactions"] as? [[String: Any]])?.compactMap { $0["transaction_id"] as? String } == ["201", "202"])
    // The answer is not stored, because it belongs to no check.
    #expect(try await shop.value("SELECT count(*) FROM night_audit.evidence") == known)

    try await shop.nightAudit("explain", "MK5TYVX1Q0", exits: [1], says: "Apple knows no order with that ID for game")
    try await shop.order("MABCDEFGHI", transaction: "202")
    #expect(try await shop.nightAudit("explain", "MABCDEFGHI").output.hasPrefix("Order MABCDEFGHI"))
  }

  @Test func anInvoiceWithoutAKeyIsReported() async throws {
    let shop = try await Rehearsal.unchanged.value
    let keyless = try await shop.nightAudit("explain", "MK5TYVX1QZ", exits: [78])
    #expect(keyless.errors.contains("app.game.privateKeyFile") && keyless.errors.contains("only Apple can look it up"))
  }

  @Test func anUnknownOrderExitsWith1AndAnUnansweredInvoiceWith3() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201")])
    try await shop.order("ORD-4711", transaction: "201")
    for (asked, hint) in [
      ("ord-4711", "There is an order ORD-4711."), ("4711", "There is an order ORD-4711."),
      ("201", "201 is the ID of a transaction of order ORD-4711."), ("nothing", "there is no order nothing."),
    ] {
      let result = try await shop.nightAudit("explain", asked, exits: [1])
      #expect(result.output.isEmpty)
      #expect(result.errors.contains(hint), "\(result.errors)")
    }
    try await shop.nightAudit("explain", "x", "--as-of", "yesterday", exits: [64])
    // An ID in the form of Apple's invoices is asked about, and Apple is not reached.
    try await shop.nightAudit(
      "explain", "MK5TYVX1QZ", environment: ["NIGHT_AUDIT_APPSTORE_PRODUCTION_URL": "http://127.0.0.1:1/production"],
      exits: [3], says: "has not answered")
  }
}
