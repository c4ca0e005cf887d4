import Foundation
import TestSupport
import Testing

/// Apple is asked about open accusations every night. `DuenessTests` have all nights, `AccusationTests` all proofs.
@Suite struct OpenAccusationTests {
  /// A night so many days after the first one, all before the server's present.
  private static func night(_ day: Int) -> String {
    SignedShop.text(SignedShop.milliseconds("2026-10-20T03:00:00Z") + Int64(day) * SignedShop.day)
  }

  /// A night of that day, with Apple's clock.
  private func run(_ day: Int, _ shop: SignedShop) async throws -> SignedShop.Night {
    try await shop.setClock(Self.night(day))
    return try await shop.night(asOf: Self.night(day), since: "2026-10-01", exits: 0)
  }

  /// Two users with the ID of one purchase. The later one is accused.
  private func shop() async throws -> SignedShop {
    let bought = "2026-10-18T12:00:00Z"
    let shop = try await SignedShop(transactions: [SignedShop.gems("201", purchased: bought)])
    try await shop.order("owner", transaction: "201", created: bought)
    try await shop.order("claimant", transaction: "201", created: "2026-10-18T13:00:00Z")
    #expect(Set(try await run(0, shop).kinds) == ["duplicate_claim", "delivered_not_paid"])
    return shop
  }

  private func due(_ shop: SignedShop) async throws -> String {
    try await shop.value(
      "SELECT string_agg(concat_ws(' ', accused_since, due_from), ',') FROM night_audit.receipt_checks")
  }

  @Test func explainShowsTheNextQuestionAndARepeatedNightHasTheSameBytes() async throws {
    let shop = try await shop()
    func repeated(_ day: Int) async throws {
      try shop.forgetRequests()
      let (night, again) = (try await run(day, shop), try await run(day, shop))
      #expect(try shop.timesAsked() == ["201": 1])
      #expect(try shop.file("receipts.csv", again.directory) == shop.file("receipts.csv", night.directory))
    }
    func next(asOf day: Int) async throws -> [String] {
      let explained = try await shop.nightAudit("explain", "claimant", "--as-of", Self.night(day), "--json").json()
      return (explained["proofs"] as? [[String: Any]] ?? []).compactMap { $0["next_attempt"] as? String }
    }
    #expect(try await next(asOf: 0) == ["2026-10-20T23:00:00Z"])
    try await repeated(1)
    #expect(try await next(asOf: 1) == ["2026-10-21T23:00:00Z"])
    try await repeated(2)
    // Neither a rehearsal nor a reconciliation nor an earlier night moves it.
    let noted = try await due(shop)
    try shop.forgetRequests()
    for arguments in [
      ["run", "--dry-run", "--as-of", Self.night(3)], ["reconcile", "--as-of", Self.night(3)],
      ["run", "--as-of", Self.night(1), "--out", shop.directory.file("again")],
    ] {
      try await shop.nightAudit(more: arguments, exits: [0, 3])
      #expect(try await due(shop) == noted, "\(arguments)")
    }
    #expect(try shop.timesAsked().isEmpty)
  }
}
