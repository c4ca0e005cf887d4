import Reconciliation
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// Questions about a check through the App Store Server API, and the results of their answers.
@Suite struct ServerAPIChannelTests {
  private static let asOf = RecheckFixture.asOf
  private static let policy = ServerAPIChannel.Policy(
    asOf: asOf, refundWindow: .days(120), matchWindow: .hours(72), notFoundGrace: .hours(24))

  private static func fact(
    _ id: String, daysAgo: Int64 = 1, channel: EvidenceChannel = .offline, environment: AppleEnvironment = .production,
    product: String = "gems", isRefunded: Bool = false
  ) -> TransactionFact {
    var fact = TransactionFact(
      environment: environment, transactionId: id, productId: product, channel: channel, signedDate: asOf)
    fact.bundleId = "com.example.game"
    fact.purchaseDate = asOf - .days(daysAgo)
    if isRefunded { fact.revocation = .stated(Revocation(date: asOf - .hours(1))) }
    return fact
  }

  /// A receipt of an order of `gems` that was made before the refund window.
  private static func receipt(ofOldOrder facts: [TransactionFact], daysAgo: Int64 = 150) -> CheckInProgress {
    receipt(.app, genuine(facts)).with(\.shop.productId, "gems").with(\.shop.orderCreatedAt, asOf - .days(daysAgo))
  }

  private static func genuine(
    _ facts: [TransactionFact], bundleId: String = "com.example.game", isSigned: Bool = false
  ) -> OfflineJudgement {
    .genuine(
      GenuineProof(
        environment: facts.first?.environment ?? .production, bundleId: bundleId, facts: facts,
        signedTransactionId: isSigned ? facts.first?.transactionId : nil))
  }

  private static func check(_ subject: CheckSubject) -> CheckInProgress {
    var check = CheckInProgress(
      row: CheckRow(subject: subject, history: CheckHistory(dated: asOf - .days(2), knownSince: asOf - .days(2))))
    check.shop.orderId = "o1"
    return check
  }

  private static func receipt(_ kind: ReceiptKind, _ judgement: OfflineJudgement) -> CheckInProgress {
    var receipt = check(CheckSubject(kind: .receipt, id: "r1"))
    (receipt.kind, receipt.judgement) = (kind, judgement)
    return receipt
  }

  private static func lookup(_ id: String) -> CheckInProgress { check(.lookup(id, of: "com.example.game")) }

  private static func ids(_ check: CheckInProgress) -> [String] {
    ServerAPIChannel.questions(about: check, bundleId: "com.example.game", policy: policy).map { question in
      guard case .transaction(let id) = question.matter else { return "a payload" }
      return id + (question.first == .sandbox ? " in the sandbox" : "")
    }
  }

  // MARK: Questions

  private static let questions: [(String, CheckInProgress, [String])] = [
    ("a signed transaction", receipt(.signed, genuine([fact("1")], isSigned: true)), ["1"]),
    ("a signed transaction of long ago", receipt(.signed, genuine([fact("1", daysAgo: 300)], isSigned: true)), ["1"]),
    ("of another app", receipt(.signed, genuine([fact("1")], bundleId: "com.example.other", isSigned: true)), []),
    ("in the sandbox", receipt(.signed, genuine([fact("1", environment: .sandbox)], isSigned: true)), []),
    ("a forged proof", receipt(.signed, .refused(.signatureInvalid)), []),
    ("a claim without IDs", receipt(.app, .claim(UnprovenClaim(why: "unknown", transactionIds: []))), []),
    ("an old receipt", receipt(.transaction, .claim(UnprovenClaim(why: "old", transactionIds: ["7"]))), ["7"]),
    ("an old receipt of the sandbox", claim.with(\.row.environment, .sandbox), ["7 in the sandbox"]),
    (
      "purchases that may have been refunded, the newest first",
      receipt(.app, genuine([fact("1", daysAgo: 3), fact("2", daysAgo: 121), fact("3", daysAgo: 2)])), ["3", "1"]
    ),
    (
      "the stated purchase first, whatever its age",
      receipt(.app, genuine([fact("1"), fact("2", daysAgo: 121)])).with(\.shop.statedTransactionId, "2"), ["2", "1"]
    ),
    (
      "no more than a hundred", receipt(.app, genuine((1...130).map { fact("\($0)", daysAgo: Int64($0 % 110)) })),
      (1...130).map { (Int64($0 % 110), "\($0)") }.sorted { $0 < $1 }.prefix(100).map(\.1)
    ),
    (
      "the order's product near its date, and each refund, whatever their age",
      receipt(
        ofOldOrder: [
          fact("1", daysAgo: 150), fact("2", daysAgo: 153), fact("3", daysAgo: 154), fact("4", daysAgo: 146),
          fact("5", daysAgo: 150, product: "sword"), fact("6", daysAgo: 200, product: "sword", isRefunded: true),
          fact("7", daysAgo: 3),
        ]), ["1", "2", "6", "7"]
    ),
    (
      "the order's purchase before a hundred newer ones",
      receipt(ofOldOrder: (1...130).map { fact("\($0)", product: "sword") } + [fact("0", daysAgo: 150)]),
      ["0"] + (1...130).map { "\($0)" }.sorted().prefix(99)
    ),
    ("an empty receipt", receipt(.app, genuine([])), []),
    ("a look-up", lookup("5"), ["5"]),
    ("a look-up that the sandbox answered", lookup("5").with(\.row.environment, .sandbox), ["5 in the sandbox"]),
  ]

  @Test(arguments: questions.indices)
  func questionsAbout(row: Int) {
    let (name, check, ids) = Self.questions[row]
    #expect(Self.ids(check) == ids, "\(name)")
  }

  // MARK: Results

  private static func found(_ id: String) -> ChannelAnswer {
    var answer = ChannelAnswer(
      .genuine(
        environment: .production, bundleId: "com.example.game", facts: [fact(id, channel: .serverApi)]))
    answer.asked = [.production]
    return answer
  }
  private static let silent = ChannelAnswer(.silent(Silence(reason: .rateLimited, detail: "HTTP 429")))
  private static let unknown = ChannelAnswer(.unknown)
  private static let gone = ChannelAnswer(.accountGone)
  private static func refused(_ fault: AppleFault) -> ChannelAnswer { ChannelAnswer(.fault(fault)) }

  private static let signed = receipt(.signed, genuine([fact("1")], isSigned: true))
  private static let device = receipt(.app, genuine([fact("1"), fact("2")]))
  private static let claim = receipt(.transaction, .claim(UnprovenClaim(why: "old", transactionIds: ["7"])))

  private static let results: [(String, CheckInProgress, [ChannelAnswer], String)] = [
    ("an answer", signed, [found("1")], "verified, 2 facts"),
    ("offline facts are stored once", stored(signed), [found("1")], "verified, 1 facts"),
    ("no answer, with signed facts", signed, [silent], "unanswered rate_limited, 1 facts"),
    ("all of several", device, [found("1"), found("2")], "verified, 4 facts"),
    ("no answer to one of several questions", device, [found("1"), silent], "unanswered rate_limited, 3 facts"),
    ("a missing answer outweighs a deleted account", device, [gone, silent], "unanswered rate_limited, 2 facts"),
    ("a deleted account", signed, [gone], "review account_gone, 1 facts"),
    ("a signed transaction that Apple does not know", signed, [unknown], "review contradiction, 1 facts"),
    ("still unknown to Apple", asked(signed, .review), [unknown], "review contradiction, 1 facts"),
    (
      "no question needed", receipt(.signed, genuine([fact("1")], bundleId: "x", isSigned: true)), [],
      "verified, 1 facts"
    ),
    ("a forged proof", receipt(.app, .refused(.signatureInvalid)), [], "rejected signature_invalid, 0 facts"),
    (
      "undecided", receipt(.app, .claim(UnprovenClaim(why: "unknown", transactionIds: []))), [],
      "review apple_error, 0 facts"
    ),
    ("an old receipt that Apple confirms", claim, [found("7")], "verified, 1 facts"),
    ("an old receipt with an unknown ID", claim, [unknown], "not_found not_found, 0 facts"),
    (
      "an answer to some of the unsigned IDs",
      receipt(.app, .claim(UnprovenClaim(why: "unknown", transactionIds: ["7", "8"]))), [found("7"), silent],
      "unanswered rate_limited, 0 facts"
    ),
    (
      "an old receipt with an unknown ID, of a later order", claim.with(\.shop.orderCreatedAt, asOf - .hours(1)),
      [unknown],
      "not_found not_found_yet, 0 facts"
    ),
    ("a look-up", lookup("5"), [found("5")], "verified, 1 facts"),
    ("a look-up without an answer", lookup("5"), [silent], "unanswered rate_limited, 0 facts"),
    (
      "an ID that Apple refuses", lookup("5"), [refused(.requestRefused(code: 4_000_000))],
      "review apple_error, 0 facts"
    ),
    ("an old receipt of such an ID", claim, [refused(.requestRefused(code: 4_000_000))], "review apple_error, 0 facts"),
    ("a credential refused for one question", lookup("5"), [refused(.accessRefused)], "review apple_error, 0 facts"),
    ("a refused credential leaves signed facts", signed, [refused(.accessRefused)], "unanswered apple_error, 1 facts"),
    ("not found", lookup("5"), [unknown], "not_found not_found, 0 facts"),
    ("not found again", asked(lookup("5"), .notFound), [unknown], "not_found not_found, 0 facts"),
    (
      "not found yet, however often",
      asked(lookup("5").with(\.row.history.dated, asOf - .hours(24)), .notFound), [unknown],
      "not_found not_found_yet, 0 facts"
    ),
  ]

  private static func stored(_ check: CheckInProgress) -> CheckInProgress {
    check.with(\.row.containedCount, 1).with(\.row.signedTransactionId, check.genuine?.signedTransactionId)
  }

  private static func asked(_ check: CheckInProgress, _ outcome: CheckOutcome) -> CheckInProgress {
    check.with(\.row.history.outcome, outcome)
  }

  @Test(arguments: results.indices)
  func resultOf(row: Int) {
    let (name, check, answers, expected) = Self.results[row]
    let result = ServerAPIChannel.result(of: check, answers: answers, policy: Self.policy)
    let outcome = [result.outcome.rawValue, result.reason?.rawValue].compactMap(\.self).joined(separator: " ")
    #expect("\(outcome), \(result.facts.count) facts" == expected, "\(name)")
    #expect(result.signedTransactionId == (check.kind == .signed && check.genuine != nil ? "1" : nil), "\(name)")
  }

  @Test("Apple is asked for the status after periods that ended, refunded or not, and that the family lost")
  func openStatuses() {
    func isOpen(days: Int64, isRefunded: Bool, _ ownership: Ownership = .purchased) -> Bool {
      var fact = Self.fact("1", channel: .serverApi)
      (fact.productType, fact.expiresDate, fact.ownership) = (.autoRenewable, Self.asOf + .days(days), ownership)
      fact.revocation = .stated(isRefunded ? Revocation(date: Self.asOf - .days(1)) : nil)
      return fact.leavesStatusOpen(at: Self.asOf)
    }
    #expect(isOpen(days: -1, isRefunded: false) && isOpen(days: -1, isRefunded: true))
    #expect(!isOpen(days: 1, isRefunded: false) && !isOpen(days: 1, isRefunded: true))
    #expect(!isOpen(days: 1, isRefunded: false, .familyShared) && isOpen(days: 1, isRefunded: true, .familyShared))
  }

  /// The latest transaction of each of a customer's subscriptions, as in Apple's answer about a lapsed one.
  private static func statuses(of ids: [String]) throws -> SubscriptionAnswer.Outcome {
    .found(
      try ids.map { id in
        let payload = """
          {"transactionId":"\(id)","productId":"gems","bundleId":"com.example.game","environment":"Production",
           "signedDate":1795143600000}
          """
        return try TransactionFact(signed: try #require(JSONFields(payload.utf8)), channel: .serverApi)
      })
  }

  /// Only the requested subscription is content of the answer. Facts from before a refusal are kept.
  @Test func onlyTheRequestedSubscriptionIsContained() throws {
    var answer = Self.found("1")
    answer.add(SubscriptionAnswer(outcome: try Self.statuses(of: ["1", "9"]), trail: ServerAPITrail()))
    #expect(answer.facts.map(\.transactionId) == ["1", "1"] && answer.furtherFacts.map(\.transactionId) == ["9"])
    var refused = Self.found("1")
    refused.add(SubscriptionAnswer(outcome: .fault(.requestRefused(code: 4_000_000)), trail: ServerAPITrail()))
    #expect(refused.isFault && refused.furtherFacts.map(\.transactionId) == ["1"])
  }

  @Test func aRetryKeepsTheAnswerAboutTheTransaction() throws {
    var part = Self.found("1")
    let silence = Silence(reason: .appleError, detail: "HTTP 503")
    part.add(SubscriptionAnswer(outcome: .unanswered(silence), trail: ServerAPITrail()))
    let received = try #require(part.received)
    var answer = received.answer
    answer.add(SubscriptionAnswer(outcome: try Self.statuses(of: ["1"]), trail: ServerAPITrail()))
    #expect(received.side == .production && answer.silence == nil && answer.facts.count == 2)
    #expect(answer.received == nil && Self.found("1").received == nil)
  }

  /// Apple's answer has all subscriptions of a customer, but a proof of one contains and states no other.
  @Test func furtherFactsAreNotContainedInTheProof() {
    var answer = Self.found("1")
    answer.furtherFacts = [Self.fact("9", channel: .serverApi)]
    let result = ServerAPIChannel.result(of: Self.signed, answers: [answer], policy: Self.policy)
    #expect(result.outcome == .verified && result.furtherFacts.map(\.transactionId) == ["9"])
    #expect(result.containedIds == ["1"] && result.containedCount == 1)
    #expect(result.facts.allSatisfy { $0.transactionId == "1" })
    // Facts from before a refusal are kept.
    answer.meaning = .fault(.requestRefused(code: 4_000_000))
    #expect(ServerAPIChannel.result(of: Self.signed, answers: [answer], policy: Self.policy).furtherFacts.count == 1)
  }

  @Test func reusedStatementsKeepTheirDate() {
    var earlier = ChannelAnswer(.genuine(environment: .production, bundleId: nil, facts: []))
    earlier.statedAt = Self.asOf - .days(2)
    let result = ServerAPIChannel.result(of: Self.device, answers: [Self.found("1"), earlier], policy: Self.policy)
    #expect(result.outcome == .verified && result.answeredAt == Self.asOf - .days(2))
    #expect(result.containedCount == 2)
  }
}

extension CheckInProgress {
  /// A copy with one value changed.
  func with<Value>(_ path: WritableKeyPath<CheckInProgress, Value>, _ value: Value) -> CheckInProgress {
    var check = self
    check[keyPath: path] = value
    return check
  }
}
