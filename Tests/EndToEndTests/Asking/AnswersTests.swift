import Foundation
import Testing

@Suite struct AnswersTests {
  /// App receipts only: the answer to an old receipt has no list of purchases.
  private static let verified = """
    SELECT count(*) FROM night_audit.receipt_checks
    WHERE outcome = 'verified' AND channel = 'verifyReceipt' AND payload_kind = 'app'
    """

  private func recheck(_ shop: Rehearsal, day: Int, within limit: String = "5m") async throws -> Program.Result {
    try await shop.nightAudit("recheck", "--as-of", "2026-11-\(day)T03:00:00Z", "--max-duration", limit)
  }

  /// The night is incomplete, and the next one asks again. An answer about another environment waits for a person.
  @Test func answersWithoutContentOrAboutAnotherReceiptAreNoAnswers() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [])
    // `VerifyReceiptReadingTests` has all shapes.
    for (day, shape) in [
      #""receipt":"emptyReceipt""#, #""receipt":"surrogateInApp""#, #""status":21099"#,
      #""receipt":"otherEnvironment""#,
    ].enumerated() {
      try await shop.control("faults", #"{"force":[{\#(shape)}]}"#)
      let bad = try await recheck(shop, day: 10 + day, within: "2s")
      // An answer that contradicts itself is for a person to decide, so that nothing is owed.
      #expect(bad.status == 3 || shape.contains("otherEnvironment") && bad.status == 0, "\(shape): \(bad)")
      #expect(try await shop.value(Self.verified) == "0", "\(shape)")
    }
    try await shop.control("faults", #"{"force":[]}"#)
    let good = try await recheck(shop, day: 14)
    #expect(good.status == 3 || good.status == 0, "\(good)")
    #expect(Int(try await shop.value(Self.verified)) ?? 0 > 300)
  }

  @Test func anAnswerThatLacksPurchasesIsAskedForAgainTheNextNight() async throws {
    let shop = try await Rehearsal.sampleShop(simulator: [])
    func answers(_ day: Int) async throws -> Int {
      Int(try await shop.value("SELECT count(*) FROM night_audit.answers WHERE as_of = '2026-11-\(day)T03:00:00Z'"))
        ?? 0
    }
    _ = try await recheck(shop, day: 20)
    _ = try await recheck(shop, day: 21)
    let few = try await answers(21)
    try await shop.control("faults", #"{"force":[{"receipt":"lacksPurchases"}]}"#)
    _ = try await recheck(shop, day: 28)
    try await shop.control("faults", #"{"force":[]}"#)
    _ = try await recheck(shop, day: 29)
    #expect(try await answers(29) > few + 100)
    _ = try await recheck(shop, day: 30)
    #expect(try await answers(30) <= few)
  }

  /// A zero date in a zone east of Greenwich, and the oldest date that the sales schema allows.
  @Test func anOrderThatWasChangedBefore1970IsAskedAbout() async throws {
    let changes = ["1001": "1969-12-31 23:59:59.999999+00", "1002": "1901-01-01 00:00:00+00"]
    let shop = try await SignedShop(
      sales: changes.keys.map { ["transactionId": $0, "purchaseDate": SignedShop.start - 150 * SignedShop.day] })
    for (id, changed) in changes {
      try await shop.sell(id, naming: id, at: SignedShop.start - SignedShop.day)
      try await shop.execute("UPDATE sales.orders SET updated_at = '\(changed)' WHERE order_id = '\(id)'")
    }
    try await shop.night(0, exits: [0])
    #expect(try shop.timesAsked() == ["1001": 1, "1002": 1])
  }

  /// A stopped process keeps its session. The night asks about its leased checks.
  @Test func aStoppedRecheckDoesNotDelayTheNight() async throws {
    let ids = (1001...1005).map(String.init)
    let shop = try await SignedShop(
      sales: ids.map { ["transactionId": $0, "purchaseDate": SignedShop.start - 150 * SignedShop.day] },
      latency: "400ms")
    try shop.configure("appstore.timeout: 2s")
    for id in ids { try await shop.sell("o\(id)", naming: id, at: SignedShop.start - SignedShop.day) }
    let recheck = try shop.start("recheck", "--as-of", SignedShop.asOf(0))
    while recheck.process.isRunning,
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE worker IS NOT NULL") != "5"
    {
      await pause()
    }
    #expect(kill(recheck.process.processIdentifier, SIGSTOP) == 0)
    try await shop.night(0, "--max-duration", "40s", exits: [0])
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE outcome = 'verified'") == "5")
    recheck.kill()
    _ = await recheck.finish()
  }
}
