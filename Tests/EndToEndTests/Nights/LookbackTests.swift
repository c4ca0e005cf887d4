import Foundation
import Testing

/// Orders older than the lookback are not judged, but their facts count.
@Suite struct LookbackTests {
  private static let longAgo = "2026-05-01T12:00:00Z"

  /// The refund is known from notifications only; no night has read its order.
  @Test func aRefundOfAnOldOrderIsListedOnItsOwnDay() async throws {
    let shop = try await SignedShop(
      transactions: [
        SignedShop.gems("101", purchased: Self.longAgo, refunded: "2026-11-19T09:00:00Z"), SignedShop.gems("102"),
      ])
    try await shop.order("old", transaction: "101", created: Self.longAgo)
    try await shop.order("new", transaction: "102")
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
    let refunds = rows(try Data(contentsOf: URL(fileURLWithPath: shop.directory.file("night-1/refunds.csv"))))
    #expect(refunds.map { $0["transaction_id"] } == ["101"], "\(refunds)")
    #expect(refunds.map { $0["order_id"] } == ["old"], "\(refunds)")
    #expect(refunds.map { $0["refunded_at"] } == ["2026-11-19T09:00:00Z"], "\(refunds)")
    #expect(night.dispositions == ["new": "settled"])
  }

  /// Later nights do not audit the old order, so its check and its finding would stay open.
  @Test func aReportOfAnOldPeriodLeavesNoOpenFindingsOrChecks() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("102")])
    try await shop.order("old", transaction: "101", created: Self.longAgo)
    try await shop.order("new", transaction: "102")
    #expect(try await shop.night().result.status == 0)
    let period = try await shop.night(since: "2026-05-01")
    #expect(period.result.status == 0, "\(period.result.errors)")
    #expect(period.dispositions == ["old": "unconfirmed", "new": "settled"])
    func findings(_ night: SignedShop.Night) throws -> [String?] {
      rows(try Data(contentsOf: URL(fileURLWithPath: night.directory + "/findings.csv"))).map { $0["kind"] }
    }
    #expect(try findings(period) == [])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings") == "0")
    // A report on that one order lists its finding without storing it.
    let narrowed = try await shop.night(since: "2026-05-01", "--order", "old")
    #expect(narrowed.result.status == 0, "\(narrowed.result.errors)")
    #expect(try findings(narrowed) == ["stuck_unconfirmed"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings") == "0")
  }

  @Test func thePaymentOfAnOldOrderPaysNoSecondOrder() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("101", purchased: Self.longAgo)])
    try await shop.order("owner", transaction: "101", created: Self.longAgo)
    try await shop.order("replay", transaction: "101")
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(night.payments == ["replay": "unpaid duplicate"])
    #expect(night.dispositions == ["replay": "delivered_not_paid"])
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
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
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
