import AppStore
import Foundation
import Reconciliation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SimulatorOptionsTests {
  /// 2026-11-18T00:00:00Z.
  private static let start: Int64 = 1_795_017_600_000
  private static let hour: Int64 = 3_600_000

  private static let payload = SimulatedWorld.payload(77)

  /// A receipt of the world with `payload`.
  private static func receipt(_ transactions: String = #"["2"]"#, _ more: String = "") -> String {
    #"{"payload":"\#(payload)","kind":"app","environment":"Production","bundleId":"com.example.game","#
      + #""transactions":\#(transactions)\#(more)}"#
  }

  static func world(_ more: String = "", receipts: String = "") -> String {
    """
    {"apps":[{"bundleId":"com.example.game","appAppleId":1234567890}],"now":\(start),"receipts":[\(receipts)],
     "transactions":[
      {"transactionId":"1","environment":"Production","bundleId":"com.example.game","productId":"gems.100",
       "type":"Consumable","quantity":2,"purchaseDate":\(start - hour),"price":1990,"currency":"EUR","orderId":"MINVOICE1",
       "storefront":"DEU","storefrontId":"143443","appTransactionId":"704897469903783919",
       "consumptionRequestDate":\(start - 60_000),"consumptionRequestReason":"FULFILLMENT_ISSUE","refundDeclinedDate":\(start - 30_000)},
      {"transactionId":"2","environment":"Production","bundleId":"com.example.game","productId":"remove.ads",
       "type":"Non-Consumable","purchaseDate":\(start - 2 * hour),"orderId":"MINVOICE1",
       "revocationDate":\(start - hour),"revocationReason":1},
      {"transactionId":"3","environment":"Production","bundleId":"com.example.game","productId":"gold.monthly",
       "type":"Auto-Renewable Subscription","purchaseDate":\(start - 9 * hour),"expiresDate":\(start - 5 * hour),
       "isUpgraded":true,"webOrderLineItemId":"903","customer":"anna"},
      {"transactionId":"4","environment":"Production","bundleId":"com.example.game","productId":"platinum.monthly",
       "type":"Auto-Renewable Subscription","purchaseDate":\(start - 5 * hour),"expiresDate":\(start - hour),
       "isUpgrade":true,"webOrderLineItemId":"904","subscriptionStatus":1,"renewalDate":\(start + 72 * hour),
       "billingPlanType":"MONTHLY","previousOriginalTransactionId":"3","customer":"anna",
       "commitmentInfo":{"billingPeriodNumber":1,"totalBillingPeriods":12}},
      {"transactionId":"5","environment":"Production","bundleId":"com.example.game","productId":"silver.monthly",
       "type":"Auto-Renewable Subscription","purchaseDate":\(start - 4 * hour),"expiresDate":\(start + hour),
       "redeemsOffer":true,"offerType":3,"offerIdentifier":"AUTUMN","webOrderLineItemId":"905"},
      {"transactionId":"6","environment":"Production","bundleId":"com.example.game","productId":"bundle","type":"Consumable",
       "purchaseDate":\(start - 3 * hour),"price":4000,"currency":"USD","advancedCommerceInfo":{"items":[
        {"SKU":"a","price":1000,"refunds":[{"refundAmount":1000,"refundDate":\(start - hour),"refundType":"FULL"}]},
        {"SKU":"b","price":3000}]}},
      {"transactionId":"7","originalTransactionId":"2","environment":"Production","bundleId":"com.example.game",
       "productId":"remove.ads","type":"Non-Consumable","purchaseDate":\(start - 30 * 60_000),
       "originalPurchaseDate":\(start - 2 * hour)}]\(more)}
    """
  }

  // MARK: Payloads

  @Test func simulatedPayloadsVerify() async throws {
    try await SigningSimulator.run(Self.world(), makesReceipts: true) { setting in
      for form in ["signed", "app", "notification"] {
        let payload = try await setting.payload(form, ["1"])
        let proof = try #require(setting.judge.judge(payload).judgement.proof, "\(form)")
        #expect(proof.facts.map(\.transactionId) == ["1"] && proof.bundleId == "com.example.game", "\(form)")
        #expect(proof.environment == .production && proof.facts.allSatisfy { $0.quantity == 2 }, "\(form)")
      }
      // Only Apple can verify an old transaction receipt.
      let old = try await setting.payload("transaction", ["1"])
      #expect(setting.judge.judge(old).judgement.unproven?.bundleId == "com.example.game")
      for form in ["renewalInfo", "appTransaction"] {
        let payload = try await setting.payload(form, ["4"])
        let proof = try #require(setting.judge.judge(payload).judgement.proof, "\(form)")
        #expect(proof.facts.isEmpty && proof.environment == .production, "\(form)")
      }
    }
  }

  @Test func transportDamagesPayloads() async throws {
    let damages = [
      "spaceForPlus", "otherAlphabet", "lostPadding", "lines", "quotes", "json", "bytea", "percent", "truncated",
    ]
    try await SigningSimulator.run(Self.world(), makesReceipts: true) { setting in
      for damage in damages {
        for form in ["signed", "app", "transaction"] {
          let payload = try await setting.payload(form, ["1", "2"], #","damage":"\#(damage)""#)
          let (kind, judgement) = setting.judge.judge(payload)
          switch judgement {
          case .genuine: #expect(damage != "truncated" && form != "transaction")
          case .claim: #expect(damage != "truncated" && form == "transaction")
          case .refused, .noRoots:
            #expect(damage == "truncated" && kind == .malformed && judgement.refusal == .malformed)
          }
        }
      }
    }
  }

  @Test func aReceiptThatWasMadeIsKnownAtVerifyReceipt() async throws {
    try await SigningSimulator.run(Self.world(), makesReceipts: true) { setting in
      let payload = try await setting.payload("app", ["1", "2", "7"], #","damage":"spaceForPlus""#)
      let proof = try #require(setting.judge.judge(payload).judgement.proof)
      let receipt = try #require(try await setting.simulator.verify(payload).outcome.receipt)
      #expect(receipt.facts.map(\.transactionId) == ["1", "2", "7"])
      #expect(receipt.contradictions(with: WrittenContent(proof)).isEmpty)
    }
  }

  @Test func answersToOtherReceiptsAreDetected() async throws {
    try await SigningSimulator.run(Self.world(), makesReceipts: true) { setting in
      let mine = try await setting.payload("app", ["1", "2"])
      let other = try await setting.payload("app", ["1"], #","signedDate":\#(Self.start - 86_400_000)"#)
      let receipts = Self.receipt(#"["1","2"]"#, #","answeredAs":"\#(other)""#).replacing(Self.payload, with: mine)
      try await setting.simulator.control("world", Self.world(receipts: receipts))
      let proof = try #require(setting.judge.judge(mine).judgement.proof)
      let receipt = try #require(try await setting.simulator.verify(mine).outcome.receipt)
      #expect(receipt.contradictions(with: WrittenContent(proof)).contains(.missing(transactionId: "2")))
      #expect(receipt.contradictions(with: WrittenContent(proof)).count == 2, "the creation date differs, too")
    }
  }

  @Test(arguments: ["all", "text", "milliseconds"])
  func datesComeInEveryForm(dates: String) async throws {
    let receipts = Self.receipt(#"["2","3"]"#, #","dates":"\#(dates)""#)
    try await SigningSimulator.run(Self.world(receipts: receipts)) { setting in
      let receipt = try #require(try await setting.simulator.verify(Self.payload).outcome.receipt)
      let refunded = try #require(receipt.facts.first)
      #expect(
        refunded.revocation == .stated(Revocation(date: Instant(milliseconds: Self.start - Self.hour), reason: 1)))
      #expect(receipt.facts.map(\.expiresDate) == [nil, Instant(milliseconds: Self.start - 5 * Self.hour)])
      #expect(receipt.creationDate == Instant(milliseconds: Self.start - 2 * Self.hour))
      #expect(receipt.requestDate == Instant(milliseconds: Self.start))
    }
  }

  @Test func compressedAnswersAreReadAndABombIsRefused() async throws {
    try await SigningSimulator.run(Self.world(receipts: Self.receipt())) { setting in
      try await setting.force(#"{"compression":"gzip"}"#)
      let receipt = try #require(try await setting.simulator.verify(Self.payload).outcome.receipt)
      #expect(receipt.facts.map(\.transactionId) == ["2"])
      #expect(try await setting.client.transactionInfo("2").fact?.transactionId == "2")
      try await setting.force(#"{"compression":"bomb"}"#)
      let silence = Silence(reason: .appleError, detail: "answer too long")
      #expect(try await setting.simulator.verify(Self.payload).outcome == .unanswered(silence))
      #expect(try await setting.client.transactionInfo("2").outcome == .unanswered(silence))
    }
  }

  @Test(arguments: [
    ("emptyReceipt", "status 0 without a list in_app"), ("textStatus", "status 0 without a list in_app"),
    ("noBundleId", "status 0 without bundle_id"), ("noInApp", "status 0 without a list in_app"),
    ("nullInApp", "status 0 without a list in_app"), ("objectInApp", "status 0 without a list in_app"),
    ("nestedInApp", "status 0 without a list in_app"), ("surrogateInApp", "status 0 without a list in_app"),
    ("textLatestInfo", "status 0 whose latest_receipt_info is no list"),
  ])
  func malformedReceiptsInAnswersAreRejected(_ shape: String, _ detail: String) async throws {
    try await SigningSimulator.run(Self.world(receipts: Self.receipt())) { setting in
      try await setting.force(#"{"receipt":"\#(shape)"}"#)
      let answer = try await setting.simulator.verify(Self.payload)
      #expect(answer.outcome == .unanswered(Silence(reason: .appleError, detail: detail)))
    }
  }

  // MARK: The Server API

  @Test func anInvoiceIsLookedUp() async throws {
    try await SigningSimulator.run(Self.world()) { setting in
      let answer = try await setting.client.lookUpOrder("MINVOICE1")
      let transactions = try #require(answer.outcome.content)
      #expect(transactions.map(\.fact.transactionId) == ["1", "2"] && answer.refused == 0)
      #expect(try await setting.client.lookUpOrder("MINVOICE2").outcome == .notFound)
    }
  }

  @Test(
    arguments: [
      ("DID_CHANGE_RENEWAL_PREF", "UPGRADE", "4"), ("OFFER_REDEEMED", "INITIAL_BUY", "5"), ("SUBSCRIBED", nil, "3"),
      ("CONSUMPTION_REQUEST", nil, "1"), ("REFUND_DECLINED", nil, "1"),
    ] as [(String, String?, String)])
  func eachNotificationTypeIsSent(type: String, subtype: String?, id: String) async throws {
    try await SigningSimulator.run(Self.world()) { setting in
      let now = Instant(milliseconds: Self.start)
      // The simulated clock stays at the creation of the world, so the window must lie within Apple's retention.
      let query = NotificationQuery(start: now - .days(2), end: now, type: type, subtype: subtype, now: now)
      let answer = try await setting.client.notificationHistory(query, on: .production)
      let notification = try #require(answer.notifications.first, "\(answer)")
      #expect(answer.notifications.count == 1 && answer.end == .complete)
      let fact = try #require(try notification.transaction?.get().fact)
      #expect(fact.transactionId == id)
      let notices: [String: RefundRequestNotice] = [
        "CONSUMPTION_REQUEST": .requested(reason: "FULFILLMENT_ISSUE"), "REFUND_DECLINED": .declined,
      ]
      #expect(fact.refundRequest == notices[type])
    }
  }

  @Test func factsKeepAllDetailsOfTheResponse() async throws {
    try await SigningSimulator.run(Self.world()) { setting in
      let gems = try #require(try await setting.client.transactionInfo("1").fact)
      #expect(gems.details.storefront == "DEU" && gems.details.appTransactionId == "704897469903783919")
      let vip = try #require(try await setting.client.transactionInfo("4").fact)
      #expect(vip.details.billingPlanType == "MONTHLY" && vip.details.previousOriginalTransactionId == "3")
      #expect(vip.details.commitmentInfo?.contains(#""totalBillingPeriods":12"#) == true)
      #expect(vip.details.subscriptionGroupIdentifier == "platinum.monthly")
      let offer = try #require(try await setting.client.transactionInfo("5").fact)
      #expect(offer.details.offerType == 3 && offer.details.offerIdentifier == "AUTUMN" && offer.hasOffer == true)
      #expect(try await setting.client.transactionInfo("3").fact?.isUpgraded == true)
      let restore = try #require(try await setting.client.transactionInfo("7").fact)
      #expect(restore.originalTransactionId == "2" && restore.isRenewal == false)
    }
  }

  // MARK: Faults

  @Test func aWorldHasItsFaults() async throws {
    let faults = """
      ,"faults":[{"path":"/production/inApps/v1/subscriptions","httpStatus":503,"next":1},
       {"path":"/production/inApps/v1/transactions","subjects":["1"],"errorCode":4000000,"next":1},
       {"path":"/production/inApps/v2/refund","fields":{"signedTransactions":null}},
       {"path":"/production/inApps/v1/lookup","httpStatus":503,"retryAfter":3600000}]
      """
    try await SigningSimulator.run(Self.world(faults)) { setting in
      let client = setting.client
      #expect(try await client.subscriptionStatuses("4", on: .production).silence?.reason == .appleError)
      #expect(try await client.subscriptionStatuses("4", on: .production).silence == nil)
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
  }

  @Test func aShareOfQuestionsIsRefused() async throws {
    let faults = #","faults":[{"path":"/production/inApps/v1/transactions","share":0.5,"httpStatus":401}]"#
    try await SigningSimulator.run(Self.world(faults)) { setting in
      var refused = 0
      for _ in 0..<40 {
        if case .fault(.tokenRefused) = try await setting.client.transactionInfo("1").outcome { refused += 1 }
      }
      #expect((5...35).contains(refused))
    }
  }

  @Test func anOutageBeginsAndEnds() async throws {
    let outage = #","outages":[{"from":\#(Self.start),"until":\#(Self.start + Self.hour),"path":"/production/inApps"}]"#
    try await SigningSimulator.run(Self.world(outage)) { setting in
      #expect(try await setting.client.transactionInfo("1").reason == .appleError)
      try await setting.simulator.control("clock", #"{"advance":\#(Self.hour)}"#)
      #expect(try await setting.client.transactionInfo("1").fact?.transactionId == "1")
    }
  }

  @Test(arguments: [-1, 1, 29_999, 2_147_483_647]) func undocumentedStatusesAreNoAnswers(status: Int) async throws {
    let receipts = Self.receipt(#"["2"]"#, #","status":\#(status)"#)
    try await SigningSimulator.run(Self.world(receipts: receipts)) { setting in
      let answer = try await setting.simulator.verify(Self.payload)
      let silence = Silence(reason: .appleError, detail: "status \(status)")
      #expect(answer.outcome == .unanswered(silence) && answer.appleStatus == status)
    }
  }
}
