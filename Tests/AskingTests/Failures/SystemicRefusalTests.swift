import Postgres
import Reconciliation
import Settings
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Refusals that are too many of one kind to be the customers', in a real database.
@Suite struct SystemicRefusalTests {
  private static let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  private func recheck(
    _ count: Int, _ wait: Reconciliation.Span = .hours(0), judge: OfflineJudge = .damaged
  ) async throws -> RecheckSummary {
    try await shop.recheck(.found(0...count, prefix: "ggenuine r"), asOf: Self.asOf + wait, judge: judge)
  }

  private func fault(_ summary: RecheckSummary) -> String { summary.faults["com.example.game"] ?? "" }

  @Test func tooManyRefusalsOfOneKindCreateNoFindings() async throws {
    try await shop.fill(damaged: 30, genuine: 10)
    let summary = try await recheck(40)
    #expect(summary.exitStatus == .configuration && fault(summary).contains("30 of the 40 customers"))
    let undecided = ["review systemic 30", "verified 10"]
    #expect(try await shop.states() == undecided)
    // Later runs ask nothing and report the same fault, because the first one may write no report, or may be killed.
    for hours in [0, 6] as [Int64] {
      let again = try await recheck(40, .hours(hours))
      #expect(again.outcomes.isEmpty && again.faults == summary.faults && again.exitStatus == .configuration)
      #expect(try await shop.states() == undecided)
    }
    // After the payloads are corrected, the next night judges the receipts again, without a fault.
    try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine ' || receipt_id")
    #expect(try await recheck(40, .days(1)).faults.isEmpty)
    #expect(try await shop.states() == ["verified 40"])
  }

  /// Re-checks before a night receive a part of its first answers.
  @Test func tooManyRefusalsOverSeveralRunsCreateNoFindings() async throws {
    try await shop.fill(damaged: 12, genuine: 1)
    #expect(try await recheck(13).faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 12", "verified 1"])
    for number in 20..<32 {
      try await shop.order("o\(number)", transaction: nil)
      try await shop.receipt("r\(number)", for: "o\(number)")
    }
    let second = try await recheck(13, .minutes(30))
    #expect(fault(second).contains("24 of the 25 customers"), "\(second.faults)")
    let decided = ["rejected malformed 12", "review systemic 12", "verified 1"]
    #expect(try await shop.states() == decided)
    // Later runs decide the same, until the receipts are asked about again.
    let third = try await recheck(13, .minutes(20 * 60 + 29))
    #expect(third.outcomes.isEmpty && third.faults == second.faults)
    #expect(try await shop.states() == decided)
  }

  /// The worker that ends first knows a part of the night's answers only.
  @Test func pendingRefusalsWaitForActiveWorkers() async throws {
    try await shop.fill(damaged: 15, genuine: 1)
    let other = try await shop.queue()
    #expect(try await other.claim().isEmpty)
    for _ in 1...2 {
      #expect(try await recheck(16).faults.isEmpty)
      #expect(try await shop.states() == ["review systemic 15", "verified 1"])
    }
    // The other worker retires. It is no longer a worker, although its session is open.
    let worker = other.worker
    try await other.store.withConnection { try worker.retire($0) }
    let last = try await recheck(16)
    #expect(last.outcomes.isEmpty && last.faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 15", "verified 1"])
    await other.close()
  }

  /// A person with many receipts counts once, under any alias. The share is therefore small, and all refusals are
  /// decided.
  @Test(arguments: [false, true]) func refusalsOfOnePersonCountOnce(hasAliases: Bool) async throws {
    try await shop.fill(damaged: 25, genuine: 40)
    for number in 25..<49 { try await shop.receipt("stray\(number)", for: nil, user: "user of o0") }
    try await shop.session.executeScript(
      hasAliases
        ? """
        CREATE TABLE sales.user_aliases AS SELECT 'user of o' || n AS user_id, 'user of o' || n - 1 AS same_as
        FROM generate_series(1, 24) n
        """ : "UPDATE sales.orders SET user_id = 'one' WHERE substr(order_id, 2)::int < 25")
    #expect(try await recheck(65).faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 49", "verified 40"])
  }

  /// A receipt without an order and a sender accuses no customer, and is in no share.
  @Test func receiptsWithoutAUserAreInNoShare() async throws {
    try await shop.fill(damaged: 0, genuine: 10)
    for number in 0..<30 { try await shop.receipt("stray\(number)", for: nil, user: nil) }
    #expect(try await recheck(10).faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 30", "verified 10"])
  }

  /// Verified receipts do not hide a wrong column of transaction IDs, and the other way round.
  @Test func receiptsAndLookUpsHaveTheirOwnShares() async throws {
    try await shop.fill(damaged: 5, genuine: 100)
    try await shop.orders(200...229)
    let summary = try await recheck(105)
    #expect(fault(summary).contains("30 of the 30 customers with first answers about stated transaction IDs"))
    #expect(try await shop.states() == ["rejected malformed 5", "review systemic 30", "verified 100"])
  }

  /// Signed proofs and look-ups of other products than the orders' are systemic if a product was renamed in the shop,
  /// and remain so on later nights.
  @Test(arguments: [true, false]) func tooManyProductMismatchesCreateNoFindings(isSigned: Bool) async throws {
    let judge = OfflineJudge(hasRoots: true) { payload in
      let fact = TransactionFact.test("g\(payload)", .offline, signed: Self.asOf - .days(1))
      let proof = GenuineProof(
        environment: .production, bundleId: "com.example.game", facts: [fact], signedTransactionId: fact.transactionId)
      return (.signed, .genuine(proof))
    }
    if isSigned {
      try await shop.fill(damaged: 0, genuine: 60)
    } else {
      try await shop.orders(0...59, stating: "1000")
    }
    func rename(_ product: String) async throws {
      try await shop.session.execute(
        "UPDATE sales.orders SET product_id = $1 WHERE substr(order_id, 2)::int < 25", [.text(product)])
    }
    try await rename("renamed")
    for night in [0, 1, 2] as [Int64] {
      if night == 2 { try await rename("gems") }
      let summary = try await shop.recheck(
        .found(0...59, prefix: isSigned ? "ggenuine r" : "1000"), asOf: Self.asOf + .days(night), judge: judge)
      for part in ["25 of the 60 customers", "product_id in sales.orders is not"] {
        #expect(fault(summary).contains(part) == (night < 2), "\(night), \(summary.faults)")
      }
      #expect(summary.faults.isEmpty == (night == 2))
      #expect(try await shop.states() == (night < 2 ? ["review systemic 25", "verified 35"] : ["verified 60"]))
    }
  }

  @Test func aConfirmedAttackIsReported() async throws {
    var shop = shop
    shop.settings.systemicShare = .whole
    try await shop.fill(damaged: 30, genuine: 10)
    let summary = try await shop.recheck(.found(0...40, prefix: "ggenuine r"), judge: .damaged)
    #expect(summary.faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 30", "verified 10"])
  }

  /// The changed share stands in for a night that was killed before its decision. The refusals are pending, and the
  /// counts are stored.
  @Test func pendingRefusalsOfAKilledNightAreDecidedByTheNext() async throws {
    var shop = shop
    try await shop.fill(damaged: 30, genuine: 10)
    _ = try await recheck(40)
    shop.settings.systemicShare = .whole
    // While another worker asks, the counts may be incomplete.
    let other = try await shop.queue()
    #expect(try await other.claim().isEmpty)
    for (hours, states) in [
      (1, ["review systemic 30", "verified 10"]), (2, ["rejected malformed 30", "verified 10"]),
    ] as [(Int64, [String])] {
      let next = try await shop.recheck([:], asOf: Self.asOf + .hours(hours), judge: .damaged)
      #expect(next.outcomes.isEmpty && (hours == 1 || next.faults.isEmpty))
      #expect(try await shop.states() == states)
      await other.close()
    }
  }

  /// Refusals of a night with an outage are pending. Once Apple is well, the result is as if there had been no outage.
  @Test func pendingRefusalsAreJudgedByTheirOwnNight() async throws {
    try await shop.orders(1...132)
    func night(_ number: Int64, order: Identifier? = nil, _ script: AnswerScript) async throws -> RecheckSummary {
      var selection = Selection()
      selection.orderId = order
      return try await shop.recheck(script, asOf: Self.asOf + .days(number), selection: selection)
    }
    // In one night, Apple knows 80 of its 110 transactions.
    let foul = try await night(0, .found(1...80))
    #expect(fault(foul).contains("52 of the 132 customers"), "\(foul.faults)")
    #expect(try await shop.states() == ["review systemic 52", "verified 80"])
    // A run about one order, found now or still unknown, decides nothing about the others.
    for id in ["o110", "o132"] as [Identifier] {
      _ = try await night(1, order: id, .found(1...110))
      #expect(try await shop.states() == ["review systemic 51", "verified 81"], "\(id)")
    }
    // A missing answer decides nothing about pending refusals either.
    _ = try await night(1, order: "o131", ["131": [.silent]])
    let well = try await night(3, .found(1...110))
    #expect(well.faults.isEmpty, "\(well.faults)")
    #expect(try await shop.states() == ["not_found not_found 22", "verified 110"])
  }

  /// After a change in a column of the shop, refused receipts are judged again. Their share counts first answers only.
  @Test func aRepeatedRefusalIsNoFirstAnswer() async throws {
    try await shop.fill(damaged: 22, genuine: 80)
    #expect(try await recheck(102).faults.isEmpty)
    let known = ["rejected malformed 22", "verified 80"]
    #expect(try await shop.states() == known)
    for (night, bundleId) in [(1, nil), (2, "com.example.game")] as [(Int64, String?)] {
      try await shop.session.execute("UPDATE sales.orders SET bundle_id = $1", [.text(bundleId)])
      let next = try await recheck(102, .days(night))
      #expect(next.outcomes == [.rejected: 22] && next.faults.isEmpty, "\(next.outcomes), \(next.faults)")
      #expect(try await shop.states() == known)
    }
  }

  /// A different refusal of another payload is a first answer, whether the earlier refusals were few or systemic.
  @Test(arguments: [80, 10]) func aDifferentRefusalIsAFirstAnswer(genuine: Int) async throws {
    let judge = OfflineJudge(hasRoots: true) { payload in
      payload.hasPrefix("forged") ? (.signed, .refused(.signatureInvalid)) : OfflineJudge.damaged.judge(payload)
    }
    try await shop.fill(damaged: 22, genuine: genuine)
    _ = try await recheck(22 + genuine, judge: judge)
    #expect(
      try await shop.states() == [
        genuine == 80 ? "rejected malformed 22" : "review systemic 22", "verified \(genuine)",
      ])
    try await shop.session.execute(
      "UPDATE sales.receipts SET payload = 'forged ' || receipt_id WHERE payload NOT LIKE 'genuine%'")
    for night in [1, 2] as [Int64] {
      let next = try await recheck(22 + genuine, .days(night), judge: judge)
      #expect(fault(next).contains("22 of the 22 customers"), "\(night), \(next.faults)")
      #expect(try await shop.states() == ["review systemic 22", "verified \(genuine)"])
    }
    // Once the payloads are genuine, there is no fault.
    try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine ' || receipt_id")
    #expect(try await recheck(22 + genuine, .days(3), judge: judge).faults.isEmpty)
    #expect(try await shop.states() == ["verified \(22 + genuine)"])
  }

  /// A malformed proof is rejected without an answer of Apple's. A genuine proof waits for its answer, which changes
  /// nothing about the others.
  @Test func anOutageDoesNotMakeForgedProofsSystemic() async throws {
    try await shop.fill(damaged: 22, genuine: 80)
    #expect(try await shop.recheck([:], judge: .damaged, isOffline: true).faults.isEmpty)
    #expect(try await shop.states() == ["pending never_checked 80", "rejected malformed 22"])
    #expect(try await recheck(102, .days(1)).faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 22", "verified 80"])
  }

  /// A proof under review was neither accepted nor refused.
  @Test func refusalsAfterIndecisiveAnswersAreFirstAnswers() async throws {
    try await shop.orders(1...25)
    _ = try await shop.recheck(.all(1...25, ChannelAnswer(.review)))
    #expect(try await shop.states() == ["review apple_error 25"])
    let refused = try await shop.recheck([:], asOf: Self.asOf + .days(1))
    #expect(fault(refused).contains("25 of the 25 customers"), "\(refused.faults)")
    #expect(try await shop.states() == ["review systemic 25"])
  }

  @Test func someRefusalsAreTheCustomers() async throws {
    try await shop.fill(damaged: 19, genuine: 1)
    #expect(try await recheck(20).faults.isEmpty)
    #expect(try await shop.states() == ["rejected malformed 19", "verified 1"])
    // One payload is corrected. It is asked about at once, although its refusal was final.
    try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine r3' WHERE receipt_id = 'r3'")
    #expect(try await recheck(20, .hours(1)).outcomes == [.verified: 1])
  }
}
