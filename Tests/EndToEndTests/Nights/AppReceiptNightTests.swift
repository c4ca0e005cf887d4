import Foundation
import Testing

/// Nights with signed app receipts and old receipts. Apple is asked by the App Store Server API.
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

    let night = try await shop.night(exits: 0)
    #expect(night.payments["app receipt"] == "paid" && night.payments["old receipt"] == "paid", "\(night.payments)")
    #expect(night.payments["notification"] == "paid" && night.payments["refunded since"] == "reversed")
    #expect(night.payments["no purchase in it"]?.hasPrefix("unconfirmed") == true, "\(night.payments)")
    #expect(try shop.timesAsked() == ["201": 1, "202": 1, "203": 1, "204": 1])
    #expect(night.findings.map { $0["kind"] }.contains("delivered_not_paid") == false)
  }

  @Test func refundsAreBookedOnceTheirShareIsKnown() async throws {
    let details: [String: Any] = [
      "type": "Auto-Renewable Subscription", "expiresDate": SignedShop.milliseconds("2026-12-18T12:00:00Z"),
      "subscriptionGroupIdentifier": "g", "revocationType": "REFUND_PRORATED", "revocationPercentage": 40_000,
    ]
    let refunded = "2026-11-19T09:00:00Z"
    let shop = try await SignedShop(
      transactions: ["201", "202"].map { SignedShop.gems($0, refunded: refunded).merging(details) { $1 } },
      signsReceipts: true)
    try await shop.order("listed")
    try await shop.receipt(shop.payload("app", ["201"], at: "2026-11-19T12:00:00Z"), for: "listed")
    try await shop.order("claimed by nobody", created: "2026-10-01T12:00:00Z")
    try await shop.receipt(shop.payload("app", ["202"], at: "2026-11-19T12:00:00Z"), for: "claimed by nobody")
    func refunds(_ night: SignedShop.Night) throws -> [String: String] {
      let refunds = try shop.table("refunds", night.directory)
      return Dictionary(uniqueKeysWithValues: refunds.map { ($0["transaction_id"] ?? "", $0["percentage"] ?? "") })
    }
    try await shop.control("faults", #"{"outage":true}"#)
    let silent = try await shop.night(exits: 3, "--max-duration", "2s")
    #expect(silent.payments["listed"] == "unconfirmed awaiting_evidence", "\(silent.payments)")
    #expect(try refunds(silent).isEmpty)
    #expect(!silent.findings.contains { $0["kind"]?.contains("refund") == true }, "\(silent.findings)")
    try await shop.control("faults", #"{"outage":false}"#)
    let told = try await shop.night(asOf: "2026-11-20T05:00:00Z")
    #expect(told.payments["listed"] == "paid", "\(told.result.errors)")
    #expect(try refunds(told) == ["201": "40", "202": "40"])
    #expect(told.findings.contains { $0["kind"] == "partial_refund" && $0["order_id"] == "listed" })
  }

  /// A receipt shows neither the refunded share nor a reversal, however long ago Apple refunded the purchase.
  @Test func purchasesOfTheReceiptsOrderAreAskedAboutAfterTheRefundWindow() async throws {
    let (bought, refunded) = ("2026-10-01T12:00:00Z", "2026-10-02T12:00:00Z")
    func purchase(_ id: String, _ details: [String: Any]) -> [String: Any] {
      SignedShop.gems(id, purchased: bought, refunded: refunded).merging(["type": "Non-Consumable"]) { $1 }
        .merging(details) { $1 }
    }
    let shop = try await SignedShop(
      transactions: [
        purchase("201", ["revocationType": "REFUND_PRORATED", "revocationPercentage": 20_000]),
        purchase("202", ["refundReversedDate": SignedShop.milliseconds("2026-10-10T12:00:00Z")]),
      ], signsReceipts: true)
    try shop.configure("recheck:\n  refundWindow: 10d")
    for (order, id) in [("half", "201"), ("reversed", "202")] {
      try await shop.order(order, created: bought)
      try await shop.receipt(
        shop.payload("app", [id], at: "2026-10-05T12:00:00Z"), for: order, received: "2026-10-05T12:00:01Z")
    }
    try shop.forgetRequests()
    let night = try await shop.night(since: "2026-10-01", exits: 0)
    #expect(try shop.timesAsked() == ["201": 1, "202": 1])
    #expect(night.payments == ["half": "paid", "reversed": "paid"], "\(night.payments)")
    #expect(!night.kinds.contains("refunded_still_delivered") && !night.kinds.contains("refund_not_booked"))
    try shop.forgetRequests()
    try await shop.nightAudit("recheck", "--order", "half", "--as-of", "2026-11-20T05:00:00Z", exits: [0])
    #expect(try shop.timesAsked() == ["201": 1])
  }

  @Test func theShareOfAReceiptsRefundStaysOpenBesideANotificationOfTheSale() async throws {
    let details: [String: Any] = [
      "type": "Non-Consumable", "receiptCancellationDate": SignedShop.milliseconds("2026-11-19T09:00:00Z"),
    ]
    let shop = try await SignedShop(
      transactions: [SignedShop.gems("201").merging(details) { $1 }],
      errors: ["201": ["errorCode": 5_000_001, "httpStatus": 500]], signsReceipts: true)
    try await shop.order("listed")
    try await shop.receipt(shop.payload("app", ["201"], at: "2026-11-19T12:00:00Z"), for: "listed")
    let night = try await shop.night(exits: 3)
    #expect(night.payments["listed"] == "unconfirmed awaiting_evidence", "\(night.payments)")
    #expect(try shop.table("refunds", night.directory).isEmpty)
    #expect(!night.findings.contains { $0["kind"]?.contains("refund") == true }, "\(night.findings)")
  }

  @Test func aRefundOfASecondChargeHasItsOwnPrice() async throws {
    let part: [String: Any] = [
      "price": 5_000, "currency": "EUR", "revocationType": "REFUND_PRORATED", "revocationPercentage": 40_000,
    ]
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201"),
      SignedShop.gems("202", purchased: "2026-11-18T12:00:05Z", refunded: "2026-11-19T09:00:00Z")
        .merging(part) { $1 },
    ])
    try await shop.order("o")
    for id in ["201", "202"] {
      let payload = try await shop.signed(id, at: "2026-11-18T12:01:00Z")
      try await shop.execute(
        """
        INSERT INTO sales.receipts VALUES ('\(id)', 'o', 'user of o', '\(payload)', NULL, 'timeout', NULL,
          '2026-11-18T12:01:01Z')
        """)
    }
    let night = try await shop.night()
    #expect(night.payments == ["o": "paid"], "\(night.result.errors)")
    let refunds = try shop.table("refunds", night.directory)
    #expect(refunds.map { $0["order_id"] } == ["o"] && refunds.map { $0["transaction_id"] } == ["202"], "\(refunds)")
    #expect(refunds.map { $0["amount"] } == ["-2.00"] && refunds.map { $0["currency"] } == ["EUR"], "\(refunds)")
  }
}
