import Foundation
import Testing

/// Nights of a shop whose clients send app receipts and old transaction receipts that Apple signed, while Apple is asked
/// through the App Store Server API.
@Suite struct AppReceiptNightTests {
  private static let sold = "2026-11-18T12:00:00Z"

  @Test func aNightOnSignedReceipts() async throws {
    let shop = try await SignedShop(
      transactions: [
        SignedShop.gems("201"), SignedShop.gems("202", refunded: "2026-11-19T09:00:00Z"), SignedShop.gems("203"),
        SignedShop.gems("204"), SignedShop.gems("205"),
      ], signsReceipts: true)
    for (order, form, id) in [
      ("app receipt", "app", "201"), ("refunded since", "app", "202"), ("old receipt", "transaction", "203"),
      ("notification", "notification", "204"),
    ] {
      try await shop.order(order)
      try await shop.receipt(shop.payload(form, [id], at: Self.sold), for: order)
    }
    try await shop.order("no purchase in it")
    try await shop.receipt(shop.payload("appTransaction", ["205"], at: Self.sold), for: "no purchase in it")
    try shop.forgetRequests()

    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(night.payments["app receipt"] == "paid" && night.payments["old receipt"] == "paid", "\(night.payments)")
    #expect(night.payments["notification"] == "paid" && night.payments["refunded since"] == "reversed")
    #expect(night.payments["no purchase in it"]?.hasPrefix("unconfirmed") == true, "\(night.payments)")
    #expect(try shop.timesAsked() == ["201": 1, "202": 1, "203": 1, "204": 1])
    #expect(night.findings.map { $0["kind"] }.contains("delivered_not_paid") == false)
  }

  @Test(arguments: ["spaceForPlus", "otherAlphabet", "lostPadding", "lines", "quotes", "json", "bytea", "percent"])
  func whatTransportDidChangesNothing(damage: String) async throws {
    let shop = try await SignedShop(
      transactions: [SignedShop.gems("201"), SignedShop.gems("202"), SignedShop.gems("203")], signsReceipts: true)
    for (form, id) in [("app", "201"), ("transaction", "202"), ("signed", "203")] {
      try await shop.order(form)
      try await shop.receipt(shop.payload(form, [id], at: Self.sold, damage: damage), for: form)
    }
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(night.payments == ["app": "paid", "transaction": "paid", "signed": "paid"])
    #expect(night.findings.isEmpty)
  }
}
