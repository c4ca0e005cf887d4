import AppStore
import AsyncHTTPClient
import Crypto
import Foundation
import NIOHTTP1
import Reconciliation
import Testing

/// The App Store Server API of the simulator, with its faults.
@Suite(.timeLimit(.minutes(10)))
struct ServerAPISimulatorTests {
  private typealias World = SimulatedWorld
  private static let start = Instant(milliseconds: World.start)

  @Test func aTransactionIsFoundInItsEnvironment() async throws {
    try await SigningSimulator.run(World.ofOneCustomer()) { setting in
      let answer = try await setting.client.transactionInfo("1001")
      let fact = try #require(answer.fact, "\(answer)")
      #expect(fact.bundleId == "com.example.game" && fact.productId == "gems.100" && fact.productType == .consumable)
      #expect(fact.priceMilliunits == 1_990 && fact.currency == "USD" && fact.quantity == 1)
      #expect(fact.appAccountToken == .stated(World.token) && fact.revocation == .stated(nil))
      #expect(fact.isRenewal == false && fact.signedDate == Self.start)
      #expect(try await setting.client.transactionInfo("5").fact?.environment == .sandbox)
      #expect(try await setting.client.transactionInfo("5", first: .sandbox).trail.asked == [.sandbox])
      // Apple's answer for another app's transaction is the same as for an unknown one.
      for id in ["6", "404"] { #expect(try await setting.client.transactionInfo(id).outcome == .notFound) }
      #expect(try await setting.client.transactionInfo("GPA-1").outcome == .malformedId)
    }
  }

  @Test func refundsAndReversalsHappenOverDays() async throws {
    try await SigningSimulator.run(World.ofOneCustomer()) { setting in
      func history(after revision: String?) async throws -> HistoryAnswer {
        try await setting.client.transactionHistory("1001", on: .production, revision: revision)
      }
      let first = try await history(after: nil)
      #expect(first.transactions.map(\.transactionId) == ["1001", "1002", "1003"] && first.end == .complete)
      #expect(try await setting.client.refundHistory("1001", on: .production).transactions.isEmpty)

      try await setting.setClock(World.start + World.day)
      let second = try await history(after: first.revision)
      #expect(second.transactions.map(\.transactionId) == ["1002"])
      let refunded = try #require(second.transactions.first)
      let refund = Revocation(date: Self.start + .days(1), type: "REFUND_FULL", reason: 1)
      #expect(refunded.revocation == .stated(refund) && refunded.signedDate > Self.start)
      #expect(try await setting.client.refundHistory("1003", on: .production).transactions == [refunded])

      try await setting.setClock(World.start + 2 * World.day)
      let third = try await history(after: second.revision)
      #expect(third.transactions.map(\.revocation) == [.stated(nil)])
      let fourth = try await history(after: third.revision)
      #expect(fourth.transactions.isEmpty && fourth.end == .complete && fourth.revision == third.revision)
      // Changed transactions of a replaced world come again.
      try await setting.simulator.control("world", World.ofOneCustomer(price: 990))
      let prices = try await history(after: fourth.revision).transactions.map(\.priceMilliunits)
      #expect(prices == [990, 990, 990])
    }
  }

  @Test func longHistoriesComeInPagesOfTwenty() async throws {
    try await SigningSimulator.run(World.ofOneCustomer(45)) { setting in
      let client = setting.client
      let whole = try await client.transactionHistory("1001", on: .production)
      #expect(whole.transactions.map(\.transactionId) == (1_001...1_045).map(String.init))
      #expect(whole.trail.asked.count == 3 && whole.refused == 0)
      let part = try await client.transactionHistory("1001", on: .production, pages: 1)
      #expect(part.end == .pageLimit && part.transactions.count == 20)
      let rest = try await client.transactionHistory("1001", on: .production, revision: part.revision)
      #expect(part.transactions + rest.transactions == whole.transactions)
      #expect(rest.revision == whole.revision)
      let forgotten = try await client.transactionHistory("1001", on: .production, revision: "!")
      #expect(forgotten.transactions == whole.transactions)
      #expect(forgotten.trail.errorCode == 4_000_005)
    }
  }

  @Test func notificationsAreSweptByType() async throws {
    let test =
      #","notifications":[{"type":"TEST","uuid":"u-1","bundleId":"com.example.game","signedDate":\#(World.start)}]"#
    try await SigningSimulator.run(World.ofOneCustomer(45, more: test)) { setting in
      let start = Self.start
      let sweep = { (type: String?, now: Instant) in
        try await setting.client.notificationHistory(
          NotificationQuery(start: start - .days(30), end: now + .seconds(1), type: type, now: now), on: .production)
      }
      let charges = try await sweep("ONE_TIME_CHARGE", start)
      #expect(charges.notifications.count == 45 && charges.trail.asked.count == 3 && charges.end == .complete)
      #expect(charges.unverifiable.isEmpty && Set(charges.notifications.map(\.uuid)).count == 45)
      let fact = try #require(try charges.notifications.last?.transaction?.get())
      #expect(fact.transactionId == "1045" && fact.channel == .notification)
      #expect(try await sweep("REFUND", start).notifications.isEmpty)
      #expect(try await sweep(nil, start).notifications.contains { $0.uuid == "u-1" && $0.transaction == nil })

      try await setting.setClock(World.start + 3 * World.day)
      let refund = try #require(
        try await sweep("REFUND", start + .days(3)).notifications.first?.transaction?.get())
      #expect(refund.revocation != .stated(nil) && refund.reversesRefund == false)
      let reversal = try #require(try await sweep("REFUND_REVERSED", start + .days(3)).notifications.first)
      let reversed = try #require(try reversal.transaction?.get())
      #expect(reversed.revocation == .stated(nil) && reversed.reversesRefund == true)
      #expect(reversal.signedDate == start + .days(2))
    }
  }

  @Test func everyKindOfTransactionHasItsInterfaces() async throws {
    try await SigningSimulator.run(World.ofEveryKind()) { setting in
      let client = setting.client
      func fact(_ id: String) async throws -> TransactionFact {
        try #require(try await client.transactionInfo(id).fact)
      }
      let gems = try await fact("1").details
      #expect(gems.storefront == "DEU" && gems.appTransactionId == "704897469903783919")
      let vip = try await fact("4").details
      #expect(vip.billingPlanType == "MONTHLY" && vip.previousOriginalTransactionId == "3")
      #expect(vip.commitmentInfo?.contains(#""totalBillingPeriods":12"#) == true)
      #expect(vip.subscriptionGroupIdentifier == "platinum.monthly")
      let offer = try await fact("5")
      #expect(offer.details.offerType == 3 && offer.details.offerIdentifier == "AUTUMN" && offer.hasOffer == true)
      #expect(try await fact("3").isUpgraded == true)
      let restore = try await fact("7")
      #expect(restore.originalTransactionId == "2" && restore.isRenewal == false)

      let invoice = try await client.lookUpOrder("MINVOICE1")
      #expect(invoice.outcome.content?.map(\.transactionId) == ["1", "2"] && invoice.refused == 0)
      #expect(try await client.lookUpOrder("MINVOICE2").outcome == .notFound)

      let requests: [(String, String?, String, RefundRequestNotice?)] = [
        ("DID_CHANGE_RENEWAL_PREF", "UPGRADE", "4", nil), ("OFFER_REDEEMED", "INITIAL_BUY", "5", nil),
        ("SUBSCRIBED", nil, "3", nil), ("CONSUMPTION_REQUEST", nil, "1", .requested(reason: "FULFILLMENT_ISSUE")),
        ("REFUND_DECLINED", nil, "1", .declined),
      ]
      for (type, subtype, id, notice) in requests {
        // The simulated clock stays at the creation of the world, so the window must lie within Apple's retention.
        let answer = try await client.notificationHistory(
          NotificationQuery(
            start: Self.start - .days(2), end: Self.start, type: type, subtype: subtype, now: Self.start),
          on: .production)
        let facts = try answer.notifications.map { try $0.transaction?.get() }
        #expect(facts.map { $0?.transactionId } == [id] && answer.end == .complete, "\(type)")
        #expect(facts.first??.refundRequest == notice, "\(type)")
      }
    }
  }

  @Test func subscriptionsHaveTheirState() async throws {
    let subscription = World.sold(
      "71", "gold", World.subscription, at: World.start - 9 * World.day,
      #""expiresDate":\#(World.start + World.day),"gracePeriodExpiresDate":\#(World.start + 2 * World.day),"#
        + #""isInBillingRetryPeriod":true,"isTrialPeriod":true"#)
    try await SigningSimulator.run(World.ofOneCustomer(and: [subscription])) { setting in
      for (days, state) in [(0, SubscriptionState.active), (1, .gracePeriod), (2, .billingRetry)] {
        try await setting.setClock(World.start + Int64(days) * World.day)
        let answer = try await setting.client.subscriptionStatuses("71", on: .production)
        let statuses = try #require(answer.outcome.content)
        let fact = try #require(statuses.first)
        #expect(statuses.map(\.subscriptionStatus) == [state] && fact.hasOffer == true)
        #expect(fact.gracePeriodExpiresDate == Self.start + .days(2))
      }
      #expect(try await setting.client.subscriptionStatuses("72", on: .production).outcome == .notFound)
    }
  }

  /// A past period is refunded in part and then in full, while the next one is extended and later upgraded.
  @Test func transactionsChangeOverTime() async throws {
    let (start, day) = (World.start, World.day)
    let refunded = World.sold(
      "81", "gold", World.subscription, at: start - 40 * day,
      #""expiresDate":\#(start - 10 * day),"revocationDate":\#(start),"revocationType":"REFUND_PRORATED","#
        + #""revocationPercentage":40000,"changes":[{"from":\#(start + day),"revocationDate":\#(start + day),"#
        + #""revocationType":"REFUND_FULL"}]"#)
    let running = World.sold(
      "82", "gold", World.subscription, at: start - 10 * day,
      #""originalTransactionId":"81","expiresDate":\#(start + 20 * day),"omit":["quantity","transactionReason","#
        + #""storefront","storefrontId","type"],"changes":["#
        + #"{"from":\#(start + day),"expiresDate":\#(start + 25 * day)},"#
        + #"{"from":\#(start + 2 * day),"isUpgraded":true}]"#)
    try await SigningSimulator.run(World.ofOneCustomer(1, and: [refunded, running])) { setting in
      func fact(_ id: String) async throws -> TransactionFact {
        try #require(try await setting.client.transactionInfo(id).fact)
      }
      let part = Revocation(date: Self.start, percentage: 40_000, type: "REFUND_PRORATED", reason: 0)
      let whole = Revocation(date: Self.start + .days(1), type: "REFUND_FULL", reason: 0)
      #expect(try await fact("81").revocation == .stated(part))
      let sparse = try await fact("82")
      #expect(sparse.quantity == nil && sparse.isRenewal == nil && sparse.details.storefront == nil)
      #expect(sparse.productType == nil && sparse.isUpgraded == nil && sparse.expiresDate == Self.start + .days(20))

      try await setting.setClock(start + day)
      #expect(try await fact("81").revocation == .stated(whole))
      let now = Self.start + .days(1)
      let refunds = try await setting.client.notificationHistory(
        NotificationQuery(start: Self.start - .days(1), end: now + .seconds(1), type: "REFUND", now: now),
        on: .production)
      let facts = try refunds.notifications.map { try #require(try $0.transaction?.get()) }
      #expect(facts.map(\.transactionId) == ["81", "81"])
      #expect(facts.map(\.revocation) == [.stated(part), .stated(whole)])
      #expect(facts.map(\.subscriptionStatus) == [.active, .active])

      try await setting.setClock(start + 2 * day)
      let upgraded = try await fact("82")
      #expect(upgraded.isUpgraded == true && upgraded.expiresDate == Self.start + .days(25))
    }
  }

  // MARK: Tokens and limits

  @Test func tokensAreChecked() async throws {
    let key = P256.Signing.PrivateKey()
    let pem = key.publicKey.pemRepresentation.replacing("\n", with: "\\n")
    func app(issuer: String) -> String {
      World.ofOneCustomer(app: #","publicKey":"\#(pem)","issuerId":"\#(issuer)","keyId":"2X9R4HXF34""#)
    }
    try await SigningSimulator.run(app(issuer: ServerAPICredentials.issuer)) { setting in
      func outcome(
        _ key: P256.Signing.PrivateKey, bundleId: String = "com.example.game", clockError: Span = .seconds(0)
      ) async throws -> TransactionAnswer.Outcome {
        try await setting.simulator.client(
          .test(key: key, bundleId: bundleId), roots: setting.roots, clockError: clockError
        ).transactionInfo("1001").outcome
      }
      let refused = TransactionAnswer.Outcome.fault(.tokenRefused(.production))
      #expect(try await outcome(key).content != nil)
      #expect(try await outcome(P256.Signing.PrivateKey()) == refused)
      #expect(try await outcome(key, bundleId: "com.example.unknown") == refused)
      for wrong in [Span.minutes(-6), .minutes(6)] { #expect(try await outcome(key, clockError: wrong) == refused) }
      try await setting.simulator.control("world", app(issuer: "00000000-96fe-1a63-e053-0824d011072a"))
      #expect(try await outcome(key) == refused)
      try await setting.simulator.control("world", World.ofOneCustomer())
      let unknown = TransactionAnswer.Outcome.fault(.appUnknown(bundleId: "com.example.unknown"))
      #expect(try await outcome(key, bundleId: "com.example.unknown") == unknown)
    }
  }

  @Test func theLimitIsKeptWithAnInstantInMilliseconds() async throws {
    try await SigningSimulator.run(World.ofOneCustomer(), arguments: ["--enforce-limits", "0.001"]) { setting in
      #expect(try await setting.client.transactionInfo("1001").fact != nil)
      // Without a token a request counts as another app's, with its own limit.
      let url = "http://127.0.0.1:\(setting.simulator.port)/production/inApps/v1/transactions/1001"
      let first = try await setting.simulator.transport.send(.init(url: url)).get()
      let again = try await setting.simulator.transport.send(.init(url: url)).get()
      #expect(first.status == 200 && again.status == 429)
      #expect(again.headers.first(name: "Retry-After").flatMap { Int64($0) }.map { $0 > 1_000_000_000_000 } == true)
    }
  }

  // MARK: Faults

  @Test func faultsAreReturnedAsValues() async throws {
    let errors = #","errors":{"1003":{"errorCode":4040001},"1002":{"errorCode":4040002,"httpStatus":404}}"#
    try await SigningSimulator.run(World.ofOneCustomer(more: errors)) { setting in
      let client = setting.client
      #expect(try await client.transactionInfo("1003").outcome == .accountGone)
      #expect(try await client.transactionInfo("1002").reason == .appleError)
      for (fault, reason) in [
        (#"{"errorCode":4290000,"headers":{"Retry-After":"0"}}"#, Silence.Reason.rateLimited),
        (#"{"errorCode":5000001}"#, .appleError), (#"{"httpStatus":503}"#, .appleError),
        (#"{"body":"truncated"}"#, .appleError), (#"{"body":"closed"}"#, .unreachable),
        (#"{"body":"huge"}"#, .appleError), (#"{"body":"empty"}"#, .appleError),
      ] {
        try await setting.force(fault)
        #expect(try await client.transactionInfo("1001").reason == reason, "\(fault)")
      }
      try await setting.force(#"{"httpStatus":401,"next":1}"#)
      #expect(try await client.transactionInfo("1001").outcome == .fault(.tokenRefused(.production)))
      try await setting.force()
      #expect(try await client.transactionInfo("1001").fact != nil)
      // The last one, because the client asks nothing more for ten minutes.
      try await setting.force(#"{"errorCode":4290000,"retryAfter":600000,"latency":"3ms"}"#)
      let before = Instant(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000))
      guard case .unanswered(let silence) = try await client.transactionInfo("1001").outcome else {
        Issue.record("answered")
        return
      }
      #expect(silence.reason == .rateLimited && silence.retryAfter.map { $0 >= before + .minutes(10) } == true)
      let last = try await setting.simulator.control("requests?last=1")["last"] as? [[String: Any]]
      #expect(last?.first?["latencyMilliseconds"] as? Int == 3)
    }
  }

  @Test func wronglySignedAnswersAreRejected() async throws {
    try await SigningSimulator.run(World.ofOneCustomer()) { setting in
      for (fault, detail) in [
        (#"{"payload":{"bundleId":"com.example.other"}}"#, "another app"),
        (#"{"payload":{"environment":"Sandbox"}}"#, "environment Sandbox"),
        (#"{"payload":{"signedDate":1}}"#, "not valid when"),
        (#"{"payload":{"signedDate":null}}"#, "without signedDate"),
        (#"{"stranger":true}"#, "trusted root"), (#"{"badSignature":true}"#, "does not fit"),
      ] {
        try await setting.force(fault)
        let info = try await setting.client.transactionInfo("1001")
        #expect(info.reason == .appleError || info.outcome == .fault(.rootMissing), "\(info)")
        #expect(info.trail.warnings.first?.contains(detail) == true, "\(info)")
        let history = try await setting.client.transactionHistory("1001", on: .production)
        #expect(history.refused == 3 && history.transactions.isEmpty && history.revision == nil, "\(fault)")
        let query = NotificationQuery(
          start: Self.start - .days(2), end: Self.start + .days(1), type: nil, now: Self.start)
        let sweep = try await setting.client.notificationHistory(query, on: .production)
        #expect(sweep.unverifiable.count == 3 && sweep.notifications.isEmpty, "\(fault)")
      }
    }
  }

  @Test func aWorldHasItsFaultsAndItsOutages() async throws {
    let faults = """
      ,"faults":[{"path":"/production/inApps/v1/subscriptions","httpStatus":503,"next":1},
       {"path":"/production/inApps/v1/transactions","subjects":["1"],"errorCode":4000000,"next":1},
       {"path":"/production/inApps/v2/refund","fields":{"signedTransactions":null}},
       {"path":"/production/inApps/v1/lookup","httpStatus":503,"retryAfter":3600000}]
      """
    try await SigningSimulator.run(World.ofEveryKind(faults)) { setting in
      let client = setting.client
      for reason in [Silence.Reason.appleError, nil] {
        #expect(try await client.subscriptionStatuses("4", on: .production).silence?.reason == reason)
      }
      #expect(try await client.transactionInfo("2").fact?.transactionId == "2")
      #expect(try await client.transactionInfo("1").outcome == .fault(.requestRefused(code: 4_000_000)))
      #expect(try await client.transactionInfo("1").fact?.transactionId == "1")
      #expect(try await client.refundHistory("2", on: .production).reason == .appleError)
      guard case .unanswered(let silence) = try await client.lookUpOrder("MINVOICE1").outcome else {
        Issue.record("answered")
        return
      }
      #expect(silence.retryAfter != nil)
    }
    let half = #","faults":[{"path":"/production/inApps/v1/transactions","share":0.5,"httpStatus":401}]"#
    try await SigningSimulator.run(World.ofEveryKind(half)) { setting in
      var refused = 0
      for _ in 0..<40 {
        if case .fault(.tokenRefused) = try await setting.client.transactionInfo("1").outcome { refused += 1 }
      }
      #expect((5...35).contains(refused))
    }
    let outage =
      #","outages":[{"from":\#(World.start),"until":\#(World.start + World.hour),"path":"/production/inApps"}]"#
    try await SigningSimulator.run(World.ofEveryKind(outage)) { setting in
      #expect(try await setting.client.transactionInfo("1").reason == .appleError)
      try await setting.simulator.control("clock", #"{"advance":\#(World.hour)}"#)
      #expect(try await setting.client.transactionInfo("1").fact?.transactionId == "1")
    }
  }
}
