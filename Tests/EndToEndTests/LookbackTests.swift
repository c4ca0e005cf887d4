import Foundation
import Testing

/// What lies further back than a night looks: no order of that time is judged, and nothing of it is forgotten.
@Suite struct LookbackTests {
  private static let longAgo = "2026-05-01T12:00:00Z"

  /// Only Apple's notifications tell of it, and no night has ever read its order.
  @Test func aRefundOfAnOrderOfLongAgoIsListedOnTheDayOfTheRefund() async throws {
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

  /// No night would ask about them, or meet their findings again.
  @Test func aReportOfThatTimeLeavesNothingOpenAndNothingOwed() async throws {
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
    // Whoever asks for that one order is told what is wrong with it, and nothing is kept of it.
    let narrowed = try await shop.night(since: "2026-05-01", "--order", "old")
    #expect(narrowed.result.status == 0, "\(narrowed.result.errors)")
    #expect(try findings(narrowed) == ["stuck_unconfirmed"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.findings") == "0")
  }

  /// On a database that has never heard of the first one.
  @Test func aPaymentWhoseOwnerIsOfLongAgoPaysNoSecondOrder() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("101", purchased: Self.longAgo)])
    try await shop.order("owner", transaction: "101", created: Self.longAgo)
    try await shop.order("replay", transaction: "101")
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(night.payments == ["replay": "unpaid duplicate"])
    #expect(night.dispositions == ["replay": "delivered_not_paid"])
  }

  /// Receipts of long ago say whose a payment is, on a database that has never heard of them; nobody is asked about them, and no
  /// later order of the same customer waits for them.
  @Test func aReceiptOfLongAgoPaysNoSecondOrder() async throws {
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
    // The same customer, long ago and lately: what came long ago leaves nothing open.
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
    // Once, for the sake of the order of lately.
    #expect(try shop.timesAsked() == ["101": 1])
    try shop.forgetRequests()
    let next = try await shop.night(asOf: "2026-11-21T03:00:00Z", since: "2026-11-18")
    #expect(next.payments == night.payments && next.result.status == 0, "\(next.result.errors)")
    #expect(try shop.timesAsked().isEmpty)
  }
}
