import AppStore
import AsyncHTTPClient
import Crypto
import Foundation
import NIOHTTP1
import Reconciliation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ServerAPISimulatorTests {
  private static let day: Int64 = 86_400_000
  /// 2026-11-18T00:00:00Z.
  private static let start: Int64 = 1_795_017_600_000
  private static let token = "7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11"

  /// - Parameter count: consumables, one per hour; the second is refunded after one day and reversed after two.
  private func world(count: Int = 3, apps: String = "", more: String = "") -> String {
    let gems = (1...count).map { number in
      let refund =
        number == 2
        ? #","revocationDate":\#(Self.start + Self.day),"revocationReason":1,"revocationType":"REFUND_FULL","#
          + #""refundReversedDate":\#(Self.start + 2 * Self.day)"# : ""
      return #"{"transactionId":"\#(1_000 + number)","environment":"Production","bundleId":"com.example.game","#
        + #""productId":"gems.100","type":"Consumable","purchaseDate":\#(Self.start - Int64(count - number) * 3_600_000),"#
        + #""price":1990,"currency":"USD","appAccountToken":"\#(Self.token)","finished":true\#(refund)}"#
    }
    return """
      {"apps":[{"bundleId":"com.example.game","appAppleId":1234567890\(apps)}],"receipts":[],"now":\(Self.start),
       "transactions":[\(gems.joined(separator: ",")),
       {"transactionId":"5","environment":"Sandbox","bundleId":"com.example.game","productId":"gems.100",
        "type":"Consumable","purchaseDate":\(Self.start)},
       {"transactionId":"6","environment":"Production","bundleId":"com.example.other","productId":"gems.100",
        "type":"Consumable","purchaseDate":\(Self.start)}]\(more)}
      """
  }

  @Test func aTransactionIsFoundInItsEnvironment() async throws {
    try await SigningSimulator.run(world()) { setting in
      let answer = try await setting.client.transactionInfo("1001")
      let fact = try #require(answer.fact, "\(answer)")
      #expect(fact.bundleId == "com.example.game" && fact.productId == "gems.100" && fact.productType == .consumable)
      #expect(fact.priceMilliunits == 1_990 && fact.currency == "USD" && fact.quantity == 1)
      #expect(fact.appAccountToken == .stated(Self.token) && fact.revocation == .stated(nil) && fact.isRenewal == false)
      #expect(fact.signedDate == Instant(milliseconds: Self.start))
      #expect(try await setting.client.transactionInfo("5").fact?.environment == .sandbox)
      #expect(try await setting.client.transactionInfo("5", first: .sandbox).trail.asked == [.sandbox])
      // Apple's answer for another app's transaction is the same as for an unknown one.
      #expect(try await setting.client.transactionInfo("6").outcome == .notFound)
      #expect(try await setting.client.transactionInfo("404").outcome == .notFound)
      #expect(try await setting.client.transactionInfo("GPA-1").outcome == .malformedId)
    }
  }

  @Test func refundsAndReversalsHappenOverDays() async throws {
    try await SigningSimulator.run(world()) { setting in
      let first = try await setting.client.transactionHistory("1001", on: .production)
      #expect(first.transactions.map(\.fact.transactionId) == ["1001", "1002", "1003"] && first.end == .complete)
      #expect(try await setting.client.refundHistory("1001", on: .production).transactions.isEmpty)

      try await setting.setClock(Self.start + Self.day)
      let second = try await setting.client.transactionHistory("1001", on: .production, revision: first.revision)
      #expect(second.transactions.map(\.fact.transactionId) == ["1002"])
      let refunded = try #require(second.transactions.first?.fact)
      #expect(
        refunded.revocation
          == .stated(Revocation(date: Instant(milliseconds: Self.start + Self.day), type: "REFUND_FULL", reason: 1)))
      #expect(refunded.signedDate > Instant(milliseconds: Self.start))
      let refunds = try await setting.client.refundHistory("1003", on: .production)
      #expect(refunds.transactions.map(\.fact) == [refunded])

      try await setting.setClock(Self.start + 2 * Self.day)
      let third = try await setting.client.transactionHistory("1001", on: .production, revision: second.revision)
      #expect(third.transactions.map(\.fact.revocation) == [.stated(nil)])
      let fourth = try await setting.client.transactionHistory("1001", on: .production, revision: third.revision)
      #expect(fourth.transactions.isEmpty && fourth.end == .complete && fourth.revision == third.revision)
    }
  }

  @Test func changedTransactionsOfAReplacedWorldComeAgain() async throws {
    try await SigningSimulator.run(world()) { setting in
      let first = try await setting.client.transactionHistory("1001", on: .production)
      try await setting.simulator.control("world", world().replacing("\"price\":1990", with: "\"price\":990"))
      let second = try await setting.client.transactionHistory("1001", on: .production, revision: first.revision)
      #expect(second.transactions.map(\.fact.priceMilliunits) == [990, 990, 990])
    }
  }

  @Test func longHistoriesComeInPagesOfTwenty() async throws {
    try await SigningSimulator.run(world(count: 45)) { setting in
      let whole = try await setting.client.transactionHistory("1001", on: .production)
      #expect(whole.transactions.map(\.fact.transactionId) == (1_001...1_045).map(String.init))
      #expect(whole.trail.asked.count == 3 && whole.refused == 0)
      let part = try await setting.client.transactionHistory("1001", on: .production, pages: 1)
      #expect(part.end == .pageLimit && part.transactions.count == 20)
      let rest = try await setting.client.transactionHistory("1001", on: .production, revision: part.revision)
      #expect(
        (part.transactions + rest.transactions).map(\.fact) == whole.transactions.map(\.fact)
          && rest.revision == whole.revision)
      let forgotten = try await setting.client.transactionHistory("1001", on: .production, revision: "!")
      #expect(
        forgotten.transactions.map(\.fact) == whole.transactions.map(\.fact) && forgotten.trail.errorCode == 4_000_005)
    }
  }

  @Test func notificationsAreSweptByType() async throws {
    let extra =
      #","notifications":[{"type":"TEST","uuid":"u-1","bundleId":"com.example.game","#
      + #""signedDate":\#(Self.start)}]"#
    try await SigningSimulator.run(world(count: 45, more: extra)) { setting in
      let start = Instant(milliseconds: Self.start)
      let sweep = { (type: String?, now: Instant) in
        try await setting.client.notificationHistory(
          NotificationQuery(start: start - .days(30), end: now + .seconds(1), type: type, now: now), on: .production)
      }
      let charges = try await sweep("ONE_TIME_CHARGE", start)
      #expect(charges.notifications.count == 45 && charges.trail.asked.count == 3 && charges.end == .complete)
      #expect(charges.unverifiable.count == 0)
      #expect(Set(charges.notifications.map(\.uuid)).count == 45)
      let fact = try #require(try charges.notifications.last?.transaction?.get().fact)
      #expect(fact.transactionId == "1045" && fact.channel == .notification)
      #expect(try await sweep("REFUND", start).notifications.isEmpty)
      #expect(try await sweep(nil, start).notifications.contains { $0.uuid == "u-1" && $0.transaction == nil })

      try await setting.setClock(Self.start + 3 * Self.day)
      let refund = try #require(try await sweep("REFUND", start + .days(3)).notifications.first)
      #expect(try refund.transaction?.get().fact.revocation != .stated(nil))
      #expect(try refund.transaction?.get().fact.reversesRefund == false)
      let reversal = try #require(try await sweep("REFUND_REVERSED", start + .days(3)).notifications.first)
      #expect(try reversal.transaction?.get().fact.revocation == .stated(nil))
      #expect(try reversal.transaction?.get().fact.reversesRefund == true)
      #expect(reversal.signedDate == start + .days(2))
    }
  }

  @Test func subscriptionsHaveTheirState() async throws {
    let subscription =
      #"{"transactionId":"71","environment":"Production","bundleId":"com.example.game","#
      + #""productId":"gold","type":"Auto-Renewable Subscription","purchaseDate":\#(Self.start - 9 * Self.day),"#
      + #""expiresDate":\#(Self.start + Self.day),"gracePeriodExpiresDate":\#(Self.start + 2 * Self.day),"#
      + #""isInBillingRetryPeriod":true,"isTrialPeriod":true}"#
    let json = world().replacing("\"transactions\":[", with: "\"transactions\":[\(subscription),")
    try await SigningSimulator.run(json) { setting in
      for (days, state) in [(0, SubscriptionState.active), (1, .gracePeriod), (2, .billingRetry)] {
        try await setting.setClock(Self.start + Int64(days) * Self.day)
        let answer = try await setting.client.subscriptionStatuses("71", on: .production)
        let statuses = try #require(answer.outcome.content)
        let fact = try #require(statuses.first?.transaction.fact)
        #expect(statuses.map(\.status) == [state] && fact.hasOffer == true)
        #expect(fact.gracePeriodExpiresDate == Instant(milliseconds: Self.start + 2 * Self.day))
      }
      #expect(try await setting.client.subscriptionStatuses("72", on: .production).outcome == .notFound)
    }
  }

  @Test func tokensAreChecked() async throws {
    let key = P256.Signing.PrivateKey()
    let pem = key.publicKey.pemRepresentation.replacing("\n", with: "\\n")
    let app = #","publicKey":"\#(pem)","issuerId":"57246542-96fe-1a63-e053-0824d011072a","keyId":"2X9R4HXF34""#
    func outcome(
      _ app: String, _ key: P256.Signing.PrivateKey, bundleId: String = "com.example.game",
      clockError: Span = .seconds(0)
    ) async throws -> TransactionAnswer.Outcome {
      try await SigningSimulator.run(
        world(apps: app), credentials: .test(key: key, bundleId: bundleId), clockError: clockError
      ) { try await $0.client.transactionInfo("1001").outcome }
    }
    #expect(try await outcome(app, key).content != nil)
    let refused = TransactionAnswer.Outcome.fault(.tokenRefused(.production))
    #expect(try await outcome(app, P256.Signing.PrivateKey()) == refused)
    #expect(try await outcome(app, key, bundleId: "com.example.unknown") == refused)
    #expect(try await outcome(app.replacing("57246542", with: "00000000"), key) == refused)
    for clockError in [Span.minutes(-6), .minutes(6)] {
      #expect(try await outcome(app, key, clockError: clockError) == refused)
    }
    #expect(
      try await outcome("", key, bundleId: "com.example.unknown")
        == .fault(.appUnknown(bundleId: "com.example.unknown")))
  }

  @Test func theLimitIsKeptWithAnInstantInMilliseconds() async throws {
    try await SigningSimulator.run(world(), arguments: ["--enforce-limits", "0.001"]) { setting in
      #expect(try await setting.client.transactionInfo("1001").fact != nil)
      // Without a token a request counts as another app's, with its own limit.
      let url = "http://127.0.0.1:\(setting.simulator.port)/production/inApps/v1/transactions/1001"
      let first = try await setting.simulator.transport.send(.init(url: url)).get()
      let again = try await setting.simulator.transport.send(.init(url: url)).get()
      #expect(first.status == 200 && again.status == 429)
      #expect(again.headers.first(name: "Retry-After").flatMap { Int64($0) }.map { $0 > 1_000_000_000_000 } == true)
    }
  }

  @Test func faultsAreReturnedAsValues() async throws {
    let errors = #","errors":{"1003":{"errorCode":4040001},"1002":{"errorCode":4040002,"httpStatus":404}}"#
    try await SigningSimulator.run(world(more: errors)) { setting in
      let client = setting.client
      #expect(try await client.transactionInfo("1003").outcome == .accountGone)
      #expect(try await client.transactionInfo("1002").reason == .appleError)

      try await setting.force(#"{"badSignature":true}"#)
      let spoilt = try await client.transactionInfo("1001")
      #expect(spoilt.reason == .appleError && spoilt.trail.warnings.count == 1)
      let history = try await client.transactionHistory("1001", on: .production)
      #expect(history.refused == 3 && history.transactions.isEmpty && history.revision == nil)

      for (fault, reason) in [
        (#"{"errorCode":4290000,"headers":{"Retry-After":"0"}}"#, Silence.Reason.rateLimited),
        (#"{"errorCode":5000001}"#, .appleError), (#"{"httpStatus":503}"#, .appleError),
        (#"{"body":"truncated"}"#, .appleError), (#"{"body":"closed"}"#, .unreachable),
        (#"{"body":"huge"}"#, .appleError), (#"{"body":"empty"}"#, .appleError),
      ] {
        try await setting.force(fault)
        #expect(try await client.transactionInfo("1001").reason == reason, "\(fault)")
      }
      try await setting.force()
      #expect(try await client.transactionInfo("1001").fact != nil)
    }
  }

  @Test(arguments: [
    (#"{"payload":{"bundleId":"com.example.other"}}"#, "another app"),
    (#"{"payload":{"environment":"Sandbox"}}"#, "environment Sandbox"),
    (#"{"payload":{"signedDate":1}}"#, "not valid when"), (#"{"payload":{"signedDate":null}}"#, "without signedDate"),
    (#"{"stranger":true}"#, "trusted root"), (#"{"badSignature":true}"#, "does not fit"),
  ])
  func wronglySignedAnswersAreRejected(fault: String, detail: String) async throws {
    try await SigningSimulator.run(world()) { setting in
      try await setting.force(fault)
      let info = try await setting.client.transactionInfo("1001")
      #expect(info.reason == .appleError && info.trail.warnings.first?.contains(detail) == true, "\(info)")
      let history = try await setting.client.transactionHistory("1001", on: .production)
      #expect(history.refused == 3 && history.transactions.isEmpty && history.revision == nil)
      let start = Instant(milliseconds: Self.start)
      let sweep = try await setting.client.notificationHistory(
        NotificationQuery(start: start - .days(2), end: start + .days(1), type: nil, now: start), on: .production)
      #expect(sweep.unverifiable.count == 3 && sweep.notifications.isEmpty)
    }
  }

  @Test func rejectedTokensAndRateLimitsMatchAppleResponses() async throws {
    try await SigningSimulator.run(world()) { setting in
      try await setting.force(#"{"httpStatus":401,"next":1}"#)
      #expect(try await setting.client.transactionInfo("1001").outcome == .fault(.tokenRefused(.production)))
      try await setting.force(#"{"errorCode":4290000,"retryAfter":600000,"latency":"3ms"}"#)
      let before = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000))
      let limited = try await setting.client.transactionInfo("1001")
      guard case .unanswered(let silence) = limited.outcome, let retryAfter = silence.retryAfter else {
        Issue.record("\(limited)")
        return
      }
      #expect(silence.reason == .rateLimited && retryAfter >= before + .minutes(10))
      let last = try await setting.simulator.control("requests?last=1")["last"] as? [[String: Any]]
      #expect(last?.first?["latencyMilliseconds"] as? Int == 3)
    }
  }
}
