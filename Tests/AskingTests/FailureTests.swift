import AppStore
import Postgres
import Reconciliation
import Settings
import Synchronization
import TestSupport
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Each failure affects its subject only.
@Suite struct FailureTests {
  private static let asOf = RecheckFixture.asOf

  /// Judges payloads with the prefix `genuine` as genuine, and all others as malformed.
  private static let damaged = OfflineJudge(hasRoots: true) { payload in
    payload.hasPrefix("genuine")
      ? (
        .app,
        .genuine(
          GenuineProof(
            environment: .production, bundleId: "com.example.game",
            facts: [.test("g\(payload)", .offline, signed: asOf - .days(1))]))
      ) : (.malformed, .refused(.malformed))
  }

  private func fill(_ shop: RecheckFixture, damaged: Int, genuine: Int) async throws {
    for number in 0..<damaged + genuine {
      try await shop.order("o\(number)", transaction: nil)
      try await shop.receipt("r\(number)", for: "o\(number)")
    }
    try await shop.session.execute(
      "UPDATE sales.receipts SET payload = 'genuine ' || receipt_id WHERE substr(receipt_id, 2)::int >= $1",
      [.int(Int64(damaged))])
  }

  private func states(_ shop: RecheckFixture) async throws -> [String] {
    try await shop.rows(
      """
      outcome, reason, count(*)::text] ) FROM night_audit.receipt_checks GROUP BY outcome, reason ORDER BY outcome, reason
      """)
  }

  private func found(_ count: Int, id: String = "ggenuine r") -> ScriptedChannel.Script {
    ScriptedChannel.Script(
      Dictionary(uniqueKeysWithValues: (0..<count).map { ("\(id)\($0)", [.found("\(id)\($0)")]) }))
  }

  // MARK: - Systemic refusals

  @Test func tooManyRefusalsOfOneKindCreateNoFindings() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 30, genuine: 10)
      let summary = try await shop.recheck([ScriptedChannel(found(40))], judge: Self.damaged)
      #expect(summary.exitStatus == .configuration)
      #expect(summary.faults["com.example.game"]?.contains("30 of the 40 customers") == true, "\(summary.faults)")
      #expect(try await states(shop) == ["review systemic 30", "verified 10"])
      // A second run in the same night asks nothing and reports the same fault.
      let again = try await shop.recheck([ScriptedChannel(found(40))], judge: Self.damaged)
      #expect(again.outcomes.isEmpty && again.faults == summary.faults)
      // After the payloads are corrected, the next night judges the receipts again, without a fault.
      try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine ' || receipt_id")
      let next = Self.asOf + .days(1)
      let mended = try await shop.recheck([ScriptedChannel(found(40), asOf: next)], asOf: next, judge: Self.damaged)
      #expect(mended.faults.isEmpty)
      #expect(try await states(shop) == ["verified 40"])
    }
  }

  /// Every run reports them, because the first one may be a re-check, which writes no report, or may be killed.
  @Test func pendingRefusalsAreReportedUntilTheNextAnswer() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 30, genuine: 10)
      let first = try await shop.recheck([ScriptedChannel(found(40))], judge: Self.damaged)
      let later = Self.asOf + .hours(6)
      let next = try await shop.recheck([ScriptedChannel(found(40), asOf: later)], asOf: later, judge: Self.damaged)
      #expect(next.outcomes.isEmpty && next.faults == first.faults && next.exitStatus == .configuration)
      #expect(try await states(shop) == ["review systemic 30", "verified 10"])
    }
  }

  /// Re-checks before a night receive a part of its first answers.
  @Test func tooManyRefusalsOverSeveralRunsCreateNoFindings() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 12, genuine: 1)
      let first = try await shop.recheck([ScriptedChannel(found(13))], judge: Self.damaged)
      #expect(first.faults.isEmpty)
      #expect(try await states(shop) == ["rejected malformed 12", "verified 1"])
      for number in 20..<32 {
        try await shop.order("o\(number)", transaction: nil)
        try await shop.receipt("r\(number)", for: "o\(number)")
      }
      let later = Self.asOf + .minutes(30)
      let second = try await shop.recheck([ScriptedChannel(found(13), asOf: later)], asOf: later, judge: Self.damaged)
      #expect(second.faults["com.example.game"]?.contains("24 of the 25 customers") == true, "\(second.faults)")
      let decided = ["rejected malformed 12", "review systemic 12", "verified 1"]
      #expect(try await states(shop) == decided)
      // Later runs decide the same, until the receipts are asked about again.
      let third = Self.asOf + .hours(20) + .minutes(29)
      let told = try await shop.recheck([ScriptedChannel(found(13), asOf: third)], asOf: third, judge: Self.damaged)
      #expect(told.outcomes.isEmpty && told.faults == second.faults)
      #expect(try await states(shop) == decided)
    }
  }

  /// The worker that ends first knows a part of the night's answers only.
  @Test func pendingRefusalsWaitForActiveWorkers() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 15, genuine: 1)
      let other = try await shop.queue()
      #expect(try await other.claim().isEmpty)
      for _ in 1...2 {
        let first = try await shop.recheck([ScriptedChannel(found(16))], judge: Self.damaged)
        #expect(first.faults.isEmpty, "\(first.faults)")
        #expect(try await states(shop) == ["review systemic 15", "verified 1"])
      }
      // The other worker retires. It is no longer a worker, although its session is open.
      let worker = other.worker
      try await other.store.withConnection { try worker.retire($0) }
      let last = try await shop.recheck([ScriptedChannel(found(16))], judge: Self.damaged)
      #expect(last.outcomes.isEmpty && last.faults.isEmpty)
      #expect(try await states(shop) == ["rejected malformed 15", "verified 1"])
      await other.close()
    }
  }

  /// A person with many receipts counts once, under any alias. The share is therefore small, and all refusals are
  /// decided.
  @Test(arguments: [false, true]) func refusalsOfOnePersonCountOnce(hasAliases: Bool) async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 25, genuine: 40)
      for number in 25..<49 { try await shop.receipt("stray\(number)", for: nil, user: "user of o0") }
      if hasAliases {
        try await shop.session.executeScript(
          """
          CREATE TABLE sales.user_aliases AS SELECT 'user of o' || n AS user_id, 'user of o' || n - 1 AS same_as
          FROM generate_series(1, 24) n
          """)
      } else {
        try await shop.session.executeScript(
          "UPDATE sales.orders SET user_id = 'one' WHERE substr(order_id, 2)::int < 25")
      }
      let summary = try await shop.recheck([ScriptedChannel(found(65))], judge: Self.damaged)
      #expect(summary.faults.isEmpty, "\(summary.faults)")
      #expect(try await states(shop) == ["rejected malformed 49", "verified 40"])
    }
  }

  /// A receipt without an order and a sender accuses no customer, and is in no share.
  @Test func receiptsWithoutAUserAreInNoShare() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 0, genuine: 10)
      for number in 0..<30 { try await shop.receipt("stray\(number)", for: nil, user: nil) }
      let summary = try await shop.recheck([ScriptedChannel(found(10))], judge: Self.damaged)
      #expect(summary.faults.isEmpty, "\(summary.faults)")
      #expect(try await states(shop) == ["rejected malformed 30", "verified 10"])
    }
  }

  /// Verified receipts do not hide a wrong column of transaction IDs, and the other way round.
  @Test func receiptsAndLookUpsHaveTheirOwnShares() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 5, genuine: 100)
      for number in 200..<230 { try await shop.order("o\(number)", transaction: "\(number)") }
      let summary = try await shop.recheck([ScriptedChannel(found(105))], judge: Self.damaged)
      let fault = summary.faults["com.example.game"]
      #expect(fault?.contains("30 of the 30 customers with first answers about stated transaction IDs") == true)
      #expect(try await states(shop) == ["rejected malformed 5", "review systemic 30", "verified 100"])
    }
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
    try await RecheckFixture.run { shop in
      if isSigned {
        try await fill(shop, damaged: 0, genuine: 60)
      } else {
        for number in 0..<60 { try await shop.order("o\(number)", transaction: "1000\(number)") }
      }
      try await shop.session.execute(
        "UPDATE sales.orders SET product_id = 'renamed' WHERE substr(order_id, 2)::int < 25")
      for night in [0, 1] as [Int64] {
        let asOf = Self.asOf + .days(night)
        let next = try await shop.recheck(
          [ScriptedChannel(found(60, id: isSigned ? "ggenuine r" : "1000"), asOf: asOf)], asOf: asOf, judge: judge)
        #expect(next.faults["com.example.game"]?.contains("25 of the 60 customers") == true, "\(night), \(next.faults)")
        #expect(try await states(shop) == ["review systemic 25", "verified 35"], "\(night)")
      }
      try await shop.session.execute("UPDATE sales.orders SET product_id = 'gems'")
      let mended = Self.asOf + .days(2)
      let last = try await shop.recheck(
        [ScriptedChannel(found(60, id: isSigned ? "ggenuine r" : "1000"), asOf: mended)], asOf: mended, judge: judge)
      #expect(last.faults.isEmpty, "\(last.faults)")
      #expect(try await states(shop) == ["verified 60"])
    }
  }

  @Test func aConfirmedAttackIsReported() async throws {
    try await RecheckFixture.run { shop in
      var shop = shop
      shop.settings.systemicShare = .whole
      try await fill(shop, damaged: 30, genuine: 10)
      let summary = try await shop.recheck([ScriptedChannel(found(40))], judge: Self.damaged)
      #expect(summary.faults.isEmpty)
      #expect(try await states(shop) == ["rejected malformed 30", "verified 10"])
    }
  }

  /// The changed share stands in for a night that was killed before its decision. The refusals are pending, and the
  /// counts are stored.
  @Test func pendingRefusalsOfAKilledNightAreDecidedByTheNext() async throws {
    try await RecheckFixture.run { shop in
      var shop = shop
      try await fill(shop, damaged: 30, genuine: 10)
      _ = try await shop.recheck([ScriptedChannel(found(40))], judge: Self.damaged)
      shop.settings.systemicShare = .whole
      // While another worker asks, the counts may be incomplete.
      let other = try await shop.queue(asOf: Self.asOf)
      #expect(try await other.claim().isEmpty)
      var now = Self.asOf + .hours(1)
      _ = try await shop.recheck([ScriptedChannel(found(40), asOf: now)], asOf: now, judge: Self.damaged)
      #expect(try await states(shop) == ["review systemic 30", "verified 10"])
      await other.close()
      now = Self.asOf + .hours(2)
      let next = try await shop.recheck([ScriptedChannel(found(40), asOf: now)], asOf: now, judge: Self.damaged)
      #expect(next.outcomes.isEmpty && next.faults.isEmpty)
      #expect(try await states(shop) == ["rejected malformed 30", "verified 10"])
    }
  }

  /// Refusals of a night with an outage are pending. Once Apple is well, the result is as if there had been no outage.
  @Test func pendingRefusalsAreJudgedByTheirOwnNight() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...132 { try await shop.order("o\(number)", transaction: "\(number)") }
      func apple(knows count: Int, _ night: Int64) -> ScriptedChannel {
        let answers = Dictionary(uniqueKeysWithValues: (1...count).map { ("\($0)", [ChannelAnswer.found("\($0)")]) })
        return ScriptedChannel(.init(answers), asOf: Self.asOf + .days(night))
      }
      // In one night, Apple knows 80 of its 110 transactions.
      let foul = try await shop.recheck([apple(knows: 80, 0)])
      #expect(foul.faults["com.example.game"]?.contains("52 of the 132 customers") == true, "\(foul.faults)")
      #expect(try await states(shop) == ["review systemic 52", "verified 80"])
      // A run about one order, found now or still unknown, decides nothing about the others.
      for (id, after) in [
        ("o110", ["review systemic 51", "verified 81"]), ("o132", ["review systemic 51", "verified 81"]),
      ] {
        var selection = Selection()
        selection.orderId = Identifier(id)
        _ = try await shop.recheck(
          [apple(knows: 110, 1)], asOf: Self.asOf + .days(1), selection: selection)
        #expect(try await states(shop) == after, "\(id)")
      }
      // A missing answer decides nothing about pending refusals either.
      var selection = Selection()
      selection.orderId = "o131"
      let silent = ScriptedChannel(.init(["131": [.silent]]), asOf: Self.asOf + .days(1))
      _ = try await shop.recheck([silent], asOf: Self.asOf + .days(1), selection: selection)
      let well = try await shop.recheck([apple(knows: 110, 3)], asOf: Self.asOf + .days(3))
      #expect(well.faults.isEmpty, "\(well.faults)")
      #expect(try await states(shop) == ["not_found not_found 22", "verified 110"])
    }
  }

  /// After a change in a column of the shop, refused receipts are judged again. Their share counts first answers only.
  @Test func aRepeatedRefusalIsNoFirstAnswer() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 22, genuine: 80)
      let first = try await shop.recheck([ScriptedChannel(found(102))], judge: Self.damaged)
      #expect(first.faults.isEmpty)
      let known = ["rejected malformed 22", "verified 80"]
      #expect(try await states(shop) == known)
      for (night, bundleId) in [(1, nil), (2, "com.example.game")] as [(Int64, String?)] {
        try await shop.session.execute("UPDATE sales.orders SET bundle_id = $1", [.text(bundleId)])
        let asOf = Self.asOf + .days(night)
        let next = try await shop.recheck([ScriptedChannel(found(102), asOf: asOf)], asOf: asOf, judge: Self.damaged)
        #expect(next.outcomes == [.rejected: 22] && next.faults.isEmpty, "\(next.outcomes), \(next.faults)")
        #expect(try await states(shop) == known)
      }
    }
  }

  /// A different refusal of another payload is a first answer, whether the earlier refusals were few or systemic.
  @Test(arguments: [80, 10]) func aDifferentRefusalIsAFirstAnswer(genuine: Int) async throws {
    let judge = OfflineJudge(hasRoots: true) { payload in
      payload.hasPrefix("forged") ? (.signed, .refused(.signatureInvalid)) : Self.damaged.judge(payload)
    }
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 22, genuine: genuine)
      let script = found(22 + genuine)
      _ = try await shop.recheck([ScriptedChannel(script)], judge: judge)
      let isFew = genuine == 80
      #expect(
        try await states(shop) == [isFew ? "rejected malformed 22" : "review systemic 22", "verified \(genuine)"])
      try await shop.session.execute(
        "UPDATE sales.receipts SET payload = 'forged ' || receipt_id WHERE payload NOT LIKE 'genuine%'")
      for night in [1, 2] as [Int64] {
        let asOf = Self.asOf + .days(night)
        let next = try await shop.recheck([ScriptedChannel(script, asOf: asOf)], asOf: asOf, judge: judge)
        #expect(
          next.faults["com.example.game"]?.contains("22 of the 22 customers") == true, "\(night), \(next.faults)")
        #expect(try await states(shop) == ["review systemic 22", "verified \(genuine)"])
      }
      // Once the payloads are genuine, there is no fault.
      try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine ' || receipt_id")
      let mended = Self.asOf + .days(3)
      let last = try await shop.recheck([ScriptedChannel(script, asOf: mended)], asOf: mended, judge: judge)
      #expect(last.faults.isEmpty)
      #expect(try await states(shop) == ["verified \(22 + genuine)"])
    }
  }

  /// A malformed proof is rejected without an answer of Apple's. A genuine proof waits for its answer.
  @Test func anOutageDoesNotMakeForgedProofsSystemic() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 22, genuine: 80)
      let silent = try await shop.recheck([ScriptedChannel(found(102))], judge: Self.damaged, isOffline: true)
      #expect(silent.faults.isEmpty, "\(silent.faults)")
      #expect(try await states(shop) == ["pending never_checked 80", "rejected malformed 22"])
      // Apple's answers about the genuine proofs change nothing about the others.
      let next = Self.asOf + .days(1)
      let spoken = try await shop.recheck([ScriptedChannel(found(102), asOf: next)], asOf: next, judge: Self.damaged)
      #expect(spoken.faults.isEmpty, "\(spoken.faults)")
      #expect(try await states(shop) == ["rejected malformed 22", "verified 80"])
    }
  }

  /// A proof under review was neither accepted nor refused.
  @Test func refusalsAfterIndecisiveAnswersAreFirstAnswers() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...25 { try await shop.order("o\(number)", transaction: "\(number)") }
      let odd = Dictionary(uniqueKeysWithValues: (1...25).map { ("\($0)", [ChannelAnswer(.review)]) })
      _ = try await shop.recheck([ScriptedChannel(.init(odd))])
      #expect(try await states(shop) == ["review apple_error 25"])
      let next = Self.asOf + .days(1)
      let refused = try await shop.recheck([ScriptedChannel(.init([:]), asOf: next)], asOf: next)
      #expect(refused.faults["com.example.game"]?.contains("25 of the 25 customers") == true, "\(refused.faults)")
      #expect(try await states(shop) == ["review systemic 25"])
    }
  }

  @Test func someRefusalsAreTheCustomers() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 19, genuine: 1)
      let summary = try await shop.recheck([ScriptedChannel(found(20))], judge: Self.damaged)
      #expect(summary.faults.isEmpty)
      #expect(try await states(shop) == ["rejected malformed 19", "verified 1"])
      // One payload is corrected. It is asked about at once, although its refusal was final.
      try await shop.session.execute("UPDATE sales.receipts SET payload = 'genuine r3' WHERE receipt_id = 'r3'")
      let later = Self.asOf + .hours(1)
      let mended = try await shop.recheck([ScriptedChannel(found(20), asOf: later)], asOf: later, judge: Self.damaged)
      #expect(mended.outcomes == [.verified: 1])
    }
  }

  // MARK: - Parts

  @Test func partialAnswersStoreEvidenceWithoutAnOutcome() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      var part = ChannelAnswer.found("1")
      part.missing = Silence(reason: .appleError, detail: "HTTP 503", retryAfter: Self.asOf + .hours(1))
      let summary = try await shop.recheck([ScriptedChannel(.init(["1": [part]]))])
      #expect(summary.outcomes == [.unanswered: 1] && summary.exitStatus == .incomplete)
      #expect(try await shop.rows("transaction_id] ) FROM night_audit.evidence") == ["1"])
      #expect(try await states(shop) == ["unanswered apple_error 1"])
    }
  }

  private let outOfOrder = ChannelAnswer(.silent(Silence(reason: .appleError, detail: "HTTP 503")))

  /// A gate after some answered questions, followed by some failures.
  ///
  /// - Parameter step: The time that each reading adds to the clock.
  private func gate(answers: Int = 0, failures: Int, step: Duration = .zero) -> AskingGate {
    let uptime = Mutex(Duration.zero)
    return gate(answers: answers, failures: failures) {
      uptime.withLock { uptime in
        uptime += step
        return uptime
      }
    }
  }

  private func gate(
    answers: Int = 0, failures: Int, apps: [String] = ["com.example.game"], uptime: @escaping @Sendable () -> Duration
  ) -> AskingGate {
    let clock = RateGate.Clock(uptime: uptime, sleep: { _ throws(CancellationError) in })
    let gate = AskingGate(apps: apps, clock: clock)
    var trouble = outOfOrder
    trouble.asked = [.production]
    var found = ChannelAnswer.found("0")
    found.asked = [.production]
    for answer in Array(repeating: found, count: answers) + Array(repeating: trouble, count: failures) {
      guard case .granted(let permit) = gate.admit(AskingGate.Lane(app: apps[0], side: .production)) else { continue }
      _ = gate.note(answer, permit)
    }
    return gate
  }

  /// A question that awaits its retry at the deadline is stored, because it would look as if it had never been asked.
  @Test func anAnswerAwaitingItsRetryIsStoredAtTheDeadline() async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      let script = ScriptedChannel.Script(["1": [outOfOrder]])
      let summary = try await shop.recheck([ScriptedChannel(script)], limit: .seconds(2), gate: gate(failures: 18))
      #expect(summary.outcomes == [.unanswered: 1] && script.asked == ["1", "1"])
      #expect(try await states(shop) == ["unanswered apple_error 1"])
    }
  }

  /// Failed probes consume no retry of a question, whether they end in an error or a timeout.
  @Test(arguments: [ChannelAnswer(.silent(Silence(reason: .appleError, detail: "HTTP 503"))), .silent])
  func anOutageConsumesNoRetry(trouble: ChannelAnswer) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      let script = ScriptedChannel.Script(["1": Array(repeating: trouble, count: 6) + [.found("1")]])
      let summary = try await shop.recheck([ScriptedChannel(script)], gate: gate(failures: 19, step: .seconds(60)))
      #expect(summary.outcomes == [.verified: 1] && summary.endedEarly == nil && script.asked.count == 7)
    }
  }

  /// Apple never answers about some purchases. With nothing else left to ask, they are not taken for an outage.
  @Test func fewUnansweredChecksDoNotDelayTheNight() async throws {
    try await RecheckFixture.run { shop in
      let ids = (1...8).map { "\($0)" }
      for id in ids { try await shop.order("o\(id)", transaction: id) }
      let script = ScriptedChannel.Script(Dictionary(uniqueKeysWithValues: ids.map { ($0, [outOfOrder]) }))
      let summary = try await shop.recheck(
        [ScriptedChannel(script)], limit: .seconds(20), gate: gate(answers: 1, failures: 0))
      #expect(summary.endedEarly == nil && summary.outcomes == [.unanswered: 8] && script.asked.count == 24)
    }
  }

  /// Every purchase on a receipt is asked about, but it is one proof without an answer.
  @Test func aReceiptWithManyPurchasesDoesNotDelayTheNight() async throws {
    let ids = (1...30).map { "\($0)" }
    let proof = GenuineProof(
      environment: .production, bundleId: "com.example.game", facts: ids.map { .test($0, .offline) })
    let judge = OfflineJudge(hasRoots: true) { _ in (.app, .genuine(proof)) }
    for (failures, asked, hasTime) in [(0, 32, true), (17, 3, false)] {
      try await RecheckFixture.run { shop in
        try await shop.order("o", transaction: "1")
        try await shop.receipt("r", for: "o")
        let script = ScriptedChannel.Script(Dictionary(uniqueKeysWithValues: ids.map { ($0, [outOfOrder]) }))
        let summary = try await shop.recheck(
          [ScriptedChannel(script)], judge: judge, limit: .seconds(hasTime ? 30 : 2), gate: gate(failures: failures))
        #expect((summary.endedEarly == nil) == hasTime && script.asked.count == asked, "\(script.asked)")
        // The failed attempt is stored, so that a later night can tell that the question is stuck.
        #expect(try await states(shop) == ["unanswered apple_error 1"])
      }
    }
  }

  /// The first night is not delayed either, where other questions are answered and the retries at the end fail alone.
  @Test func failuresBesideAnswersDoNotDelayTheNight() async throws {
    try await RecheckFixture.run { shop in
      var answers: [String: [ChannelAnswer]] = [:]
      for number in 1...60 {
        try await shop.order("o\(number)", transaction: "\(number)")
        answers["\(number)"] = number % 2 == 0 ? [outOfOrder] : [.found("\(number)")]
      }
      let script = ScriptedChannel.Script(answers)
      var shop = shop
      shop.settings.concurrency = 12
      let summary = try await shop.recheck(
        [ScriptedChannel(script)], limit: .seconds(30), gate: gate(failures: 0, step: .seconds(60)))
      #expect(summary.endedEarly == nil && summary.outcomes == [.unanswered: 30, .verified: 30])
    }
  }

  /// In an outage, a question that failed on an earlier night waits like all others. If another question was answered
  /// tonight, it uses its retries.
  @Test(arguments: [0, 1]) func aQuestionThatFailedBeforeWaitsForTheEndOfAnOutage(answers: Int) async throws {
    try await RecheckFixture.run { shop in
      try await shop.order("o", transaction: "1")
      _ = try await shop.recheck([ScriptedChannel(.init(["1": Array(repeating: outOfOrder, count: 3)]))])
      let later = Self.asOf + .days(1)
      let script = ScriptedChannel.Script(["1": Array(repeating: outOfOrder, count: 6) + [.found("1")]])
      let summary = try await shop.recheck(
        [ScriptedChannel(script, asOf: later)], asOf: later, limit: .seconds(30),
        gate: gate(answers: answers, failures: 20, step: .seconds(10)))
      #expect(summary.endedEarly == nil && summary.outcomes == [answers == 0 ? .verified : .unanswered: 1])
      #expect(script.asked.count == (answers == 0 ? 7 : 3))
    }
  }

  @Test func theWaitOfAQuestionThatFailedBeforeIsLimited() {
    func silent(for duration: Duration) -> AskingGate.Condition {
      AskingGate.Condition(answered: 0, unansweredDuration: duration)
    }
    for hasFailedBefore in [true, false] {
      var history = CheckHistory(dated: Self.asOf, knownSince: Self.asOf)
      if hasFailedBefore { history.unansweredSince = Self.asOf - .days(1) }
      var trials = RetryBudget(history, asOf: Self.asOf, isFurther: false)
      let isOutage = trials.fail(on: silent(for: RetryBudget.waitLimit - .seconds(1)))
      #expect(isOutage && trials.count == 0)
      let isStillOne = trials.fail(on: silent(for: RetryBudget.waitLimit))
      #expect(isStillOne != hasFailedBefore && trials.count == (hasFailedBefore ? 1 : 0))
      #expect(trials.meaning(on: silent(for: RetryBudget.waitLimit)) == (hasFailedBefore ? .abandoned : .failure))
    }
  }

  /// A permit from before an outage is invalid when its question is next.
  @Test func permitsFromBeforeAnOutageAreInvalid() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...4 { try await shop.order("o\(number)", transaction: "\(number)") }
      let gate = self.gate(failures: 19)
      let first = Mutex(true)
      let script = ScriptedChannel.Script(
        Dictionary(uniqueKeysWithValues: (1...4).map { ("\($0)", [outOfOrder]) }))
      var channel = ScriptedChannel(script)
      channel.beforeTurn = {
        let isFirst = first.withLock { first in
          defer { first = false }
          return first
        }
        // The other questions wait until the first answer has made the app silent.
        while !isFirst, gate.silent.isEmpty, (try? await Task.sleep(for: .milliseconds(5))) != nil {}
      }
      let summary = try await shop.recheck([channel], limit: .seconds(2), gate: gate)
      #expect(script.asked.count == 1 && summary.outcomes == [.unanswered: 1] && summary.endedEarly != nil)
      let outcomes = "outcome, count(*)::text] ) FROM night_audit.receipt_checks GROUP BY outcome ORDER BY 1"
      #expect(try await shop.rows(outcomes) == ["pending 3", "unanswered 1"])
    }
  }

  // MARK: - Leases of other workers

  /// Three questions, all of them leased to another worker.
  private func leasedByAnother(
    _ body: (RecheckFixture, _ other: CheckQueue, _ found: [String: [ChannelAnswer]]) async throws -> Void
  ) async throws {
    try await RecheckFixture.run { shop in
      for number in 1...3 { try await shop.order("o\(number)", transaction: "\(number)") }
      let other = try await shop.queue()
      try await other.enqueue()
      #expect(try await other.claim().count == 3)
      try await body(shop, other, Dictionary(uniqueKeysWithValues: (1...3).map { ("\($0)", [.found("\($0)")]) }))
      await other.close()
    }
  }

  /// Runs a re-check of all checks, and an action once it logs that it waits.
  private func whileItWaits(
    _ shop: RecheckFixture, _ channels: [ScriptedChannel], _ selection: Selection = Selection(),
    _ meanwhile: () async throws -> Void
  ) async throws -> RecheckSummary {
    let (waiting, waits) = AsyncStream.makeStream(of: Void.self)
    async let asking = {
      defer { waits.finish() }
      return try await shop.recheck(channels, selection: selection) {
        if $0.contains(RecheckStage.waitMessage) { waits.finish() }
      }
    }()
    for await _ in waiting {}
    try await meanwhile()
    return try await asking
  }

  /// A worker without checks waits for the others. The checks of a worker that dies are asked about in the same run.
  @Test func checksOfADeadWorkerAreTakenOver() async throws {
    try await leasedByAnother { shop, other, found in
      let script = ScriptedChannel.Script(found)
      let summary = try await whileItWaits(shop, [ScriptedChannel(script)]) {
        #expect(script.asked == [])
        await other.close()
      }
      #expect(summary.outcomes == [.verified: 3] && summary.endedEarly == nil)
    }
  }

  /// The last worker that asks decides refusals. A worker that only waits does not delay the decision.
  @Test func aPausedWorkerDoesNotCountAsAsking() async throws {
    try await leasedByAnother { shop, other, found in
      _ = try await whileItWaits(shop, [ScriptedChannel(.init(found))]) {
        let others = try await shop.session.execute("SELECT \(Worker.otherWorkersLive)", [.int(other.worker.number)])
        #expect(try others.single().bool(0) == false)
        await other.close()
      }
    }
  }

  /// A check without a lease that another session has locked is not settled.
  @Test func lockedChecksAreAskedAboutAfterTheLock() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...3 { try await shop.order("o\(number)", transaction: "\(number)") }
      let queue = try await shop.queue()
      try await queue.enqueue()
      await queue.close()
      try await shop.writing.executeScript("BEGIN; SELECT FROM night_audit.receipt_checks FOR UPDATE LIMIT 1")
      let script = ScriptedChannel.Script(
        Dictionary(uniqueKeysWithValues: (1...3).map { ("\($0)", [.found("\($0)")]) }))
      let summary = try await whileItWaits(shop, [ScriptedChannel(script)]) {
        #expect(script.asked.count == 2)
        try await shop.writing.executeScript("COMMIT")
      }
      #expect(summary.outcomes == [.verified: 3])
    }
  }

  /// Otherwise, two workers that hold checks of an ended app would wait for each other.
  @Test func aWorkerWithAnEndedAppDoesNotWaitForOthers() async throws {
    try await twoApps { shop, found in
      let other = try await shop.queue()
      try await other.enqueue()
      let leased = try await other.claim()
      #expect(!leased.isEmpty)
      let refused = found.mapValues { _ in [ChannelAnswer(.fault(.accessRefused))] }
      let scripts = [ScriptedChannel.Script(refused), ScriptedChannel.Script(found)]
      let channels = zip(apps, scripts).map { ScriptedChannel($1, of: $0) }
      let summary = try await shop.recheck(channels) {
        if $0.contains(RecheckStage.waitMessage) { Issue.record("It waits.") }
      }
      #expect(summary.faults.keys.sorted() == [apps[0]] && scripts[1].asked.count == 20)
      await other.close()
    }
  }

  @Test func theDeadlineEndsTheWaitForOtherWorkers() async throws {
    try await leasedByAnother { shop, _, found in
      let script = ScriptedChannel.Script(found)
      let summary = try await shop.recheck([ScriptedChannel(script)], limit: .seconds(1))
      #expect(script.asked == [] && summary.isContinuedByOtherWorkers && summary.endedEarly != nil)
    }
  }

  /// A person waits for a filtered run; a night has its deadline.
  @Test func onlyUnfilteredRunsWaitWithoutALimit() {
    for isWhole in [true, false] {
      let wait = (1...100).reduce(IdleWait(isWhole: isWhole)) { wait, _ in wait.further }
      #expect(wait.mayKeepWaiting == isWhole)
    }
  }

  /// A check that another worker has made due is in no list that was read before.
  @Test func aFilteredRunTakesChecksThatOtherWorkersMadeDue() async throws {
    try await leasedByAnother { shop, other, found in
      var selection = Selection()
      selection.orderId = "o1"
      let script = ScriptedChannel.Script(found)
      let summary = try await whileItWaits(shop, [ScriptedChannel(script)], selection) {
        try await shop.receipt("r", for: "o1")
        try await other.enqueue()
        try await shop.session.execute(
          "UPDATE night_audit.receipt_checks SET due_from = NULL WHERE subject_kind = 'lookup'")
      }
      #expect(summary.outcomes.values.reduce(0, +) == 1 && !summary.isContinuedByOtherWorkers)
    }
  }

  // MARK: - Failures of one app

  private let apps = ["com.example.game", "com.example.quiz"]

  /// Forty purchases of one app and twenty of another, with Apple's answers.
  private func twoApps(
    _ body: (RecheckFixture, _ found: [String: [ChannelAnswer]]) async throws -> Void
  ) async throws {
    try await RecheckFixture.run(apps: apps) { shop in
      var shop = shop
      shop.settings.batchSize = 10
      var found: [String: [ChannelAnswer]] = [:]
      for number in 1...60 {
        let isFirst = number <= 40
        let app = apps[isFirst ? 0 : 1]
        try await shop.order("o\(number)", transaction: "\(number)", bundleId: app, age: .days(isFirst ? 3 : 2))
        found["\(number)"] = [.found("\(number)", bundleId: app)]
      }
      try await body(shop, found)
    }
  }

  /// Checks of other apps are asked about, however many checks of a silent app are due first, and however few run at a
  /// time. The silent app is asked once it answers again.
  @Test(arguments: [true, false]) func anOutageOfOneAppDoesNotBlockOthers(comesBack: Bool) async throws {
    try await twoApps { shop, found in
      let uptime = Mutex(Duration.zero)
      let scripts = apps.map { _ in ScriptedChannel.Script(found) }
      var channels = zip(scripts, apps).map { ScriptedChannel($0, of: $1) }
      channels[1].beforeAnswer = { count in
        if comesBack, count == 20 { uptime.withLock { $0 = .seconds(60) } }
      }
      let summary = try await shop.recheck(
        channels, limit: .seconds(comesBack ? 60 : 4),
        gate: gate(failures: 20, apps: apps) { uptime.withLock { $0 } })
      #expect(scripts.map(\.asked.count) == [comesBack ? 40 : 0, 20])
      #expect(summary.outcomes == [.verified: comesBack ? 60 : 20] && (summary.endedEarly == nil) == comesBack)
      #expect(Set(scripts[0].asked).count == scripts[0].asked.count)
    }
  }

  /// Questions that were sent before the outage wait like all others, and are stored at the end.
  @Test func anOutageDuringARunDoesNotBlockOthers() async throws {
    try await twoApps { shop, found in
      let game = ScriptedChannel.Script(found.mapValues { _ in [outOfOrder] })
      let quiz = ScriptedChannel.Script(found)
      let summary = try await shop.recheck(
        [ScriptedChannel(game, of: apps[0]), ScriptedChannel(quiz, of: apps[1])], limit: .seconds(4),
        gate: gate(failures: 16, apps: apps) { .zero })
      #expect(game.asked.count == 4 && quiz.asked.count == 20)
      #expect(summary.outcomes == [.unanswered: 4, .verified: 20] && summary.endedEarly != nil)
      let states = "outcome, count(*)::text] ) FROM night_audit.receipt_checks GROUP BY outcome ORDER BY 1"
      #expect(try await shop.rows(states) == ["pending 36", "unanswered 4", "verified 20"])
    }
  }

  /// An app whose rate Apple has limited does not block others either.
  @Test func aRateLimitedAppDoesNotBlockOthers() async throws {
    try await twoApps { shop, found in
      let scripts = apps.map { _ in ScriptedChannel.Script(found) }
      var channels = zip(scripts, apps).map { ScriptedChannel($0, of: $1) }
      let turns = RateGate(rate: nil)
      channels[0].turns = turns
      channels[0].beforeAnswer = { _ in turns.shut(for: .seconds(600)) }
      let summary = try await shop.recheck(
        channels, limit: .seconds(4), gate: gate(failures: 0, apps: apps) { .zero })
      #expect(scripts[0].asked.count <= shop.settings.concurrency && scripts[1].asked.count == 20)
      #expect(summary.outcomes == [.verified: 20 + scripts[0].asked.count] && summary.endedEarly != nil)
    }
  }

  /// Questions that continue on a rate-limited side do not block others either.
  @Test func aRateLimitedSandboxDoesNotBlockOthers() async throws {
    try await twoApps { shop, found in
      let game = ScriptedChannel.Script(found.mapValues { _ in [ChannelAnswer(.silent(.deferredByRateLimit))] })
      let quiz = ScriptedChannel.Script(found)
      let channel = ScriptedChannel(game, of: apps[0])
      channel.sandboxTurns.shut(for: .seconds(600))
      let summary = try await shop.recheck(
        [channel, ScriptedChannel(quiz, of: apps[1])], limit: .seconds(6),
        gate: gate(failures: 0, apps: apps) { .zero })
      #expect(game.asked.count == 40 && Set(game.asked).count == 40 && quiz.asked.count == 20)
      // Their results are stored at the end.
      #expect(summary.outcomes == [.unanswered: 40, .verified: 20] && summary.endedEarly != nil)
    }
  }

  /// The wait for a rate-limited app ends when Apple refuses the app's credentials.
  @Test func appsWithRejectedCredentialsAreNotAwaited() async throws {
    try await twoApps { shop, found in
      let scripts = apps.map { _ in ScriptedChannel.Script(found) }
      var channels = zip(scripts, apps).map { ScriptedChannel($0, of: $1) }
      channels[0].turns.shut(for: .seconds(600))
      let gate = gate(failures: 0, apps: apps) { .zero }
      channels[1].beforeAnswer = { count in
        guard count == 20 else { return }
        for id in 1...9 { _ = gate.refuse(.accessRefused, app: apps[0], id: "\(id)", isSecondAttempt: true) }
      }
      let summary = try await shop.recheck(channels, limit: .seconds(120), gate: gate)
      #expect(summary.faults.keys.sorted() == [apps[0]] && summary.endedEarly == nil)
      #expect(scripts.map(\.asked.count) == [0, 20] && summary.outcomes == [.verified: 20])
    }
  }

  /// Checks that another worker releases are asked about, although all known checks wait for a silent app.
  @Test(.timeLimit(.minutes(5))) func releasedChecksAreTakenOverDuringAnOutage() async throws {
    try await twoApps { shop, found in
      let scripts = apps.map { _ in ScriptedChannel.Script(found) }
      let other = try await shop.queue()
      try await other.enqueue()
      while try await other.claim().count == shop.settings.batchSize {}
      // The leases on the silent app's checks are released.
      try await shop.session.execute(
        "UPDATE night_audit.receipt_checks SET worker = NULL WHERE subject_id LIKE '\(apps[0])/%'")
      let channels = zip(scripts, apps).map { ScriptedChannel($0, of: $1) }
      async let summary = shop.recheck(channels, limit: .seconds(20), gate: gate(failures: 20, apps: apps) { .zero })
      let taken = "count(*)::text] ) FROM night_audit.receipt_checks WHERE worker > \(other.worker.number)"
      while try await shop.rows(taken) != ["40"] {}
      await other.close()
      #expect(try await summary.outcomes == [.verified: 20])
      #expect(scripts.map(\.asked.count) == [0, 20])
    }
  }

  // MARK: - The database

  @Test func sessionLossWhileStoringLosesNoAnswers() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...200 { try await shop.order("o\(number)", transaction: "\(number)") }
      let script = ScriptedChannel.Script(
        Dictionary(uniqueKeysWithValues: (1...200).map { ("\($0)", [.found("\($0)")]) }))
      var channel = ScriptedChannel(script)
      let session = shop.session
      channel.beforeAnswer = { number in
        guard number % 60 == 0 else { return }
        // All sessions except the one that ends them.
        _ = try? await session.execute(
          """
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()
          """)
      }
      let summary = try await shop.recheck([channel])
      #expect(summary.outcomes == [.verified: 200] && summary.endedEarly == nil)
      #expect(script.asked.count == 200, "\(script.asked.count)")
      #expect(try await states(shop) == ["verified 200"])
      #expect(try await shop.rows("count(*)::text] ) FROM night_audit.answers") == ["200"])
      #expect(try await shop.rows("count(*)::text] ) FROM night_audit.evidence") == ["200"])
    }
  }

  /// After a session is lost, the result of its last statement is unknown.
  @Test(arguments: ["SET worker = $4", "COMMIT"]) func aLostReplyToALeaseStrandsNoChecks(lost: String) async throws {
    try await RecheckFixture.run { shop in
      for number in 1...3 { try await shop.receipt("r\(number)", for: "o\(number)") }
      let first = try await shop.queue()
      try await first.enqueue()
      await first.close()
      let server = try await PrivatePostgres.shared().directory
      let relay = try DisconnectingRelay(before: server, swallowed: lost)
      let direct = shop.settings.databaseURL
      let opened = Counter()
      let connect: @Sendable () async throws -> PostgresSession = {
        opened.add(1)
        // The first session registers the worker, the second one claims.
        let conninfo = opened.value == 2 ? direct.replacing(server, with: relay.directory) : direct
        return try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
      }
      let queue = try await CheckQueue.open(
        settings: shop.settings, asOf: Self.asOf, isPastAudit: false, selection: Selection(), connect: connect,
        connectSales: shop.connect)
      #expect(try await queue.claim().count == 3)
      #expect(opened.value == 3)
      #expect(try await queue.claim().isEmpty)
      await queue.close()
    }
  }

  @Test func waitingForTheDatabaseIsLoggedOnce() async throws {
    let attempts = Counter()
    let said = Mutex<[String]>([])
    let session = OpenSession(isWaiting: { error in said.withLock { $0.append("\(error)") } }) {
      attempts.add(1)
      if attempts.value < 3 { throw PostgresError(.connectionFailed, "too many connections for role") }
      throw PostgresError(.usage, "that is enough")
    }
    await #expect(throws: PostgresError.self) { try await session.execute("SELECT 1") }
    #expect(attempts.value == 3)
    #expect(said.withLock { $0.count } == 1 && said.withLock { $0.first }?.contains("too many connections") == true)
  }

  /// A stopped process keeps its session, but does not renew its lease.
  @Test func aWorkerWhoseLeaseHasRunOutLosesItsChecks() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...10 { try await shop.order("o\(number)", transaction: "\(number)") }
      let stopped = try await shop.queue()
      try await stopped.enqueue()
      #expect(try await stopped.claim().count == 10)
      let other = try await shop.queue()
      #expect(try await other.claim().isEmpty)
      let runOut =
        "UPDATE night_audit.workers SET leased_until = clock_timestamp() - interval '1 second' WHERE number = $1"
      try await shop.session.execute(runOut, [.int(stopped.worker.number)])
      // It continues, and no other worker has taken its checks yet.
      try await stopped.renew()
      #expect(try await other.claim().isEmpty)
      try await shop.session.execute(runOut, [.int(stopped.worker.number)])
      await other.close()
      let answers = Dictionary(uniqueKeysWithValues: (1...10).map { ("\($0)", [ChannelAnswer.found("\($0)")]) })
      let summary = try await shop.recheck([ScriptedChannel(.init(answers))])
      #expect(summary.incompleteReason == nil && summary.outcomes[.verified] == 10, "\(summary)")
      await stopped.close()
    }
  }

  @Test func anUnstorableValueLosesOnlyItsOwnAnswer() async throws {
    try await RecheckFixture.run { shop in
      for number in 1...40 { try await shop.order("o\(number)", transaction: "\(number)") }
      var answers = Dictionary(uniqueKeysWithValues: (1...40).map { ("\($0)", [ChannelAnswer.found("\($0)")]) })
      var endless = TransactionFact.test(String(repeating: "7", count: 40_000), .serverApi)
      // Random, so that no compression makes it fit the index.
      endless.transactionId = (0..<9_000).map { _ in "\(UInt64.random(in: 0 ... .max))" }.joined()
      answers["7"] = [
        ChannelAnswer(.genuine(environment: .production, bundleId: "com.example.game", facts: [endless]))
      ]
      var odd = ChannelAnswer.found("8")
      odd.appleStatus = 99_999_999_999
      answers["8"] = [odd]
      let summary = try await shop.recheck([ScriptedChannel(.init(answers))])
      #expect(summary.endedEarly == nil)
      #expect(try await states(shop) == ["review apple_error 1", "verified 39"])
      #expect(
        try await shop.rows(
          "subject_id] ) FROM night_audit.receipt_checks WHERE outcome = 'review' AND due_from > last_attempt")
          == ["com.example.game/7"])
    }
  }

  @Test func twoRowsOfOneReceiptAreAskedAboutOnce() async throws {
    try await RecheckFixture.run { shop in
      try await fill(shop, damaged: 0, genuine: 3)
      // A view that returns each row twice.
      try await shop.session.executeScript(
        """
        ALTER TABLE sales.receipts RENAME TO receipts_once;
        CREATE VIEW sales.receipts AS SELECT r.* FROM sales.receipts_once r CROSS JOIN generate_series(1, 2) n
        """)
      let summary = try await shop.recheck([ScriptedChannel(found(3))], judge: Self.damaged)
      #expect(summary.outcomes == [.verified: 3])
    }
  }

  // MARK: - Limits that all workers share

  /// The test does not wait; it compares the times of the turns.
  @Test func workersTakeTurnsFromOneRate() async throws {
    try await RecheckFixture.run { shop in
      let connect = shop.connect
      let begin = ContinuousClock.now
      let waits = try await withThrowingTaskGroup(of: [Duration].self) { group in
        for _ in 0..<3 {
          group.addTask {
            let rates = SharedRates(connect: connect)
            let turns = try #require(
              rates.turns(app: "com.example.game", side: .production, interface: "transactionInfo", rate: 20))
            var waits: [Duration] = []
            for _ in 0..<20 { waits.append(try await turns.take(1)) }
            await rates.close()
            return waits
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      let elapsed = ContinuousClock.now - begin
      // Sixty requests of three workers at twenty a second: the last one starts after three seconds, whenever it asked
      // for its turn.
      let last = try #require(waits.max())
      #expect(last <= .milliseconds(2_951) && last + elapsed >= .milliseconds(2_949), "\(last) after \(elapsed)")
    }
  }

  /// Apple limits a side as a whole, including interfaces without any request so far.
  @Test func aSharedPauseAppliesToUnusedInterfaces() async throws {
    try await RecheckFixture.run { shop in
      let rates = SharedRates(connect: shop.connect)
      let turns = try #require(
        rates.turns(app: "com.example.game", side: .production, interface: "transactionInfo", rate: 20))
      turns.shut(.seconds(60))
      var rows: [String] = []
      while rows.isEmpty {
        rows = try await shop.rows(
          "interface, (next_turn > clock_timestamp() + interval '50 seconds')::text] ) FROM night_audit.rates")
      }
      #expect(rows == ["transactionInfo true"])
      #expect(try await turns.take(1) > .seconds(50))
      await rates.close()
    }
  }

  /// A night with the server's clock a year ahead leaves turns that no later night could wait for.
  @Test func turnsOfAClockAheadAreDiscarded() async throws {
    try await RecheckFixture.run { shop in
      let rates = SharedRates(connect: shop.connect)
      let turns = try #require(
        rates.turns(app: "com.example.game", side: .production, interface: "transactionInfo", rate: 20))
      _ = try await turns.take(1)
      func store(_ ahead: String) async throws {
        try await shop.session.execute(
          "UPDATE night_audit.rates SET next_turn = clock_timestamp() + $1::text::interval", [.text(ahead)])
      }
      for (ahead, isBelieved) in [("300 days", false), ("2 hours", false), ("1 hour", true)] {
        try await store(ahead)
        let wait = try await turns.take(1)
        #expect((wait > .seconds(60)) == isBelieved, "\(ahead): \(wait)")
      }
      // `shut` returns before its statement is done. A new row version shows that it is.
      try await store("300 days")
      func row() async throws -> (mayAskImmediately: Bool, version: String) {
        let row = try await shop.session.execute(
          "SELECT next_turn < clock_timestamp() + interval '1 hour', xmin::text FROM night_audit.rates"
        ).single()
        return (try row.bool(0), try row.text(1))
      }
      let before = try await row()
      turns.shut(.seconds(60))
      var after = before
      while after.version == before.version {
        await Task.yield()
        after = try await row()
      }
      #expect(!before.mayAskImmediately && after.mayAskImmediately)
      await rates.close()
    }
  }

  @Test func payloadMemoryIsLimitedByBytes() {
    let budget = ByteBudget(limit: 100)
    #expect(budget.take([40, 40, 40]) == 2)
    #expect(budget.take([40]) == 0)
    budget.releaseBytes(40)
    #expect(budget.take([60, 1]) == 1)
    budget.releaseBytes(100)
    // A payload larger than the limit is admitted alone.
    #expect(budget.take([1_000, 1]) == 1 && !budget.hasRoom)
    budget.releaseBytes(1_000)
    #expect(budget.hasRoom && budget.take([0, 0, 100, 0]) == 4)
  }
}
