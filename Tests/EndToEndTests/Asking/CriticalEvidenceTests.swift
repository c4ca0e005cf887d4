import Foundation
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
    let night = try await shop.night()
    #expect(night.result.status == 0, "\(night.result.errors)")
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
    let asked = try shop.timesAsked()
    #expect(asked == ["201": 1], "\(asked)")
    #expect(night.dispositions["late"] == "refunded")
    #expect(night.findings.map { $0["kind"] } == ["refund_not_booked"])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.runs") == "2")
  }

  @Test func aQuietNightAsksNothingExtra() async throws {
    let shop = try await shop()
    try await shop.execute(
      "INSERT INTO sales.deliveries SELECT 'd', order_id, user_id, product_id, 1, created_at FROM sales.orders WHERE order_id = 'late'"
    )
    let night = try await shop.night(asOf: Self.second)
    #expect(night.result.status == 0 && night.findings.isEmpty)
    #expect(try shop.timesAsked().isEmpty)
  }

  @Test func criticalFindingsAreRecheckedOncePerNight() async throws {
    let shop = try await shop()
    let night = try await shop.night(asOf: Self.second)
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(night.findings.map { $0["kind"] } == ["paid_not_delivered"])
    #expect(try shop.timesAsked() == ["201": 1])
    let again = try await shop.night(asOf: Self.second)
    #expect(again.findings == night.findings && again.receipts == night.receipts)
    #expect(try shop.timesAsked() == ["201": 1])
    // `reconcile` is no run and does not wait for answers.
    let byDay = try await shop.nightAudit(["reconcile", "--as-of", "2026-11-21T12:00:00Z"])
    #expect(byDay.status == 0, "\(byDay.errors)")
    // Open findings are asked about when stale, not every night.
    try shop.forgetRequests()
    let next = try await shop.night(asOf: Self.third)
    #expect(next.result.status == 0 && next.findings.map { $0["kind"] } == ["paid_not_delivered"])
    #expect(try shop.timesAsked().isEmpty)
    let stale = try await shop.night(asOf: "2026-11-28T03:00:00Z")
    #expect(stale.findings.map { $0["kind"] } == ["paid_not_delivered"])
    #expect(try shop.timesAsked()["201"] == 1)
  }

  @Test(arguments: [["--max-duration", "2s"], ["--offline"]])
  func anOutageKeepsFindingsAndMakesTheNightIncomplete(_ arguments: [String]) async throws {
    let shop = try await shop()
    try await shop.control("faults", #"{"outage":true}"#)
    let out = shop.directory.file("out")
    let night = try await shop.nightAudit(["run", "--as-of", Self.second, "--out", out] + arguments)
    #expect(night.status == 3, "\(night.errors)")
    let summary = try String(contentsOfFile: out + "/summary.json", encoding: .utf8)
    #expect(summary.contains("critical findings rest on older answers") || summary.contains("1 receipt was due"))
    #expect(try String(contentsOfFile: out + "/findings.csv", encoding: .utf8).contains("paid_not_delivered"))
    let reconciled = try await shop.nightAudit(["reconcile", "--as-of", Self.second, "--out", out + "-again"])
    #expect(reconciled.status == 3, "\(reconciled.errors)")
    #expect(try String(contentsOfFile: out + "-again/summary.json", encoding: .utf8) == summary)
  }

  @Test func aCompetingOrdersReceiptIsRechecked() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201")])
    try await shop.order("owner", transaction: "201")
    try await shop.receipt(try await shop.signed("201"), for: "owner")
    let night = try await shop.night()
    #expect(night.result.status == 0 && night.findings.isEmpty, "\(night.findings)")
    try shop.forgetRequests()
    try await shop.order("claimant", transaction: "201", created: "2026-11-18T13:00:00Z")
    let next = try await shop.night(asOf: Self.second, "--product", "gems.100")
    #expect(!next.isOwedAnAnswer, "\(next.result.errors)")
    #expect(next.findings.contains { $0["kind"] == "duplicate_claim" }, "\(next.findings)")
    #expect(try shop.timesAsked()["201"] != nil)
  }
}

extension SignedShop.Night {
  fileprivate var isOwedAnAnswer: Bool {
    (summary["incomplete_reasons"] as? [String] ?? []).contains { $0.contains("were due") }
  }
}

extension SignedShop {
  fileprivate func refund(_ id: String, at time: String) async throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: directory.file("world.json")))
    var world = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
    let transactions = world["transactions"] as? [[String: Any]] ?? []
    world["transactions"] = transactions.map { transaction in
      var changed = transaction
      if transaction["transactionId"] as? String == id {
        changed["revocationDate"] = Self.milliseconds(time)
        changed["revocationType"] = "REFUND_FULL"
      }
      return changed
    }
    world["now"] = Self.milliseconds("2026-11-21T02:00:00Z")
    try await control(
      "world", String(decoding: try JSONSerialization.data(withJSONObject: world), as: UTF8.self))
    try await control("clock", #"{"now":\#(Self.milliseconds("2026-11-21T02:00:00Z"))}"#)
  }
}
