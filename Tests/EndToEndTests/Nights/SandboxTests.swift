import Foundation
import Testing

/// Purchases without money: sandbox and App Review.
@Suite struct SandboxTests {
  @Test func sandboxBuyersAreStoredAndAppReviewIsNoFinding() async throws {
    let shop = try await SignedShop(
      transactions: ["301", "302", "303"].map { SignedShop.gems($0, environment: "Sandbox") } + [SignedShop.gems("201")]
    )
    try await shop.orders(stating: ["301", "302", "303", "201"])
    for table in ["orders", "deliveries"] {
      try await shop.execute("UPDATE sales.\(table) SET user_id = 'tester' WHERE order_id IN ('o301', 'o302')")
    }
    func night(_ environment: [String: String]) async throws -> [[String: String]] {
      try await shop.nightAudit(
        "run", "--as-of", SignedShop.asOf, "--date", "2026-11-18",
        environment: environment.merging(["NIGHT_AUDIT_AUDIT_TEST_USERS": "tester"]) { $1 }, exits: [0])
      return try shop.table("findings", "2026-11-18")
    }
    let alarmed = try await night([:])
    #expect(Set(alarmed.map { $0["kind"] }) == ["delivered_not_paid", "sandbox_delivered"])
    #expect(alarmed.allSatisfy { $0["order_id"] == "o303" && $0["severity"] == "critical" }, "\(alarmed)")
    let reviewed = try await night(["NIGHT_AUDIT_AUDIT_REVIEW_WINDOWS": "2026-11-17/2026-11-18"])
    #expect(reviewed.count == 2 && reviewed.allSatisfy { $0["severity"] == "minor" }, "\(reviewed)")
    #expect(reviewed.allSatisfy { $0["reason"]?.contains("App Review bought at that time") ?? false }, "\(reviewed)")
    let other = try await night(["NIGHT_AUDIT_AUDIT_REVIEW_WINDOWS": "2026-11-17/2026-11-17"])
    #expect(other.allSatisfy { $0["severity"] == "critical" }, "\(other)")
    #expect(
      try await shop.value(
        """
        SELECT string_agg(concat_ws(' ', user_id, product_id, currency, orders, amount, allowed), ', ' ORDER BY user_id)
        FROM (
          SELECT user_id, product_id, currency, sum(orders) AS orders, sum(amount) AS amount, bool_and(allowed) AS allowed
          FROM night_audit.bi_sandbox GROUP BY user_id, product_id, currency) s
        """) == "tester gems.100 USD 2 19.80 t, user of o303 gems.100 USD 1 9.90 f")
  }
}
