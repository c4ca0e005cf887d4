import Foundation
import Testing

/// Apple is asked about open accusations every night for 14 days, then weekly.
@Suite struct OpenAccusationTests {
  /// A night so many days after the first one, all before the server's present.
  private static func night(_ day: Int) -> String {
    let first = SignedShop.milliseconds("2026-10-20T03:00:00Z") / 1_000
    return Date(timeIntervalSince1970: TimeInterval(first + Int64(day) * 86_400)).ISO8601Format()
  }

  /// A night of that day, with Apple's clock.
  private func run(_ day: Int, _ shop: SignedShop) async throws -> SignedShop.Night {
    try await shop.control("clock", #"{"now":\#(SignedShop.milliseconds(Self.night(day)))}"#)
    return try await shop.night(asOf: Self.night(day), since: "2026-10-01")
  }

  /// Two users with the ID of one purchase. The later one is accused.
  private func shop() async throws -> SignedShop {
    let bought = "2026-10-18T12:00:00Z"
    let shop = try await SignedShop(transactions: [SignedShop.gems("201", purchased: bought)])
    try await shop.order("owner", transaction: "201", created: bought)
    try await shop.order("claimant", transaction: "201", created: "2026-10-18T13:00:00Z")
    let night = try await run(0, shop)
    #expect(night.result.status == 0, "\(night.result.errors)")
    #expect(Set(night.findings.compactMap { $0["kind"] }) == ["duplicate_claim", "delivered_not_paid"])
    return shop
  }

  private func due(_ shop: SignedShop) async throws -> String {
    try await shop.value(
      "SELECT string_agg(concat_ws(' ', accused_since, due_from), ',') FROM night_audit.receipt_checks")
  }

  @Test func anOpenAccusationIsAskedAboutForFourteenNightsThenWeekly() async throws {
    let shop = try await shop()
    var asked: [Int] = []
    for day in 1...22 {
      try shop.forgetRequests()
      let night = try await run(day, shop)
      #expect(night.result.status == 0, "\(night.result.errors)")
      #expect(night.findings.contains { $0["kind"] == "duplicate_claim" }, "\(day)")
      if try shop.timesAsked()["201"] != nil { asked.append(day) }
    }
    #expect(asked == Array(1...14) + [21])
  }

  @Test func explainShowsTheNextQuestionAndNothingElseMovesIt() async throws {
    let shop = try await shop()
    func next(asOf day: Int) async throws -> [String] {
      let explained = try await shop.nightAudit("explain", "claimant", "--as-of", Self.night(day), "--json")
      let document = try JSONSerialization.jsonObject(with: Data(explained.output.utf8)) as? [String: Any]
      return (document?["proofs"] as? [[String: Any]] ?? []).compactMap { $0["next_attempt"] as? String }
    }
    #expect(try await next(asOf: 0) == ["2026-10-20T23:00:00Z"])
    _ = try await run(1, shop)
    #expect(try await next(asOf: 1) == ["2026-10-21T23:00:00Z"])
    _ = try await run(2, shop)
    let noted = try await due(shop)
    try shop.forgetRequests()
    for arguments in [
      ["run", "--dry-run", "--as-of", Self.night(3)], ["reconcile", "--as-of", Self.night(3)],
      ["run", "--as-of", Self.night(1), "--out", shop.directory.file("again")],
    ] {
      let result = try await shop.nightAudit(arguments)
      #expect([0, 3].contains(result.status), "\(arguments) \(result)")
      #expect(try await due(shop) == noted, "\(arguments)")
    }
    #expect(try shop.timesAsked().isEmpty)
  }

  @Test func theEndOfAnAccusationEndsTheNightlyQuestions() async throws {
    let shop = try await shop()
    _ = try await run(1, shop)
    try await shop.execute(
      """
      UPDATE sales.deliveries SET revoked_at = '2026-10-21T12:00:00Z' WHERE order_id = 'claimant';
      UPDATE sales.orders SET status = 'failed' WHERE order_id = 'claimant'
      """)
    let closing = try await run(2, shop)
    #expect(!closing.findings.contains { $0["severity"] == "critical" }, "\(closing.findings)")
    try shop.forgetRequests()
    _ = try await run(3, shop)
    #expect(try shop.timesAsked().isEmpty)
    #expect(try await due(shop) == "2026-10-29 03:00:00+00")
  }

  @Test func aNightMadeAgainHasTheSameBytes() async throws {
    let shop = try await shop()
    func receipts(_ night: SignedShop.Night) throws -> String {
      try String(contentsOfFile: night.directory + "/receipts.csv", encoding: .utf8)
    }
    for day in 1...2 {
      let night = try await run(day, shop)
      let again = try await run(day, shop)
      #expect(try receipts(again) == receipts(night))
    }
  }
}
