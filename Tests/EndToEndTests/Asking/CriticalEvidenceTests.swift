import Foundation
import TestSupport
import Testing

/// Before a critical finding is reported first, Apple is asked once more, and only about its evidence.
@Suite struct CriticalEvidenceTests {
  private static let second = "2026-11-21T03:00:00Z"
  private static let third = "2026-11-22T03:00:00Z"
  private static let minutesBefore = "2026-11-20T02:40:00Z"

  private func shop() async throws -> SignedShop {
    let shop = try await SignedShop(
      transactions: [SignedShop.gems("201", purchased: Self.minutesBefore), SignedShop.gems("202")])
    try await shop.order("late", transaction: "201", created: Self.minutesBefore, isDelivered: false)
    try await shop.order("quiet", transaction: "202")
    let night = try await shop.night(exits: 0)
    #expect(night.dispositions == ["late": "in_flight", "quiet": "settled"])
    try shop.forgetRequests()
    return shop
  }

  @Test func aRefundBeforeTheRecheckPreventsACriticalFinding() async throws {
    let shop = try await shop()
    try await shop.refund("201", at: "2026-11-20T20:00:00Z")
    // A narrowed night does not sweep, and is therefore incomplete.
    let night = try await shop.night(asOf: Self.second, "--product", "gems.100")
    #expect(!night.isOwedAnAnswer, "\(night.result.errors)")
    #expect(try shop.timesAsked() == ["201": 1])
    #expect(night.dispositions["late"] == "refunded")
    #expect(night.kinds == ["refund_not_booked"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs") == "2")
  }

  @Test func aQuietNightAsksNothingExtra() async throws {
    let shop = try await shop()
    try await shop.execute(
      "INSERT INTO sales.deliveries SELECT 'd', order_id, user_id, product_id, 1, created_at FROM sales.orders WHERE order_id = 'late'"
    )
    #expect(try await shop.night(asOf: Self.second, exits: 0).kinds == [])
    #expect(try shop.timesAsked().isEmpty)
  }

  @Test func criticalFindingsAreRecheckedOncePerNight() async throws {
    let shop = try await shop()
    let night = try await shop.night(asOf: Self.second, exits: 0)
    #expect(night.kinds == ["paid_not_delivered"])
    #expect(try shop.timesAsked() == ["201": 1])
    let again = try await shop.night(asOf: Self.second)
    #expect(again.findings == night.findings && again.receipts == night.receipts)
    #expect(try shop.timesAsked() == ["201": 1])
    // `reconcile` is no run and does not wait for answers.
    try await shop.nightAudit("reconcile", "--as-of", "2026-11-21T12:00:00Z", exits: [0])
    // Open findings are asked about when stale, not every night.
    try shop.forgetRequests()
    #expect(try await shop.night(asOf: Self.third, exits: 0).kinds == ["paid_not_delivered"])
    #expect(try shop.timesAsked().isEmpty)
    #expect(try await shop.night(asOf: "2026-11-28T03:00:00Z").kinds == ["paid_not_delivered"])
    #expect(try shop.timesAsked()["201"] == 1)
  }

  @Test(arguments: [["--max-duration", "2s"], ["--offline"]])
  func anOutageKeepsFindingsAndMakesTheNightIncomplete(_ arguments: [String]) async throws {
    let shop = try await shop()
    try await shop.control("faults", #"{"outage":true}"#)
    let night = try await shop.night(asOf: Self.second, exits: 3, more: arguments)
    let reasons = (night.summary["incomplete_reasons"] as? [String] ?? []).joined()
    #expect(reasons.contains("critical findings rest on older answers") || reasons.contains("1 receipt was due"))
    #expect(night.kinds.contains("paid_not_delivered"))
    let again = shop.directory.file("again")
    try await shop.nightAudit(
      "reconcile", "--as-of", Self.second, "--since", "2026-11-01", "--until", "2026-11-30", "--out", again, exits: [3])
    #expect(try shop.file("summary.json", again) == shop.file("summary.json", night.directory))
  }

  @Test func aCompetingOrdersReceiptIsRechecked() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201")])
    try await shop.order("owner", transaction: "201")
    try await shop.receipt(try await shop.signed("201"), for: "owner")
    #expect(try await shop.night(exits: 0).kinds == [])
    try shop.forgetRequests()
    try await shop.order("claimant", transaction: "201", created: "2026-11-18T13:00:00Z")
    let next = try await shop.night(asOf: Self.second, "--product", "gems.100")
    #expect(!next.isOwedAnAnswer, "\(next.result.errors)")
    #expect(next.kinds.contains("duplicate_claim"), "\(next.findings)")
    #expect(try shop.timesAsked()["201"] != nil)
  }
}

extension SignedShop.Night {
  fileprivate var isOwedAnAnswer: Bool {
    (summary["incomplete_reasons"] as? [String] ?? []).contains { $0.contains("were due") }
  }
}

extension SignedShop {
  /// Replaces the world by one in which the transaction is refunded, hours later.
  fileprivate func refund(_ id: String, at time: String) async throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: directory.file("world.json")))
    let world = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    let refund: [String: Any] = ["revocationDate": Self.milliseconds(time), "revocationType": "REFUND_FULL"]
    let transactions = (world["transactions"] as? [[String: Any]] ?? []).map { transaction in
      transaction["transactionId"] as? String == id ? transaction.merging(refund) { $1 } : transaction
    }
    try await control("world", self.world(transactions: transactions))
    try await setClock("2026-11-21T02:00:00Z")
  }
}
