import Foundation
import Testing

@Suite struct ServerAPINightTests {
  private static let old = "2026-11-16T12:00:00Z"
  private static let older = "2026-11-10T12:00:00Z"
  private static let young = "2026-11-19T20:00:00Z"

  @Test func everyKindOfAnswerHasItsDisposition() async throws {
    let shop = try await SignedShop(
      transactions: [
        SignedShop.gems("101"), SignedShop.gems("102", refunded: "2026-11-19T09:00:00Z"),
        SignedShop.gems("103", purchased: Self.older), SignedShop.gems("104", environment: "Sandbox"),
        SignedShop.gems("106"), SignedShop.gems("107"),
      ], errors: ["105": ["errorCode": 4_040_001]])
    try await shop.order("signed")
    try await shop.receipt(shop.signed("101"), for: "signed")
    try await shop.order("refunded since")
    try await shop.receipt(shop.signed("102"), for: "refunded since")
    try await shop.order("looked up", transaction: "103", created: Self.older)
    try await shop.order("second claim", transaction: "103")
    try await shop.order("told by the sweep", transaction: "107")
    try await shop.order("sandbox", transaction: "104")
    try await shop.order("account gone", transaction: "105")
    try await shop.order("unknown", transaction: "999", created: Self.old)
    try await shop.order("unknown yet", transaction: "998", created: Self.young)
    try await shop.order("no id of ours", transaction: "GPA.3312-5", created: Self.old)
    try await shop.order("endless id", transaction: String(repeating: "9", count: 9_000), created: Self.old)
    try await shop.order("forged")
    let parts = try await shop.signed("101").split(separator: ".")
    try await shop.receipt(
      "\(parts[0]).\(parts[1]).\(try await shop.signed("106").split(separator: ".")[2])", for: "forged")
    try shop.forgetRequests()

    let night = try await shop.night(exits: 0)
    #expect(
      night.payments == [
        "signed": "paid", "refunded since": "reversed", "looked up": "paid", "second claim": "unpaid duplicate",
        "told by the sweep": "paid",
        "sandbox": "unpaid sandbox", "account gone": "unconfirmed account_gone", "unknown": "unpaid not_found",
        "unknown yet": "unconfirmed not_found_yet", "no id of ours": "unpaid no_evidence",
        "endless id": "", "forged": "unpaid signature_invalid",
      ])
    #expect(night.dispositions["refunded since"] == "refunded_still_delivered")
    #expect(night.dispositions["endless id"] == "bad_row")
    #expect(night.summary["complete"] as? Bool == true)
    // Two orders with one ID are one question. Unknown IDs are asked about in both environments. There is no question
    // about invalid IDs and notified transactions.
    #expect(try shop.timesAsked() == ["101": 1, "102": 1, "103": 1, "104": 2, "105": 1, "998": 2, "999": 2])
    let channels = night.receipts.map { "\($0["order_id"] ?? "") \($0["channel"] ?? "") \($0["outcome"] ?? "")" }
    #expect(
      channels.sorted() == [
        "forged offline rejected", "refunded since serverApi verified", "signed serverApi verified",
      ])

    try shop.forgetRequests()
    let again = try await shop.night()
    #expect(again.payments == night.payments && again.result.status == 0)
    #expect(try shop.timesAsked().isEmpty)

    // Apple is asked about open accusations again every night. It may know an ID, or take a refund back, days later.
    let next = try await shop.night(asOf: "2026-11-23T03:00:00Z")
    #expect(try shop.timesAsked() == ["102": 1, "103": 1, "104": 1, "998": 2, "999": 2])
    #expect(next.payments["unknown yet"] == "unpaid not_found")
  }

  @Test func accessDuringApplesGracePeriodIsNoFinding() async throws {
    // Expired 19 days before the night, longer ago than audit.subscriptionGrace; Apple's billing retry takes 28 days.
    func month(_ id: String) -> [String: Any] {
      var month = SignedShop.gems(id, purchased: "2026-10-01T12:00:00Z")
      month["type"] = "Auto-Renewable Subscription"
      month["expiresDate"] = SignedShop.milliseconds("2026-11-01T12:00:00Z")
      month["customer"] = "customer of \(id)"
      return month
    }
    var collecting = month("301")
    collecting["gracePeriodExpiresDate"] = SignedShop.milliseconds("2026-11-29T12:00:00Z")
    collecting["isInBillingRetryPeriod"] = true
    let shop = try await SignedShop(transactions: [collecting, month("302")])
    for (order, id) in [("in grace", "301"), ("lapsed", "302")] {
      try await shop.order(order, transaction: id, created: "2026-10-01T12:00:00Z")
    }
    let night = try await shop.night(exits: 0)
    #expect(night.findings.map { "\($0["order_id"] ?? "") \($0["kind"] ?? "")" } == ["lapsed lapsed_still_served"])
  }

  @Test func signedDataPaysWhileAppleIsDown() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("101"), SignedShop.gems("102")])
    try await shop.order("signed")
    try await shop.receipt(shop.signed("101"), for: "signed")
    try await shop.order("looked up", transaction: "102")
    try await shop.control("faults", #"{"outage":true}"#)
    let night = try await shop.night(asOf: SignedShop.asOf, exits: 3, "--max-duration", "1s")
    #expect(night.payments["signed"] == "paid")
    #expect(night.payments["looked up"]?.hasPrefix("unconfirmed ") == true, "\(night.payments)")
    #expect(night.dispositions["signed"] == "settled" && night.findings.isEmpty)
    try await shop.control("faults", #"{"outage":false}"#)
    let again = try await shop.night(asOf: "2026-11-20T05:00:00Z", exits: 0)
    #expect(again.payments == ["signed": "paid", "looked up": "paid"])
  }

  @Test func anUnansweredLookupIsAFindingWithItsAttempts() async throws {
    let shop = try await SignedShop(transactions: [], errors: ["102": ["errorCode": 5_000_001]])
    try await shop.order("looked up", transaction: "102", created: Self.old)
    // After two days without an answer it is a finding, and the night is complete.
    for (asOf, attempts, status) in [
      ("2026-11-20T03:00:00Z", "1 attempt", Int32(3)), ("2026-11-21T03:00:00Z", "2 attempts", 3),
      ("2026-11-22T03:00:00Z", "3 or more attempts", 0),
    ] {
      let night = try await shop.night(asOf: asOf, exits: status)
      #expect(night.payments == ["looked up": "unconfirmed apple_error"])
      #expect(night.kinds == ["stuck_unconfirmed"])
      let reason = night.findings.first?["reason"] ?? ""
      #expect(reason.contains("after \(attempts): Apple answered with an error"), "\(reason)")
    }
    try await shop.control("world", shop.world(transactions: [SignedShop.gems("102", purchased: Self.old)]))
    let night = try await shop.night(asOf: "2026-11-23T03:00:00Z", exits: 0)
    #expect(night.payments == ["looked up": "paid"] && night.findings.isEmpty)
  }

  @Test func anIncompleteNightSaysWhetherAppleWasAsked() async throws {
    let shop = try await SignedShop(transactions: [], errors: ["102": ["errorCode": 5_000_001]])
    try await shop.order("looked up", transaction: "102")
    for (arguments, reason) in [
      (["--offline"], "1 receipt was due, and Apple was not asked about it. The next re-check asks."),
      ([], "1 receipt was due and Apple has given no usable answer for it: Apple answered with an error."),
    ] {
      let night = try await shop.night(exits: 3, more: arguments)
      let reasons = night.summary["incomplete_reasons"] as? [String] ?? []
      #expect(reasons.contains(reason), "\(reasons)")
    }
  }

  @Test func aRefusedKeyIs78WithAReportAndAccusesNobody() async throws {
    let broken = SignedShop.App(name: "other", bundleId: "com.example.other", isKeyRevoked: true)
    let shop = try await SignedShop(
      apps: [SignedShop.game, broken],
      transactions: [SignedShop.gems("101"), SignedShop.gems("201", app: broken), SignedShop.gems("202", app: broken)])
    let orders = (1...30).map { number in
      SignedShop.orderStatements("game \(number)", transaction: "101")
        + SignedShop.orderStatements("other \(number)", transaction: "201", app: broken, created: Self.old)
        + SignedShop.orderStatements(
          "other alone \(number)", transaction: "\(300 + number)", app: broken, created: Self.old)
    }
    try await shop.execute(orders.joined())
    let night = try await shop.night(exits: 78)
    #expect(night.result.errors.contains("HTTP 401"))
    #expect(night.summary["complete"] as? Bool == false)
    #expect(night.payments["game 1"] == "paid" && night.payments["game 2"] == "unpaid duplicate")
    #expect(
      night.payments.filter { $0.key.hasPrefix("other") }.allSatisfy {
        ["unconfirmed never_checked", "unconfirmed apple_error"].contains($0.value)
      })
    #expect(try shop.timesAsked().filter { $0.key != "101" }.count < 10)
  }
}
