import Foundation
import Testing

/// Facts that become known after their day. A repeated audit of a day shows the state at its new as-of.
@Suite struct FactsAfterAsOfTests {
  @Test func aRepeatedPastDayShowsTheUpdatedState() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201"), SignedShop.gems("202")])
    try await shop.order("kept", transaction: "201")
    try await shop.order("late", transaction: "202")
    func night(_ asOf: String) async throws -> (orders: [[String: String]], summary: [String: Any]) {
      try await shop.nightAudit("run", "--date", "2026-11-18", "--as-of", asOf, exits: [0])
      return (try shop.table("orders", "2026-11-18"), try shop.summary("2026-11-18"))
    }
    let first = try await night(SignedShop.asOf)
    #expect(first.orders.map { $0["disposition"] } == ["settled", "settled"])
    #expect(first.summary["as_of"] as? String == SignedShop.asOf)

    try await shop.execute(
      "UPDATE sales.deliveries SET revoked_at = '2026-11-19T10:00:00Z' WHERE order_id = 'late'")
    let later = try await night("2026-11-23T03:00:00Z")
    #expect(later.orders.map { $0["disposition"] } == ["settled", "paid_not_delivered"])
    #expect(later.summary["as_of"] as? String == "2026-11-23T03:00:00Z")
    #expect(
      try await shop.value("SELECT string_agg(period_until || ' ' || orders_read, ', ') FROM night_audit.runs")
        == "2026-11-18 2, 2026-11-18 2")
  }

  /// A receipt and an order of days before. A night with `--offline` reports that it asked nothing.
  @Test func lateRowsAreCheckedTheSameNight() async throws {
    let sold = "2026-11-10T12:00:00Z"
    let shop = try await SignedShop(transactions: ["201", "202"].map { SignedShop.gems($0, purchased: sold) })
    try await shop.order("known", transaction: "201", created: sold)
    #expect(try await shop.night().dispositions == ["known": "settled"])
    try await shop.order("false", transaction: "999", created: sold)
    try await shop.night(asOf: "2026-11-21T02:00:00Z", exits: 3, "--offline")
    // No run has met this receipt before the next one.
    try await shop.order("late", created: sold)
    try await shop.receipt(try await shop.signed("202", at: sold), for: "late", received: sold)
    for asOf in ["2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z"] {
      let night = try await shop.night(asOf: asOf, exits: 0)
      #expect(night.dispositions == ["known": "settled", "late": "settled", "false": "delivered_not_paid"])
    }
  }

  /// A corrected payload is checked in the next night, before its answer is stale.
  @Test func aCorrectedPayloadIsCheckedTheNextNight() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201"), SignedShop.gems("202")])
    try await shop.order("o")
    try await shop.receipt(try await shop.signed("201"), for: "o")
    #expect(try await shop.night().dispositions == ["o": "settled"])
    try await shop.execute("UPDATE sales.orders SET transaction_id = '202'")
    try await shop.execute("UPDATE sales.receipts SET payload = '\(try await shop.signed("202"))'")
    let night = try await shop.night(asOf: "2026-11-21T03:00:00Z", exits: 0)
    #expect(night.dispositions == ["o": "settled"])
    #expect(night.kinds == ["orphan_payment"], "\(night.findings)")
    #expect(night.findings.first?["transaction_id"] == "201")
    let explained = try await shop.nightAudit("explain", "o", "--as-of", "2026-11-21T03:00:00Z")
    #expect(explained.status == 0 && !explained.output.contains("201"), "\(explained)")
  }

  /// Later orders, deliveries and payments are neither future-dated nor orphans.
  @Test func aPastAuditHidesLaterFacts() async throws {
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201", purchased: "2026-11-16T12:00:00Z"),
      SignedShop.gems("202", purchased: "2026-11-18T12:00:00Z"),
    ])
    try await shop.order("then", transaction: "201", created: "2026-11-16T12:00:00Z")
    try await shop.order("since", transaction: "202")
    #expect(try await shop.night().result.status == 0)
    let past = try await shop.night(asOf: "2026-11-17T03:00:00Z")
    #expect(past.dispositions == ["then": "settled"])
    #expect(past.findings.isEmpty, "\(past.findings)")
    try await shop.execute("UPDATE sales.deliveries SET revoked_at = '2026-11-19T10:00:00Z' WHERE order_id = 'then'")
    #expect(try await shop.night(asOf: "2026-11-17T03:00:00Z").dispositions == ["then": "settled"])
    try await shop.nightAudit(
      "explain", "since", "--as-of", "2026-11-17T03:00:00Z", exits: [1], says: "created 2026-11-18")
    try await shop.nightAudit("explain", "then", "--as-of", "2026-11-17T03:00:00Z", exits: [0], says: "\nSettled: ")
  }

  /// Facts of Apple after the as-of are hidden, like the shop's reactions to them.
  @Test func refundsAfterTheAsOfAreHidden() async throws {
    let sold = "2026-11-08T12:00:00Z"
    var reversed = SignedShop.gems("202", purchased: sold, refunded: "2026-11-12T03:00:00Z")
    reversed["refundReversedDate"] = SignedShop.milliseconds("2026-11-20T03:02:00Z")
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201", purchased: sold, refunded: "2026-11-20T03:02:00Z"), reversed,
      SignedShop.gems("203", purchased: sold),
    ])
    try await shop.order("refunded", transaction: "201", created: sold)
    try await shop.order("reversed", transaction: "202", created: sold)
    try await shop.order("booked", transaction: "203", created: sold)
    try await shop.execute(
      """
      UPDATE sales.orders SET status = 'refunded', updated_at = '2026-11-12T03:01:00Z' WHERE order_id = 'reversed';
      UPDATE sales.deliveries SET revoked_at = '2026-11-12T03:01:00Z' WHERE order_id = 'reversed'
      """)
    try await shop.setClock("2026-11-12T12:00:00Z")
    let early = try await shop.night(asOf: "2026-11-12T12:00:00Z")
    #expect(early.dispositions == ["refunded": "settled", "reversed": "refunded", "booked": "settled"])

    try await shop.execute(
      """
      UPDATE sales.orders SET status = CASE order_id WHEN 'reversed' THEN 'verified' ELSE 'refunded' END,
        updated_at = '2026-11-20T03:02:00Z';
      UPDATE sales.deliveries SET revoked_at = '2026-11-20T03:02:00Z' WHERE order_id <> 'reversed';
      INSERT INTO sales.deliveries VALUES
        ('again', 'reversed', 'user of reversed', 'gems.100', 1, '2026-11-20T03:02:00Z', NULL)
      """)
    try await shop.setClock("2026-11-20T03:04:00Z")
    let night = try await shop.night()
    #expect(
      try await shop.value(
        """
        SELECT count(*) FROM night_audit.transactions
        WHERE greatest(revoked_at, revocation_withdrawn_at) > '\(SignedShop.asOf)'
        """) == "2")
    #expect(night.dispositions == early.dispositions)
    #expect(night.findings.isEmpty, "\(night.findings)")
    try await shop.nightAudit("explain", "reversed", "--as-of", SignedShop.asOf, exits: [0], says: "\nRefunded: ")

    try await shop.setClock("2026-11-21T03:00:00Z")
    let next = try await shop.night(asOf: "2026-11-21T03:00:00Z")
    #expect(next.dispositions == ["refunded": "refunded", "reversed": "settled", "booked": "paid_not_delivered"])
    #expect(next.findings.allSatisfy { $0["order_id"] == "booked" }, "\(next.findings)")
  }

  /// The order may be written seconds after the as-of; an hour later the payment is an orphan.
  @Test func aPaymentAwaitingItsOrderIsNoOrphan() async throws {
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201", purchased: "2026-11-20T02:59:50Z"),
      SignedShop.gems("202", purchased: "2026-11-20T01:59:59Z"),
    ])
    try await shop.order("late", transaction: "201", created: "2026-11-20T03:00:05Z")
    try await shop.order("later", transaction: "202", created: "2026-11-20T03:00:05Z")
    let later = try await shop.night(asOf: "2026-11-20T04:00:00Z")
    #expect(later.result.status == 0 && later.findings.isEmpty, "\(later)")
    let night = try await shop.night()
    #expect(night.dispositions.isEmpty)
    #expect(night.findings.map { "\($0["kind"] ?? "") \($0["transaction_id"] ?? "")" } == ["orphan_payment 202"])
  }

  /// An audit of the past ignores a later verification and a later payment, as its as-of did.
  @Test func rowsAfterTheAsOfAreNotFutureDated() async throws {
    let created = "2026-11-20T02:00:00Z"
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201", purchased: created), SignedShop.gems("202", purchased: "2026-11-20T05:00:00Z"),
    ])
    try await shop.order("verified later", transaction: "201", created: created)
    try await shop.execute("UPDATE sales.orders SET verified_at = '2026-11-20T06:00:00Z'")
    try await shop.order("bought later", transaction: "202", created: created, isDelivered: false)
    try await shop.setClock("2026-11-20T08:00:00Z")
    let tonight = try await shop.night(asOf: "2026-11-20T08:00:00Z")
    #expect(tonight.result.status == 0 && tonight.findings.allSatisfy { $0["kind"] != "future_dated" })
    let past = try await shop.night()
    #expect(past.dispositions == ["verified later": "settled", "bought later": "unconfirmed"])
    #expect(past.findings.isEmpty, "\(past.findings)")
  }

  /// Last night's answer serves the late order. Its critical finding is asked about in a second round.
  @Test func followUpQuestionsAreAskedTheSameNight() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201", purchased: "2026-11-10T12:00:00Z")])
    let proof = try await shop.signed("201")
    try await shop.order("first", created: "2026-11-10T12:00:00Z")
    try await shop.receipt(proof, for: "first")
    #expect(try await shop.night(asOf: "2026-11-19T03:00:00Z").result.status == 0)
    // The dates are so long before that night that the night does not read them again.
    try await shop.order("second", created: "2026-11-10T12:00:30Z")
    try await shop.receipt(proof, for: "second", received: "2026-11-10T12:00:31Z")
    try shop.forgetRequests()
    let next = try await shop.night(exits: 0)
    #expect(next.dispositions == ["first": "settled", "second": "delivered_not_paid"])
    #expect(try shop.timesAsked()["201"] ?? 0 > 0)
  }
}
