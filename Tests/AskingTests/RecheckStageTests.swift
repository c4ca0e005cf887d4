import AppStore
import Postgres
import Reconciliation
import Settings
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Re-checks with scripted answers: the questions and the stored results.
@Suite struct RecheckStageTests {
  private static let asOf = RecheckFixture.asOf

  /// Judges every payload as an app receipt with two purchases, 1 and 2.
  private static let device = OfflineJudge(hasRoots: true) { _ in
    (
      .app,
      .genuine(
        GenuineProof(
          environment: .production, bundleId: "com.example.game",
          facts: [.test("1", .offline, signed: asOf - .days(1)), .test("2", .offline, signed: asOf - .days(1))]))
    )
  }

  private func checks(_ shop: RecheckFixture) async throws -> [String] {
    try await shop.rows(
      "subject_id, outcome, reason, attempts::text, channel] ) FROM night_audit.receipt_checks ORDER BY subject_id")
  }

  @Test func everyPurchaseOfAReceiptIsAskedAboutAndStored() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let first = ScriptedChannel.Script(["1": [.found("1")], "2": [.silent]])
      #expect(try await shop.recheck([ScriptedChannel(first)], judge: Self.device).outcomes == [.unanswered: 1])
      #expect(first.asked == ["1", "2"])
      #expect(try await checks(shop) == ["r unanswered unreachable 1 serverApi"])
      // The purchase that was answered is not asked about again.
      let later = Self.asOf + .hours(1)
      let second = ScriptedChannel.Script(["2": [.found("2")]])
      let summary = try await shop.recheck([ScriptedChannel(second, asOf: later)], asOf: later, judge: Self.device)
      #expect(summary.outcomes == [.verified: 1] && second.asked == ["2"])
      #expect(try await checks(shop) == ["r verified 2 serverApi"])
      let evidence = try await shop.rows(
        "transaction_id, channel] ) FROM night_audit.evidence ORDER BY transaction_id, channel")
      #expect(evidence == ["1 offline", "1 serverApi", "2 offline", "2 serverApi"])
    }
  }

  /// Judges every payload as a receipt with these purchases, whose signature cannot be verified.
  private static func claim(_ ids: [String]) -> OfflineJudge {
    let claim = UnprovenClaim(
      why: "unknown", transactionIds: ids,
      content: WrittenContent(environment: .production, bundleId: "com.example.game"))
    return OfflineJudge(hasRoots: true) { _ in (.app, .claim(claim)) }
  }

  private func containedTransactions(_ shop: RecheckFixture) async throws -> [String] {
    try await shop.rows(
      "subject_id, transaction_id] ) FROM night_audit.receipt_transactions ORDER BY 1")
  }

  /// A confirmed ID beside unconfirmed ones proves nothing, because anybody who knows it can write it into a receipt.
  @Test(arguments: [ChannelAnswer(.unknown), .silent]) func unsignedReceiptsContainAllConfirmedIDsOrNone(
    other: ChannelAnswer
  ) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let judge = Self.claim(["1", "2"])
      let script = ScriptedChannel.Script(["1": [.found("1")], "2": [other]])
      let outcome: CheckOutcome = other.silence == nil ? .notFound : .unanswered
      #expect(try await shop.recheck([ScriptedChannel(script)], judge: judge).outcomes == [outcome: 1])
      #expect(try await containedTransactions(shop) == [])
      // Apple's answer is evidence nevertheless.
      #expect(try await shop.rows("transaction_id] ) FROM night_audit.evidence WHERE subject_id IS NULL") == ["1"])
      let later = Self.asOf + .days(1)
      let right = ScriptedChannel.Script(["1": [.found("1")], "2": [.found("2")]])
      let summary = try await shop.recheck([ScriptedChannel(right, asOf: later)], asOf: later, judge: judge)
      #expect(summary.outcomes == [.verified: 1] && right.asked.contains("2"))
      #expect(try await containedTransactions(shop) == ["r 1", "r 2"])
    }
  }

  /// Apple may have confirmed the transaction for another order, or in the customer history.
  @Test func unsignedReceiptsContainIDsThatAppleConfirmedEarlier() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      try await shop.session.withConnection { connection in
        try EvidenceTable.append(
          [(nil, .test("1", .serverApi))], runId: RecheckFixture.runId, asOf: Self.asOf, on: connection)
      }
      let script = ScriptedChannel.Script(["1": [.found("1")]])
      let summary = try await shop.recheck([ScriptedChannel(script)], judge: Self.claim(["1"]))
      #expect(summary.outcomes == [.verified: 1])
      #expect(try await containedTransactions(shop) == ["r 1"])
    }
  }

  /// A payload that was not read proves nothing.
  @Test func aReceiptDeletedBeforeItIsReadIsNotJudged() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let queue = try await shop.queue()
      try await queue.enqueue()
      let preparation = Preparation(queue: queue, judge: Self.device, channels: [])
      var taken = try await preparation.take() ?? []
      #expect(taken.count == 1)
      try await shop.session.execute("DELETE FROM sales.receipts")
      let budget = ByteBudget(limit: 1)
      let read = try await preparation.read(&taken, within: budget)
      #expect(read.isEmpty && taken.isEmpty && budget.hasRoom)
      #expect(
        try await shop.rows("outcome, is_wanted::text, (gone_at IS NULL)::text] ) FROM night_audit.receipt_checks")
          == ["pending false false"])
      await queue.close()
    }
  }

  @Test func aFailedRecheckKeepsTheStoredOutcome() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "9", age: .days(2))
      #expect(try await shop.recheck([ScriptedChannel(.init([:]))]).outcomes == [.notFound: 1])
      let later = Self.asOf + .days(1)
      let silent = ScriptedChannel(.init(["9": [.silent]]), asOf: later)
      #expect(try await shop.recheck([silent], asOf: later).outcomes == [.unanswered: 1])
      #expect(try await checks(shop) == ["com.example.game/9 not_found not_found 2 serverApi"])
    }
  }

  /// A worker that lost its lease may store an answer after the new leaseholder, with the same as-of or an earlier one.
  @Test(arguments: [0, 5] as [Int64]) func theAnswerOfTheNewLeaseholderCounts(seconds: Int64) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      let lost = try await shop.queue()
      try await lost.enqueue()
      let claimed = try await lost.claim()
      let row = try #require(claimed.first)
      await lost.close()
      let later = Self.asOf + .seconds(seconds)
      let script = ScriptedChannel.Script(["1": [.found("1")]])
      #expect(try await shop.recheck([ScriptedChannel(script, asOf: later)], asOf: later).outcomes == [.verified: 1])
      let decided = try await checks(shop)
      var late = CheckResult(
        context: CheckContext(row: row), kind: nil, outcome: .notFound, reason: .notFound, channel: .serverApi)
      late.app = "com.example.game"
      try await shop.writer().write([late])
      #expect(try await checks(shop) == decided && decided == ["com.example.game/1 verified 1 serverApi"])
      // The late answer is stored nevertheless.
      let said = try await shop.rows("outcome] ) FROM night_audit.answers ORDER BY answer_id")
      #expect(said == ["verified", "not_found"])
    }
  }

  /// The drain period is for answers on their way. A rate-limited question has none.
  @Test func rateLimitedQuestionsAreNotAwaitedAtTheDeadline() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...3 { try await shop.order("o\(number)", transaction: "\(number)") }
      let bucket = RateGate(rate: nil)
      bucket.shut(for: .hours(1))
      let script = ScriptedChannel.Script([:])
      var channel = ScriptedChannel(script)
      channel.turns = bucket
      let began = ContinuousClock.now
      let summary = try await shop.recheck([channel], limit: .seconds(1))
      #expect(summary.outcomes.isEmpty && summary.endedEarly != nil && script.asked.isEmpty)
      #expect(.now - began < .seconds(8))
    }
  }

  @Test func aRejectedKeyStopsOnlyItsApp() async throws {
    try await RecheckFixture.run(apps: ["com.example.game", "com.example.other"]) { shop in
      for number in 1...50 {
        try await shop.order("game \(number)", transaction: "\(number)")
        try await shop.order("other \(number)", transaction: "\(number)", bundleId: "com.example.other")
      }
      let answers = Dictionary(uniqueKeysWithValues: (1...50).map { ("\($0)", [ChannelAnswer.found("\($0)")]) })
      let fault = ChannelAnswer(.fault(.accessRefused))
      let refused = ScriptedChannel.Script(answers.mapValues { _ in [fault] })
      let summary = try await shop.recheck([
        ScriptedChannel(refused, of: "com.example.other"), ScriptedChannel(.init(answers)),
      ])
      #expect(
        summary.faults == ["com.example.other": AppleFault.accessRefused.message]
          && summary.exitStatus == .configuration)
      // The checks that proved the fault are asked about again on the next night. All others are unchanged.
      #expect(summary.outcomes == [.verified: 50, .review: 2] && summary.endedEarly == nil)
      #expect(refused.asked.count <= 3 * shop.settings.concurrency)
      let untouched = try await shop.rows(
        "outcome, attempts::text, count(*)::text] ) FROM night_audit.receipt_checks GROUP BY outcome, attempts ORDER BY 1"
      )
      #expect(untouched == ["pending 0 48", "review 1 2", "verified 1 50"])
    }
  }

  @Test(arguments: [true, false])
  func signedFactsAreStoredWithoutRequests(isOffline: Bool) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let script = ScriptedChannel.Script([:])
      for _ in 0..<2 {
        let summary = try await shop.recheck(
          [ScriptedChannel(script)], judge: Self.device, isOffline: isOffline, limit: isOffline ? .seconds(60) : .zero)
        #expect(summary.outcomes.isEmpty)
        #expect((summary.endedEarly == nil) == isOffline)
      }
      #expect(script.asked.isEmpty)
      #expect(try await checks(shop) == ["r pending never_checked 0 offline"])
      #expect(
        try await shop.rows("transaction_id] ) FROM night_audit.transactions ORDER BY 1") == ["1", "2"])
      #expect(try await shop.rows("subject_id] ) FROM night_audit.evidence ORDER BY 1") == ["r", "r"])
      #expect(try await shop.queue().dueCount() == 1)
      #expect(try await shop.rows("subject_id] ) FROM night_audit.answers WHERE outcome <> 'pending'") == [])
    }
  }

  /// A notification about a purchase does not exclude a later refund.
  @Test func aNotificationDoesNotAnswerForAReceipt() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      try await shop.session.withConnection { connection in
        try EvidenceTable.append(
          [(nil, .test("1", .notification)), (nil, .test("2", .serverApi))], runId: RecheckFixture.runId,
          asOf: Self.asOf, on: connection)
      }
      let script = ScriptedChannel.Script(["1": [.found("1")]])
      let summary = try await shop.recheck([ScriptedChannel(script)], judge: Self.device)
      #expect(summary.outcomes == [.verified: 1] && script.asked == ["1"])
    }
  }

  @Test func anOfflineRejectionConfirmsNoIDs() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      try await shop.receipt("r", for: "o")
      let script = ScriptedChannel.Script([:])
      let judge = OfflineJudge(hasRoots: true) { _ in (.signed, .refused(.signatureInvalid)) }
      let summary = try await shop.recheck([ScriptedChannel(script)], judge: judge)
      // The stated ID can be looked up nevertheless.
      #expect(summary.outcomes == [.rejected: 1, .notFound: 1] && script.asked == ["1"])
      #expect(
        try await checks(shop) == [
          "com.example.game/1 not_found not_found 1 serverApi", "r rejected signature_invalid 1 offline",
        ])
    }
  }

  /// Without a question, as about the sandbox, the payload alone decides which purchases it contains.
  @Test func aReplacedPayloadContainsItsOwnPurchase() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: nil)
      try await shop.receipt("r", for: "o")
      let judge = OfflineJudge(hasRoots: true) { payload in
        let signed = payload == "list" ? nil : payload
        let proof = GenuineProof(
          environment: .sandbox, bundleId: "com.example.game", facts: [.test(signed ?? "2", .offline)],
          signedTransactionId: signed)
        return (signed == nil ? .app : .signed, .genuine(proof))
      }
      let nights: [(payload: String, signed: String, evidence: [String])] = [
        ("1", "1", ["1"]), ("2", "2", ["1", "2"]), ("2", "2", ["1", "2"]), ("list", "", ["1", "2", "2"]),
        ("1", "1", ["1", "1", "2", "2"]),
      ]
      for (night, expected) in nights.enumerated() {
        let asOf = Self.asOf + .days(Int64(night))
        // The row keeps its ID. Its date changes on the last night only.
        try await shop.session.execute(
          "UPDATE sales.receipts SET payload = $1, received_at = $2",
          [.text(expected.payload), .timestamp((Self.asOf + .days(night < 4 ? -1 : 3)).microseconds)])
        let summary = try await shop.recheck([ScriptedChannel(.init([:]), asOf: asOf)], asOf: asOf, judge: judge)
        #expect(summary.outcomes == (night == 2 ? [:] : [.verified: 1]), "night \(night)")
        let signed = try await shop.rows("signed_transaction_id] ) FROM night_audit.receipt_checks")
        #expect(signed == [expected.signed], "night \(night)")
        let evidence = try await shop.rows("transaction_id] ) FROM night_audit.evidence ORDER BY 1")
        #expect(evidence == expected.evidence, "night \(night)")
      }
    }
  }

  /// A receipt lists no finished consumables, and a proof of a renewal does not prove the first purchase.
  @Test(arguments: [("9", nil), ("8", "8"), ("1", nil)] as [(String, String?)])
  func anIdThatAGenuineReceiptDoesNotListIsAskedAbout(named: String, original: String?) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: named)
      try await shop.receipt("r", for: "o")
      let script = ScriptedChannel.Script(["8": [.found("8")], "1": [.found("1")], "9": [.found("9")]])
      var listed = TransactionFact.test("1", .offline)
      listed.originalTransactionId = original ?? "1"
      let judge = OfflineJudge(hasRoots: true) { [listed] _ in
        (.app, .genuine(GenuineProof(environment: .production, bundleId: "com.example.game", facts: [listed])))
      }
      let summary = try await shop.recheck([ScriptedChannel(script)], judge: judge)
      // The receipt's own purchase, and the stated ID if it is another one.
      #expect(script.asked == (named == "1" ? ["1"] : ["1", named]))
      #expect(summary.outcomes == [.verified: named == "1" ? 1 : 2])
    }
  }

  /// A missing answer about one purchase of a receipt does not delay the look-up of an ID outside the receipt.
  @Test(arguments: ["9", "1"]) func anUnansweredReceiptDoesNotDelayIDsOutsideIt(named: String) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: named)
      try await shop.receipt("r", for: "o")
      let judge = OfflineJudge(hasRoots: true) { _ in
        (
          .app,
          .genuine(
            GenuineProof(environment: .production, bundleId: "com.example.game", facts: [.test("1", .offline)]))
        )
      }
      var asked: [String] = []
      for night in 0...1 {
        let asOf = Self.asOf + .days(Int64(night))
        let script = ScriptedChannel.Script(["1": [.silent], "9": [.found("9")]])
        _ = try await shop.recheck([ScriptedChannel(script, asOf: asOf)], asOf: asOf, judge: judge)
        asked += script.asked
      }
      #expect(asked.filter { $0 == "9" }.count == (named == "9" ? 1 : 0) && asked.contains("1"), "\(asked)")
      let lookups = try await shop.rows("subject_id] ) FROM night_audit.lookups")
      #expect(lookups == (named == "9" ? ["com.example.game/9"] : []))
    }
  }

  @Test func theSignedBundleIDSelectsTheApp() async throws {
    try await RecheckFixture.run(apps: ["com.example.game", "com.example.other"]) { shop in
      try await shop.order("o", transaction: nil, bundleId: "com.example.other")
      try await shop.receipt("r", for: "o")
      let (game, other) = (
        ScriptedChannel.Script(["1": [.found("1")], "2": [.found("2")]]), ScriptedChannel.Script([:])
      )
      let summary = try await shop.recheck(
        [ScriptedChannel(other, of: "com.example.other"), ScriptedChannel(game)], judge: Self.device)
      #expect(summary.outcomes == [.verified: 1] && game.asked == ["1", "2"] && other.asked.isEmpty)
    }
  }

  /// Judges every payload as a receipt of an app, whose signature cannot be verified.
  private func claim(_ id: String, of app: String) -> OfflineJudge {
    let content = WrittenContent(environment: .production, bundleId: app)
    let claim = UnprovenClaim(why: "unknown", transactionIds: [id], content: content)
    return OfflineJudge(hasRoots: true) { _ in (.transaction, .claim(claim)) }
  }

  @Test func aReceiptWithoutAnOrderStatesItsApp() async throws {
    try await RecheckFixture.run(apps: ["com.example.game", "com.example.other"]) { shop in
      try await shop.receipt("r", for: "nobody's")
      let game = ScriptedChannel.Script([:])
      let other = ScriptedChannel.Script(["1": [.found("1", bundleId: "com.example.other")]])
      let summary = try await shop.recheck(
        [ScriptedChannel(game), ScriptedChannel(other, of: "com.example.other")],
        judge: claim("1", of: "com.example.other"))
      #expect(summary.outcomes == [.verified: 1] && game.asked.isEmpty && other.asked == ["1"])
    }
  }

  @Test(arguments: [("com.example.stranger", false), ("com.example.game", true)])
  func receiptsOfOtherAppsDoNotAccuseOurSecret(app: String, isOurs: Bool) async throws {
    try await RecheckFixture.run { shop in
      for number in 1...3 { try await shop.receipt("r\(number)", for: "nobody's") }
      let script = ScriptedChannel.Script(["1": [ChannelAnswer(.fault(.sharedSecretRefused))]])
      let summary = try await shop.recheck([ScriptedChannel(script)], judge: claim("1", of: app))
      #expect(summary.faults.isEmpty != isOurs && (script.asked.count == 3) != isOurs, "\(summary)")
    }
  }

  @Test func receiptsOfUnknownAppsCountForTheAppOfTheirOrder() async throws {
    try await RecheckFixture.run(apps: ["com.example.game", "com.example.other"]) { shop in
      try await shop.order("o", transaction: nil)
      try await shop.session.execute("UPDATE sales.orders SET bundle_id = 'com.example.other'")
      try await shop.receipt("r", for: "o")
      let stranger = "com.example.stranger"
      var fact = TransactionFact(
        environment: .production, transactionId: "1", productId: "gems", channel: .offline, signedDate: Self.asOf)
      fact.bundleId = stranger
      let proof = GenuineProof(environment: .production, bundleId: stranger, facts: [fact])
      let found = ["1": [ChannelAnswer.found("1", bundleId: stranger)]]
      _ = try await shop.recheck(
        [
          ScriptedChannel(ScriptedChannel.Script(found)),
          ScriptedChannel(ScriptedChannel.Script(found), of: "com.example.other"),
        ], judge: OfflineJudge(hasRoots: true) { _ in (.app, .genuine(proof)) })
      #expect(try await shop.rows("app] ) FROM night_audit.receipt_checks") == ["com.example.other"])
    }
  }
}
