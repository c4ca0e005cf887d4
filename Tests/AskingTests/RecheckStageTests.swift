import Postgres
import Reconciliation
import Settings
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Re-checks with scripted answers: the questions and the stored results.
@Suite struct RecheckStageTests {
  private static let asOf = RecheckFixture.asOf
  /// Judges every payload as an app receipt with two purchases, 1 and 2.
  private static let device = OfflineJudge.genuine(["1", "2"])
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// Adds an order with a receipt.
  private func addReceipt(stating id: String? = nil) async throws {
    try await shop.order("o", transaction: id)
    try await shop.receipt("r", for: "o")
  }

  private func checks() async throws -> [String] {
    try await shop.rows("subject_id, outcome, reason, attempts, channel", from: "receipt_checks ORDER BY subject_id")
  }

  private func containedTransactions() async throws -> [String] {
    try await shop.rows("subject_id, transaction_id", from: "receipt_transactions ORDER BY 1")
  }

  @Test func everyPurchaseOfAReceiptIsAskedAboutAndStored() async throws {
    try await addReceipt()
    let first: AnswerScript = ["1": [.found("1")], "2": [.silent]]
    #expect(try await shop.recheck(first, judge: Self.device).outcomes == [.unanswered: 1])
    #expect(first.asked == ["1", "2"])
    #expect(try await checks() == ["r unanswered unreachable 1 serverApi"])
    // The purchase that was answered is not asked about again.
    let second: AnswerScript = ["2": [.found("2")]]
    let summary = try await shop.recheck(second, asOf: Self.asOf + .hours(1), judge: Self.device)
    #expect(summary.outcomes == [.verified: 1] && second.asked == ["2"])
    #expect(try await checks() == ["r verified 2 serverApi"])
    let evidence = try await shop.rows("transaction_id, channel", from: "evidence ORDER BY 1")
    #expect(evidence == ["1 offline", "1 serverApi", "2 offline", "2 serverApi"])
  }

  @Test func aRunAboutOneOrderAsksAboutProofsBeyondTheHorizon() async throws {
    try await shop.order("o", transaction: nil, age: .days(150))
    try await shop.receipt("r", for: "o", age: .days(150))
    let script = AnswerScript.found(1...2)
    #expect(try await shop.recheck(script, judge: Self.device).outcomes == [.verified: 1] && script.asked.isEmpty)
    var selection = Selection()
    selection.orderId = "o"
    let asOf = Self.asOf + .days(1)
    let summary = try await shop.recheck(script, asOf: asOf, judge: Self.device, selection: selection)
    #expect(summary.outcomes == [.verified: 1] && script.asked == ["1", "2"])
    #expect(try await checks() == ["r verified 1 serverApi"])
  }

  /// Without an answer, each receipt has its own attempt.
  @Test(arguments: [ChannelAnswer.found("1"), .silent]) func aPurchaseOfSeveralReceiptsIsAskedAboutOnce(
    answer: ChannelAnswer
  ) async throws {
    for id in ["a", "b", "c"] {
      try await shop.order(id, transaction: nil)
      try await shop.receipt(id, for: id)
    }
    let script: AnswerScript = ["1": [answer], "2": [.found("2")]]
    let summary = try await shop.recheck(script, judge: Self.device)
    #expect(summary.outcomes == [answer.silence == nil ? .verified : .unanswered: 3])
    #expect(script.asked.filter { $0 == "1" }.count == (answer.silence == nil ? 1 : 3))
    #expect(script.asked.filter { $0 == "2" }.count == 1)
    let containing = try await shop.rows("subject_id", from: "receipt_transactions GROUP BY subject_id ORDER BY 1")
    #expect(containing == ["a", "b", "c"])
  }

  /// A confirmed ID beside unconfirmed ones proves nothing, because anybody who knows it can write it into a receipt.
  @Test(arguments: [ChannelAnswer(.unknown), .silent]) func unsignedReceiptsContainAllConfirmedIDsOrNone(
    other: ChannelAnswer
  ) async throws {
    try await addReceipt()
    let judge = OfflineJudge.claim(["1", "2"])
    let outcome: CheckOutcome = other.silence == nil ? .notFound : .unanswered
    #expect(try await shop.recheck(["1": [.found("1")], "2": [other]], judge: judge).outcomes == [outcome: 1])
    #expect(try await containedTransactions() == [])
    // Apple's answer is evidence nevertheless.
    #expect(try await shop.rows("transaction_id", from: "evidence WHERE subject_id IS NULL") == ["1"])
    let confirming = AnswerScript.found(1...2)
    let summary = try await shop.recheck(confirming, asOf: Self.asOf + .days(1), judge: judge)
    #expect(summary.outcomes == [.verified: 1] && confirming.asked.contains("2"))
    #expect(try await containedTransactions() == ["r 1", "r 2"])
  }

  /// Apple may have confirmed the transaction for another order, or in the customer history.
  @Test func unsignedReceiptsContainIDsThatAppleConfirmedEarlier() async throws {
    try await addReceipt()
    try await shop.addEvidence([.test("1", .serverApi)])
    #expect(try await shop.recheck(.found(1...1), judge: .claim(["1"])).outcomes == [.verified: 1])
    #expect(try await containedTransactions() == ["r 1"])
  }

  /// A payload that was not read proves nothing.
  @Test func aReceiptDeletedBeforeItIsReadIsNotJudged() async throws {
    try await addReceipt()
    let queue = try await shop.queue()
    try await queue.enqueue()
    let preparation = Preparation(queue: queue, judge: Self.device, channels: [])
    let taken = try await preparation.take() ?? []
    #expect(taken.count == 1)
    try await shop.session.execute("DELETE FROM sales.receipts")
    #expect(try await preparation.read(taken).isEmpty)
    #expect(
      try await shop.rows("outcome, is_wanted::text, (gone_at IS NULL)::text", from: "receipt_checks")
        == ["pending false false"])
  }

  @Test func aFailedRecheckKeepsTheStoredOutcome() async throws {
    try await shop.order("o", transaction: "9")
    #expect(try await shop.recheck([:]).outcomes == [.notFound: 1])
    #expect(try await shop.recheck(["9": [.silent]], asOf: Self.asOf + .days(1)).outcomes == [.unanswered: 1])
    #expect(try await checks() == ["com.example.game/9 not_found not_found 2 serverApi"])
  }

  @Test(arguments: [true, false])
  func signedFactsAreStoredWithoutRequests(isOffline: Bool) async throws {
    try await addReceipt()
    let script: AnswerScript = [:]
    for _ in 0..<2 {
      let summary = try await shop.recheck(
        script, judge: Self.device, isOffline: isOffline, limit: isOffline ? .seconds(60) : .zero)
      #expect(summary.outcomes.isEmpty && (summary.endedEarly == nil) == isOffline)
    }
    #expect(script.asked.isEmpty)
    #expect(try await checks() == ["r pending never_checked 0 offline"])
    #expect(try await shop.rows("transaction_id", from: "transactions ORDER BY 1") == ["1", "2"])
    #expect(try await shop.rows("subject_id", from: "evidence") == ["r", "r"])
    #expect(try await shop.queue().dueCount() == 1)
    #expect(try await shop.rows("subject_id", from: "answers WHERE outcome <> 'pending'") == [])
  }

  /// A notification about a purchase does not exclude a later refund.
  @Test func aNotificationDoesNotAnswerForAReceipt() async throws {
    try await addReceipt()
    try await shop.addEvidence([.test("1", .notification), .test("2", .serverApi)])
    let script = AnswerScript.found(1...1)
    let summary = try await shop.recheck(script, judge: Self.device)
    #expect(summary.outcomes == [.verified: 1] && script.asked == ["1"])
  }

  @Test func anOfflineRejectionConfirmsNoIDs() async throws {
    try await addReceipt(stating: "1")
    let script: AnswerScript = [:]
    let judge = OfflineJudge(hasRoots: true) { _ in (.signed, .refused(.signatureInvalid)) }
    let summary = try await shop.recheck(script, judge: judge)
    // The stated ID can be looked up nevertheless.
    #expect(summary.outcomes == [.rejected: 1, .notFound: 1] && script.asked == ["1"])
    #expect(
      try await checks() == [
        "com.example.game/1 not_found not_found 1 serverApi", "r rejected signature_invalid 1 offline",
      ])
  }

  /// Without a question, as about the sandbox, the payload alone decides which purchases it contains.
  @Test func aReplacedPayloadContainsItsOwnPurchase() async throws {
    try await addReceipt()
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
      // The row keeps its ID. Its date changes on the last night only.
      try await shop.session.execute(
        "UPDATE sales.receipts SET payload = $1, received_at = $2",
        [.text(expected.payload), .timestamp((Self.asOf + .days(night < 4 ? -1 : 3)).microseconds)])
      let summary = try await shop.recheck([:], asOf: Self.asOf + .days(Int64(night)), judge: judge)
      #expect(summary.outcomes == (night == 2 ? [:] : [.verified: 1]), "night \(night)")
      let signed = try await shop.rows("signed_transaction_id", from: "receipt_checks")
      #expect(signed == [expected.signed], "night \(night)")
      let evidence = try await shop.rows("transaction_id", from: "evidence ORDER BY 1")
      #expect(evidence == expected.evidence, "night \(night)")
    }
  }

  /// A receipt lists no finished consumables, and a proof of a renewal does not prove the first purchase.
  @Test(arguments: [("9", nil), ("8", "8"), ("1", nil)] as [(String, String?)])
  func anIdThatAGenuineReceiptDoesNotListIsAskedAbout(named: String, original: String?) async throws {
    try await addReceipt(stating: named)
    let script = AnswerScript.found(1...9)
    var listed = TransactionFact.test("1", .offline)
    listed.originalTransactionId = original ?? "1"
    let proof = GenuineProof(environment: .production, bundleId: "com.example.game", facts: [listed])
    let summary = try await shop.recheck(script, judge: OfflineJudge(hasRoots: true) { _ in (.app, .genuine(proof)) })
    // The receipt's own purchase, and the stated ID if it is another one.
    #expect(script.asked == (named == "1" ? ["1"] : ["1", named]))
    #expect(summary.outcomes == [.verified: named == "1" ? 1 : 2])
  }

  /// A missing answer about one purchase of a receipt does not delay the look-up of an ID outside the receipt.
  @Test(arguments: ["9", "1"]) func anUnansweredReceiptDoesNotDelayIDsOutsideIt(named: String) async throws {
    try await addReceipt(stating: named)
    let script: AnswerScript = ["1": [.silent], "9": [.found("9")]]
    for night in 0...1 as ClosedRange<Int64> {
      _ = try await shop.recheck(script, asOf: Self.asOf + .days(night), judge: .genuine(["1"]))
    }
    #expect(script.asked.filter { $0 == "9" }.count == (named == "9" ? 1 : 0) && script.asked.contains("1"))
    #expect(try await shop.rows("subject_id", from: "lookups") == (named == "9" ? ["com.example.game/9"] : []))
  }

  @Test(arguments: [("com.example.stranger", false), ("com.example.game", true)])
  func receiptsOfOtherAppsDoNotAccuseOurSecret(app: String, isOurs: Bool) async throws {
    for number in 1...3 { try await shop.receipt("r\(number)", for: "nobody's") }
    let script: AnswerScript = ["1": [ChannelAnswer(.fault(.sharedSecretRefused))]]
    let summary = try await shop.recheck(script, judge: .claim(["1"], kind: .transaction, of: app))
    #expect(summary.faults.isEmpty != isOurs && (script.asked.count == 3) != isOurs, "\(summary)")
  }
}

/// The app that is asked about a receipt, of two apps.
@Suite struct AskedAppTests {
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture(apps: ["com.example.game", "com.example.other"]) }

  /// Re-checks one receipt about the transaction 1. Returns the questions about it to either app.
  private func asked(
    about order: String?, _ judge: OfflineJudge, of bundleId: String
  ) async throws -> (game: [String], other: [String]) {
    if let order { try await shop.order(order, transaction: nil, bundleId: "com.example.other") }
    try await shop.receipt("r", for: order ?? "nobody's")
    let (game, other): (AnswerScript, AnswerScript) = (
      ["1": [.found("1", bundleId: bundleId)]], ["1": [.found("1", bundleId: bundleId)]]
    )
    let summary = try await shop.recheck(
      [ScriptedChannel(game), ScriptedChannel(other, of: "com.example.other")], judge: judge)
    #expect(summary.outcomes == [.verified: 1])
    return (game.asked, other.asked)
  }

  @Test func theSignedBundleIDSelectsTheApp() async throws {
    let asked = try await asked(about: "o", .genuine(["1"]), of: "com.example.game")
    #expect(asked.game == ["1"] && asked.other.isEmpty)
  }

  @Test func aReceiptWithoutAnOrderStatesItsApp() async throws {
    let judge = OfflineJudge.claim(["1"], kind: .transaction, of: "com.example.other")
    let asked = try await asked(about: nil, judge, of: "com.example.other")
    #expect(asked.game.isEmpty && asked.other == ["1"])
  }

  private func receipts() async throws -> [String] {
    try await shop.rows("subject_id, outcome, reason, is_wanted::text", from: "receipt_checks ORDER BY 1")
  }

  /// Their answers stay until the app returns.
  @Test func receiptsOfARemovedAppAreNotAskedAbout() async throws {
    let app = "com.example.other"
    var smaller = shop
    smaller.settings.apps.removeLast()
    let judge = OfflineJudge.claim(["1"], kind: .transaction, of: app)
    let (game, other): (AnswerScript, AnswerScript) = ([:], ["1": [.found("1", bundleId: app)]])
    func both(_ day: Int64) async throws -> RecheckSummary {
      let asOf = RecheckFixture.asOf + .days(day)
      let channels = [ScriptedChannel(game, asOf: asOf), ScriptedChannel(other, of: app, asOf: asOf)]
      return try await shop.recheck(channels, asOf: asOf, judge: judge)
    }
    try await shop.order("o", transaction: nil, bundleId: app)
    try await shop.receipt("known", for: "o")
    try await shop.receipt("without an order", for: nil)
    #expect(try await both(0).outcomes == [.verified: 2])
    try await shop.receipt("new", for: "o", age: .days(-7))
    for day in 8...9 as ClosedRange<Int64> {
      let asOf = RecheckFixture.asOf + .days(day)
      let summary = try await smaller.recheck([ScriptedChannel(game, asOf: asOf)], asOf: asOf, judge: judge)
      #expect(summary.outcomes.isEmpty && summary.exitStatus == .complete && game.asked.isEmpty, "\(summary)")
      #expect(
        try await receipts() == [
          "known verified false", "new pending wrong_bundle false", "without an order verified false",
        ])
      let rebuilt = try await shop.session.withConnection {
        try QueueRebuild.run(isRepairing: false, shopDates: [:], on: $0)
      }
      #expect(rebuilt.differentDueness == 0, "\(rebuilt)")
    }
    #expect(try await both(10).outcomes == [.verified: 3] && game.asked.isEmpty)
    #expect(
      try await receipts() == ["known verified true", "new verified true", "without an order verified true"])
  }

  @Test func aReceiptIsAskedAboutOnceItsOrderStatesAConfiguredApp() async throws {
    try await shop.order("o", transaction: nil, bundleId: "com.example.stranger")
    try await shop.receipt("r", for: "o")
    let script = AnswerScript.found(1...1)
    let judge = OfflineJudge.claim(["1"], kind: .transaction, of: "com.example.stranger")
    func recheck(_ hours: Int64) async throws -> RecheckSummary {
      let asOf = RecheckFixture.asOf + .hours(hours)
      return try await shop.recheck([ScriptedChannel(script, asOf: asOf)], asOf: asOf, judge: judge)
    }
    #expect(try await recheck(0).outcomes.isEmpty && script.asked.isEmpty)
    try await shop.session.execute("UPDATE sales.orders SET bundle_id = 'com.example.game'")
    #expect(try await recheck(1).outcomes == [.verified: 1] && script.asked == ["1"])
  }

  @Test func receiptsOfUnknownAppsCountForTheAppOfTheirOrder() async throws {
    let stranger = "com.example.stranger"
    let fact = TransactionFact.test("1", .offline, bundleId: stranger)
    let proof = GenuineProof(environment: .production, bundleId: stranger, facts: [fact])
    let judge = OfflineJudge(hasRoots: true) { _ in (.app, .genuine(proof)) }
    _ = try await asked(about: "o", judge, of: stranger)
    #expect(try await shop.rows("app", from: "receipt_checks") == ["com.example.other"])
  }
}
