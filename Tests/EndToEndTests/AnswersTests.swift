import Foundation
import Testing

/// What counts as an answer of Apple's, and which orders Apple is asked about.
@Suite struct AnswersTests {
  /// App receipts: an old receipt's answer has no list of purchases.
  private static let verified = """
    SELECT count(*) FROM night_audit.receipt_checks
    WHERE outcome = 'verified' AND channel = 'verifyReceipt' AND payload_kind = 'app'
    """

  private func recheck(_ shop: Rehearsal, day: Int, within limit: String = "5m") async throws -> Program.Result {
    try await shop.nightAudit("recheck", "--as-of", "2026-11-\(day)T03:00:00Z", "--max-duration", limit)
  }

  /// Such an answer says nothing about the receipt. That night is incomplete, and the next one asks again.
  @Test func answersWithoutContentAreNoAnswers() async throws {
    let shop = try await Rehearsal.sampleShop()
    let apple = SimulatorControl(port: shop.port)
    let shapes = [
      #""receipt":"emptyReceipt""#, #""receipt":"textStatus""#, #""receipt":"noBundleId""#, #""receipt":"noInApp""#,
      #""receipt":"nullInApp""#, #""receipt":"objectInApp""#, #""receipt":"nestedInApp""#,
      #""receipt":"surrogateInApp""#, #""receipt":"textLatestInfo""#, #""status":-1"#, #""status":21099"#,
    ]
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

  /// An answer of another environment, or of another app, contradicts the receipt.
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

  /// A cache, or a service in trouble, leaves out purchases. What it leaves out looks as it did, and would for a week.
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
    // Once: what the last answer has is there.
    _ = try await recheck(shop, day: 30)
    #expect(try await answers(30) <= few)
  }

  /// A zero date of a zone east of Greenwich, and one of the oldest that the contract of the sales schema allows.
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

  /// A stopped process keeps its database session. What it has taken is asked about by the night.
  @Test func aStoppedRecheckHoldsUpNoNight() async throws {
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
      await Task.yield()
    }
    #expect(kill(recheck.process.processIdentifier, SIGSTOP) == 0)
    let night = try await shop.night(0, "--max-duration", "40s")
    #expect(night.status == 0, "\(night)")
    #expect(
      try await shop.value("SELECT count(*) FROM night_audit.receipt_checks WHERE outcome = 'verified'") == "5")
    recheck.kill()
    _ = await recheck.finish()
  }

  /// A server in FIPS mode refuses MD5, as one does whose administrator has revoked it.
  @Test func aServerWithoutMD5IsEnough() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await shop.execute("REVOKE EXECUTE ON FUNCTION pg_catalog.md5(text), pg_catalog.md5(bytea) FROM PUBLIC")
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 3, "\(night)")
    #expect(Int(try await shop.value(Self.verified)) ?? 0 > 300)
  }
}
