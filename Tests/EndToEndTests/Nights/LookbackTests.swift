import Foundation
import Testing

/// Orders older than the lookback are not judged, but their facts count.
@Suite struct LookbackTests {
  private static let longAgo = "2026-05-01T12:00:00Z"

  /// The refund is known from notifications only; no night has read its order. The payment of an old order pays no
  /// second one.
  @Test func aRefundAndAPaymentOfOldOrdersCount() async throws {
    let shop = try await SignedShop(
      transactions: [
        SignedShop.gems("101", purchased: Self.longAgo, refunded: "2026-11-19T09:00:00Z"), SignedShop.gems("102"),
        SignedShop.gems("103", purchased: Self.longAgo),
      ])
    try await shop.order("old", transaction: "101", created: Self.longAgo)
    try await shop.order("new", transaction: "102")
    try await shop.order("owner", transaction: "103", created: Self.longAgo)
    try await shop.order("replay", transaction: "103")
    let night = try await shop.night(exits: 0)
    let refunds = try shop.table("refunds", night.directory).map { row in
      ["transaction_id", "order_id", "refunded_at"].map { row[$0] ?? "" }
    }
    #expect(refunds == [["101", "old", "2026-11-19T09:00:00Z"]])
    #expect(night.payments == ["new": "paid", "replay": "unpaid duplicate"])
    #expect(night.dispositions == ["new": "settled", "replay": "delivered_not_paid"])
  }

  /// Later nights do not audit the old order, so its check and its finding would stay open.
  @Test func aReportOfAnOldPeriodLeavesNoOpenFindingsOrChecks() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("102")])
    try await shop.order("old", transaction: "101", created: Self.longAgo)
    try await shop.order("new", transaction: "102")
    #expect(try await shop.night().result.status == 0)
    let period = try await shop.night(since: "2026-05-01", exits: 0)
    #expect(period.dispositions == ["old": "unconfirmed", "new": "settled"])
    #expect(period.kinds == [])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings") == "0")
    // A report on that one order lists its finding without storing it.
    let narrowed = try await shop.night(since: "2026-05-01", exits: 0, "--order", "old")
    #expect(narrowed.kinds == ["stuck_unconfirmed"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings") == "0")
  }

  /// Old receipts decide ownership. They are not asked about and do not delay later orders of the customer.
  @Test func anOldReceiptPaysOnlyItsOwnOrder() async throws {
    let shop = try await SignedShop(
      transactions: [
        SignedShop.gems("101", purchased: Self.longAgo), SignedShop.gems("102", purchased: Self.longAgo),
        SignedShop.gems("103", environment: "Sandbox"),
      ], audit: "testUsers: [tester]")
    let sold = try await shop.signed("101")
    try await shop.order("owner", transaction: "101", created: Self.longAgo)
    try await shop.receipt(sold, for: "owner", received: Self.longAgo)
    try await shop.order("replay", transaction: "101")
    try await shop.receipt(sold, for: "replay")
    try await shop.order("former", transaction: "102", created: Self.longAgo)
    try await shop.receipt(try await shop.signed("102"), for: "former", received: Self.longAgo)
    try await shop.order("tester", transaction: "103")
    try await shop.receipt(try await shop.signed("103"), for: "tester")
    try await shop.execute("UPDATE sales.orders SET user_id = 'tester' WHERE order_id IN ('former', 'tester')")
    try await shop.execute("UPDATE sales.receipts SET user_id = 'tester' WHERE order_id IN ('former', 'tester')")
    try shop.forgetRequests()
    let night = try await shop.night(exits: 0)
    #expect(night.payments["replay"] == "unpaid duplicate")
    #expect(night.dispositions == ["replay": "delivered_not_paid", "tester": "sandbox"])
    #expect(try shop.timesAsked() == ["101": 1])
    try shop.forgetRequests()
    let next = try await shop.night(asOf: "2026-11-21T03:00:00Z", since: "2026-11-18")
    #expect(next.payments == night.payments && next.result.status == 0, "\(next.result.errors)")
    // The accusation of the second order is asked about again, and the old receipt is not.
    #expect(try shop.timesAsked() == ["101": 1])
  }
}
