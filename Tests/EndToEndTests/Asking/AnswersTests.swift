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

  /// The night is incomplete, and the next one asks again.
  @Test func answersWithoutContentAreNoAnswers() async throws {
    let shop = try await Rehearsal.sampleShop()
    let apple = SimulatorControl(port: shop.port)
    // `SimulatedPayloadTests` has all shapes.
    let shapes = [#""receipt":"emptyReceipt""#, #""receipt":"surrogateInApp""#, #""status":21099"#]
    var day = 10
    for shape in shapes {
      try await apple.turn("faults", #"{"force":[{\#(shape)}]}"#)
      let bad = try await recheck(shop, day: day, within: "2s")
      #expect(bad.status == 3, "\(shape): \(bad)")
      #expect(try await shop.value(Self.verified) == "0", "\(shape)")
      day += 1
    }
    try await apple.turn("faults", #"{"force":[]}"#)
    let good = try await recheck(shop, day: day)
    #expect(good.status == 3 || good.status == 0, "\(good)")
    #expect(Int(try await shop.value(Self.verified)) ?? 0 > 300)
  }

  @Test func answersThatContradictTheReceiptAreAskedForAgain() async throws {
    let shop = try await Rehearsal.sampleShop()
    let apple = SimulatorControl(port: shop.port)
    try await apple.turn("faults", #"{"force":[{"receipt":"otherEnvironment"}]}"#)
    _ = try await recheck(shop, day: 20)
    #expect(try await shop.value(Self.verified) == "0")
    try await apple.turn("faults", #"{"force":[]}"#)
    _ = try await recheck(shop, day: 21)
    #expect(Int(try await shop.value(Self.verified)) ?? 0 > 300)
  }

  @Test func anAnswerThatLacksPurchasesIsAskedForAgainTheNextNight() async throws {
    let shop = try await Rehearsal.sampleShop()
    let apple = SimulatorControl(port: shop.port)
    func answers(_ day: Int) async throws -> Int {
      Int(try await shop.value("SELECT count(*) FROM night_audit.answers WHERE as_of = '2026-11-\(day)T03:00:00Z'"))
        ?? 0
    }
    _ = try await recheck(shop, day: 20)
    _ = try await recheck(shop, day: 21)
    let few = try await answers(21)
    try await apple.turn("faults", #"{"force":[{"receipt":"lacksPurchases"}]}"#)
    _ = try await recheck(shop, day: 28)
    try await apple.turn("faults", #"{"force":[]}"#)
    _ = try await recheck(shop, day: 29)
    #expect(try await answers(29) > few + 100)
    _ = try await recheck(shop, day: 30)
    #expect(try await answers(30) <= few)
  }

  /// A zero date in a zone east of Greenwich, and the oldest date that the sales schema allows.
  @Test(arguments: ["1969-12-31 23:59:59.999999+00", "1901-01-01 00:00:00+00"])
  func anOrderThatWasChangedBefore1970IsAskedAbout(_ changed: String) async throws {
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": NotifiedShop.start - 150 * NotifiedShop.day]
    ])
    try await shop.sell("o1", naming: "1001", at: NotifiedShop.start - NotifiedShop.day)
    try await shop.execute("UPDATE sales.orders SET updated_at = '\(changed)'")
    let night = try await shop.night(0)
    #expect(night.status == 0, "\(night)")
    #expect(try shop.requests("/production/inApps/v1/transactions") == 1)
  }

  /// A stopped process keeps its session. The night asks about its leased checks.
  @Test func aStoppedRecheckDoesNotDelayTheNight() async throws {
    let ids = (1001...1005).map(String.init)
    let shop = try await NotifiedShop(
      transactions: ids.map { ["transactionId": $0, "purchaseDate": NotifiedShop.start - 150 * NotifiedShop.day] },
      latency: "800ms")
    try shop.configure("appstore.timeout: 2s")
    for id in ids { try await shop.sell("o\(id)", naming: id, at: NotifiedShop.start - NotifiedShop.day) }
    let recheck = try Program.nightAudit.start(
      ["recheck", "--as-of", NotifiedShop.asOf(0), "--config", shop.directory.file("night-audit.yaml")])
    while recheck.process.isRunning,
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE worker IS NOT NULL") != "5"
    {
      await pause()
    }
    #expect(kill(recheck.process.processIdentifier, SIGSTOP) == 0)
    let night = try await shop.night(0, "--max-duration", "40s")
    #expect(night.status == 0, "\(night)")
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE outcome = 'verified'") == "5")
    recheck.kill()
    _ = await recheck.finish()
  }

  /// Like a server in FIPS mode, or one whose administrator has revoked MD5.
  @Test func aServerWithoutMD5IsEnough() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute("REVOKE EXECUTE ON FUNCTION pg_catalog.md5(text), pg_catalog.md5(bytea) FROM PUBLIC")
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3, "\(night)")
    #expect(Int(try await shop.value(Self.verified)) ?? 0 > 300)
  }
}
