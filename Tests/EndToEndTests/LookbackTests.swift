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
}
