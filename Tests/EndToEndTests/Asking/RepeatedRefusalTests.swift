import Foundation
import TestSupport
import Testing

/// A refused proof is asked about again when Apple's answer, the root certificates or the shop's row may have changed.
@Suite struct RepeatedRefusalTests {
  private static func night(_ day: Int) -> String { "2026-11-\(day)T03:00:00Z" }

  @Test func anIDThatAppleKnowsDaysLaterIsPaid() async throws {
    let shop = try await SignedShop(transactions: [])
    try await shop.order("o", transaction: "100", created: "2026-11-10T12:00:00Z")
    for day in [20, 21, 23] {
      let night = try await shop.night(asOf: Self.night(day))
      #expect(night.payments["o"] == "unpaid not_found", "\(day)")
      #expect(night.findings.contains { $0["kind"] == "delivered_not_paid" }, "\(day)")
    }
    let purchase = SignedShop.gems("100", purchased: "2026-11-10T12:00:00Z")
    try await shop.control("world", try shop.world(transactions: [purchase]))
    let later = try await shop.night(asOf: Self.night(24))
    #expect(later.payments["o"] == "paid" && later.findings.isEmpty, "\(later.payments) \(later.findings)")
  }

  @Test func aReceiptUnderARootThatArrivesLaterIsPaid() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("100")], signsReceipts: true)
    let other = try await SignedShop(transactions: [], signsReceipts: true)
    try await shop.order("o")
    try await shop.receipt(shop.payload("app", ["100"], at: "2026-11-18T12:00:00Z"), for: "o")
    let file = shop.directory.file("roots/receipts.pem")
    let root = try String(contentsOfFile: file, encoding: .utf8)
    try String(contentsOfFile: other.directory.file("roots/receipts.pem"), encoding: .utf8)
      .write(toFile: file, atomically: true, encoding: .utf8)
    let check = "the certificates do not lead to a trusted root"
    for day in [20, 21] {
      let night = try await shop.night(asOf: Self.night(day))
      #expect(night.payments["o"] == "unpaid signature_invalid", "\(day)")
      #expect(night.receipts.allSatisfy { $0["reason"] == "signature_invalid" }, "\(night.receipts)")
      #expect(night.findings.contains { $0["kind"] == "signature_invalid" && $0["reason"]?.contains(check) == true })
    }
    let explained = try await shop.nightAudit("explain", "o")
    #expect(explained.output.contains(check), "\(explained)")
    try root.write(toFile: file, atomically: true, encoding: .utf8)
    let later = try await shop.night(asOf: Self.night(22))
    #expect(later.payments["o"] == "paid" && later.findings.isEmpty, "\(later.payments) \(later.findings)")
  }

  /// The simulated certificates end with the year 2049.
  @Test func aCertificateThatHadExpiredByHoursIsNoForgery() async throws {
    let shop = try await SignedShop(transactions: ["100", "101"].map { SignedShop.gems($0) }, signsReceipts: true)
    let signed = "2050-01-01T05:00:00Z"
    for (order, form, ids) in [("signed", "signed", ["100"]), ("app", "app", ["101"]), ("empty", "app", [])] {
      try await shop.order(order)
      let payload = try await shop.payload(
        form, ids, at: signed, environment: "Production", bundleId: "com.example.game")
      try await shop.receipt(payload, for: order)
    }
    let night = try await shop.night()
    #expect(
      night.payments == ["signed": "paid", "app": "paid", "empty": "unconfirmed certificate_expired"],
      "\(night.payments)")
    #expect(!night.findings.contains { $0["kind"] == "signature_invalid" }, "\(night.findings)")
  }

  @Test func aRecheckOfOneOrderAlwaysAsksAndReportsAMissingOrder() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("100")])
    try await shop.order("o", transaction: "100")
    _ = try await shop.night()
    try shop.forgetRequests()
    try await shop.nightAudit("recheck", "--order", "o", "--as-of", "2026-11-20T03:01:00Z", exits: [0])
    #expect(try shop.timesAsked() == ["100": 1])
    let missing = "the shop has no order for --order no-such-order"
    for more in [[], ["--dry-run"]] {
      try await shop.nightAudit(
        "recheck", "--order", "no-such-order", "--as-of", "2026-11-20T03:01:00Z", more: more, exits: [0], says: missing)
    }
  }
}
