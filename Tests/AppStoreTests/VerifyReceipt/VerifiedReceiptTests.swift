import Reconciliation
import Testing

@testable import AppStore

struct VerifiedReceiptTests {
  private static let received = Instant(seconds: 1_795_212_000)
  private static let asked = Instant(milliseconds: 1_795_211_999_123)

  // MARK: The unified shape

  /// A consumable, a restored non-consumable, a refunded one, and a subscription with a trial and a renewal.
  static let unified = """
    {"status":0,"environment":"Production","receipt":{"receipt_type":"Production","adam_id":1234567890,
    "app_item_id":1234567890,"bundle_id":"com.example.game","application_version":"41","download_id":500000000000000001,
    "version_external_identifier":812345678,"receipt_creation_date":"2026-11-18 20:59:59 Etc/GMT",
    "receipt_creation_date_ms":"1795035599000","receipt_creation_date_pst":"2026-11-18 12:59:59 America/Los_Angeles",
    "request_date":"2026-11-20 21:59:59 Etc/GMT","request_date_ms":"1795211999123",
    "request_date_pst":"2026-11-20 13:59:59 America/Los_Angeles","original_application_version":"1.0","in_app":[
    {"quantity":"3","product_id":"gems.100","transaction_id":"2000000000000001",
    "original_transaction_id":"2000000000000001","purchase_date":"2026-11-18 20:59:00 Etc/GMT",
    "purchase_date_ms":"1795035540000","original_purchase_date_ms":"1795035540000","is_trial_period":"false"},
    {"quantity":"1","product_id":"remove.ads","transaction_id":"2000000000000003",
    "original_transaction_id":"2000000000000002","purchase_date_ms":"1795035590000",
    "original_purchase_date_ms":"1700000000000","is_trial_period":"false"},
    {"quantity":1,"product_id":"extra.levels","transaction_id":2000000000000004,
    "original_transaction_id":2000000000000004,"purchase_date_ms":1795000000000,
    "original_purchase_date_ms":1795000000000,"cancellation_date":"2026-11-19 00:00:00 Etc/GMT",
    "cancellation_date_ms":"1795046400000","cancellation_reason":"1","is_trial_period":"false"},
    {"quantity":"1","product_id":"gold.monthly","transaction_id":"2000000000000005",
    "original_transaction_id":"2000000000000005","web_order_line_item_id":"2000000000000905",
    "purchase_date_ms":"1791000000000","original_purchase_date_ms":"1791000000000",
    "expires_date":"2026-10-10 00:00:00 Etc/GMT","expires_date_ms":"1793600000000","is_trial_period":"true",
    "is_in_intro_offer_period":"false"}]},
    "latest_receipt":"MIIT","latest_receipt_info":[
    {"quantity":"1","product_id":"gold.monthly","transaction_id":"2000000000000006",
    "original_transaction_id":"2000000000000005","web_order_line_item_id":"2000000000000906",
    "purchase_date_ms":"1793600000000","original_purchase_date_ms":"1791000000000",
    "expires_date":"2026-11-20 00:00:00 Etc/GMT","expires_date_ms":"1795200000000","is_trial_period":"false",
    "is_in_intro_offer_period":"false","in_app_ownership_type":"PURCHASED","subscription_group_identifier":"20",
    "app_account_token":"7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11"},
    {"quantity":"1","product_id":"gold.monthly","transaction_id":"2000000000000005",
    "original_transaction_id":"2000000000000005","web_order_line_item_id":"2000000000000905",
    "purchase_date_ms":"1791000000000","original_purchase_date_ms":"1791000000000","expires_date_ms":"1793600000000",
    "is_trial_period":"true","is_in_intro_offer_period":"false","in_app_ownership_type":"PURCHASED",
    "is_upgraded":"true"}],
    "pending_renewal_info":[{"original_transaction_id":"2000000000000005","product_id":"gold.monthly",
    "auto_renew_product_id":"gold.monthly","auto_renew_status":"1","expiration_intent":"2",
    "is_in_billing_retry_period":"1","grace_period_expires_date_ms":"1796500000000","from_the_future":{"x":[1]}}]}

    """

  @Test func aUnifiedAnswerHasOneFactPerTransaction() throws {
    let receipt = try decode(Self.unified)
    #expect(receipt.environment == .production && receipt.bundleId == "com.example.game")
    #expect(receipt.requestDate == Self.asked)
    #expect(receipt.creationDate == Instant(milliseconds: 1_795_035_599_000))
    #expect(receipt.facts.map(\.transactionId.last) == ["1", "3", "4", "5", "6"])
    for fact in receipt.facts {
      #expect(fact.environment == .production && fact.bundleId == "com.example.game")
      #expect(fact.channel == .verifyReceipt && fact.signedDate == Self.asked)
      #expect(fact.priceMilliunits == nil && fact.currency == nil && fact.isRenewal == nil)
    }
  }

  /// A consumable states neither a refund nor a token, a restore is no renewal, and a refund has its date and reason.
  @Test func purchasesStateWhatTheirKindCanState() throws {
    var expected = TransactionFact(
      environment: .production, transactionId: "2000000000000001", productId: "gems.100", channel: .verifyReceipt,
      signedDate: Self.asked)
    (expected.originalTransactionId, expected.bundleId) = ("2000000000000001", "com.example.game")
    (expected.quantity, expected.revocation, expected.appAccountToken) = (3, .absent, .absent)
    expected.purchaseDate = Instant(milliseconds: 1_795_035_540_000)
    expected.originalPurchaseDate = expected.purchaseDate
    #expect(try fact("2000000000000001", in: Self.unified) == expected)
    let restore = try fact("2000000000000003", in: Self.unified)
    #expect(restore.originalTransactionId == "2000000000000002" && restore.revocation == .absent)
    let refund = try fact("2000000000000004", in: Self.unified)
    #expect(refund.revocation == .stated(Revocation(date: Instant(milliseconds: 1_795_046_400_000), reason: 1)))
    #expect(refund.purchaseDate == Instant(milliseconds: 1_795_000_000_000))
  }

  /// A period that is listed twice is one fact, and a renewal has its token and its grace period.
  @Test func subscriptionsHaveTheirPeriods() throws {
    let first = try fact("2000000000000005", in: Self.unified)
    #expect(first.productType == .autoRenewable && first.webOrderLineItemId == "2000000000000905")
    #expect(first.expiresDate == Instant(milliseconds: 1_793_600_000_000))
    #expect(first.revocation == .stated(nil) && first.appAccountToken == .absent && first.ownership == .purchased)
    #expect(first.hasOffer == true && first.isUpgraded == true)
    let renewal = try fact("2000000000000006", in: Self.unified)
    #expect(renewal.hasOffer == nil && renewal.isUpgraded == nil)
    #expect(renewal.appAccountToken == .stated("7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11"))
    for fact in [first, renewal] { #expect(fact.gracePeriodExpiresDate == Instant(milliseconds: 1_796_500_000_000)) }
  }

  // MARK: The flat shape

  static let oldConsumable = """
    {"receipt":{"original_purchase_date_pst":"2012-04-30 08:05:55 America/Los_Angeles",
    "original_transaction_id":"1000000046178817","original_purchase_date_ms":"1335798355868","bvrs":"20120427",
    "product_id":"gems.100","purchase_date_ms":"1335798355868","purchase_date":"2012-04-30 15:05:55 Etc/GMT",
    "unique_identifier":"0000b031c818","item_id":"521129812","bid":"com.example.old","quantity":"1",
    "transaction_id":"1000000046178817"},"status":0}
    """

  @Test func aFlatAnswerAboutAConsumableCannotStateRefunds() throws {
    let receipt = try decode(Self.oldConsumable, host: .sandbox)
    #expect(receipt.environment == .sandbox && receipt.bundleId == "com.example.old")
    #expect(receipt.requestDate == Self.received && receipt.creationDate == nil && receipt.facts.count == 1)
    let fact = try #require(receipt.facts.first)
    #expect(fact.transactionId == "1000000046178817" && fact.productId == "gems.100" && fact.quantity == 1)
    #expect(fact.bundleId == "com.example.old" && fact.signedDate == Self.received)
    #expect(fact.purchaseDate == Instant(milliseconds: 1_335_798_355_868))
    #expect(fact.revocation == .absent && fact.cannotStateRefunds && fact.hasOffer == nil)
  }

  static func oldSubscription(status: Int, latestKey: String) -> String {
    """
    {"auto_renew_status":0,"auto_renew_product_id":"gold.monthly","status":\(status),"receipt":{"bid":"com.example.old",
    "product_id":"gold.monthly","quantity":"1","transaction_id":"1000000000000011",
    "original_transaction_id":"1000000000000010","web_order_line_item_id":"1000000000000911",
    "purchase_date_ms":"1790000000000","original_purchase_date_ms":"1787000000000","expires_date":"1793000000000",
    "expires_date_formatted":"2026-10-26 03:33:20 Etc/GMT","is_trial_period":"false"},
    "\(latestKey)":{"bid":"com.example.old","product_id":"gold.monthly","quantity":"1",
    "transaction_id":"1000000000000012","original_transaction_id":"1000000000000010",
    "web_order_line_item_id":"1000000000000912","purchase_date_ms":"1793000000000",
    "original_purchase_date_ms":"1787000000000","expires_date":"1795600000000","is_trial_period":"false",
    "cancellation_date_ms":"1794000000000","cancellation_reason":"0"},"latest_receipt":"ewoJ"}
    """
  }

  @Test(arguments: [(0, "latest_receipt_info"), (21_006, "latest_expired_receipt_info")])
  func aFlatAnswerAboutASubscriptionHasTwoPeriods(status: Int, latestKey: String) throws {
    let receipt = try decode(Self.oldSubscription(status: status, latestKey: latestKey), status: status)
    #expect(receipt.status == status && receipt.environment == .production)
    #expect(receipt.facts.map(\.transactionId) == ["1000000000000011", "1000000000000012"])
    let (first, last) = (try #require(receipt.facts.first), try #require(receipt.facts.last))
    #expect(first.expiresDate == Instant(milliseconds: 1_793_000_000_000))
    #expect(first.productType == .autoRenewable && first.revocation == .absent && first.cannotStateRefunds)
    #expect(last.expiresDate == Instant(milliseconds: 1_795_600_000_000))
    #expect(last.revocation == .stated(Revocation(date: Instant(milliseconds: 1_794_000_000_000), reason: 0)))
  }

  // MARK: Environment

  @Test(
    arguments: [
      (#""Sandbox""#, "Production", .production, .sandbox), (#""Production""#, nil, .sandbox, .production),
      (nil, "Production", .sandbox, .production), (nil, "ProductionVPP", .sandbox, .production),
      (nil, "ProductionSandbox", .production, .sandbox), (nil, "ProductionVPPSandbox", .production, .sandbox),
      (#""Moon""#, "ProductionSandbox", .production, .sandbox), ("null", nil, .production, .production),
    ] as [(String?, String?, AppleHost, AppleEnvironment)])
  func theEnvironmentIsThatOfTheAnswer(
    environment: String?, type: String?, host: AppleHost, expected: AppleEnvironment
  ) throws {
    let stated = environment.map { #""environment":\#($0),"# } ?? ""
    let type = type.map { #""receipt_type":"\#($0)","# } ?? ""
    let receipt = try decode(#"{"status":0,\#(stated)"receipt":{\#(type)"bundle_id":"a","in_app":[]}}"#, host: host)
    #expect(receipt.environment == expected)
    // Each environment redirects the other's receipts (21007, 21008).
    #expect(receipt.contradictions == (expected == host.environment ? [] : [.environment(answered: expected)]))
  }

  // MARK: Fields of one item

  private static let date = Instant(milliseconds: 1_795_046_400_000)

  @Test(arguments: [
    (#""expires_date_ms":"1795200000000""#, Statement<Revocation?>.stated(nil)),
    (#""web_order_line_item_id":"7""#, .stated(nil)),
    (#""is_trial_period":"false""#, .absent), (#""cancellation_date_ms":"0""#, .absent),
    (
      #""cancellation_date":"2026-11-19 00:00:00 Etc/GMT","web_order_line_item_id":"7""#,
      .stated(Revocation(date: date))
    ),
    (#""cancellation_date":"","cancellation_date_ms":"","expires_date_ms":1795200000000"#, .stated(nil)),
    (#""web_order_line_item_id":"9","cancellation_date_ms":"0""#, .stated(nil)),
    (#""web_order_line_item_id":"9","cancellation_date":null"#, .stated(nil)),
    (#""web_order_line_item_id":"9","cancellation_date_ms":"" "#, .stated(nil)),
    (#""cancellation_date_ms":1795046400000"#, .stated(Revocation(date: date))),
    (#""cancellation_date_ms":"1795046400000","is_upgraded":"true""#, .stated(Revocation(date: date))),
    (#""cancellation_date_ms":"1795046400000","cancellation_reason":"x""#, .stated(Revocation(date: date))),
  ])
  func aMissingCancellationIsAStatementForSubscriptionsOnly(fields: String, expected: Statement<Revocation?>) throws {
    #expect(try item(fields).revocation == expected)
  }

  @Test(
    arguments: [
      (#""is_trial_period":"false""#, nil), (#""is_trial_period":true"#, true), (#""is_trial_period":"1""#, true),
      (#""is_in_intro_offer_period":"true","is_trial_period":"false""#, true), (#""promotional_offer_id":"p""#, true),
      (#""offer_code_ref_name":"c","is_trial_period":"false""#, true), (#""promotional_offer_id":null"#, nil),
      (#""is_trial_period":"perhaps""#, nil), (#""quantity":"1""#, nil),
    ] as [(String, Bool?)])
  func anOfferIsStatedButNeverItsAbsence(fields: String, expected: Bool?) throws {
    #expect(try item(fields).hasOffer == expected)
  }

  @Test(
    arguments: [
      (#""quantity":"10""#, 10), (#""quantity":10"#, 10), (#""quantity":"0""#, nil), (#""quantity":-1"#, nil),
      (#""quantity":"many""#, nil), (#""quantity":99999999999"#, nil), (#""quantity":null"#, nil),
    ] as [(String, Int32?)])
  func quantitiesArePositive(fields: String, expected: Int32?) throws {
    #expect(try item(fields).quantity == expected)
  }

  @Test(
    arguments: [
      ("PURCHASED", Ownership.purchased), ("FAMILY_SHARED", .familyShared), ("BORROWED", nil), ("", nil),
    ] as [(String, Ownership?)])
  func unknownOwnershipIsNil(word: String, expected: Ownership?) throws {
    #expect(try item(#""in_app_ownership_type":"\#(word)""#).ownership == expected)
  }

  @Test(arguments: [
    #"{"transaction_id":"1"}"#, #"{"product_id":"a"}"#, #"{"transaction_id":"","product_id":"a"}"#,
    #"{"transaction_id":"1\u0000","product_id":"a"}"#, #"{"transaction_id":true,"product_id":"a"}"#, "7", "null", "[]",
  ])
  func answersWithPurchasesWithoutIDsAreRejected(item: String) throws {
    let fields = try #require(JSONFields(#"{"receipt":{"bundle_id":"com.example.game","in_app":[\#(item)]}}"#.utf8))
    #expect(throws: Silence.self) {
      try VerifiedReceipt.decode(fields, status: 0, host: .production, receivedAt: Self.received)
    }
  }

  // MARK: Dates

  @Test(
    "A date is read in every format of Apple's",
    arguments: [
      #""cancellation_date_ms":"1335798355000""#, #""cancellation_date_ms":1335798355000"#,
      #""cancellation_date":"2012-04-30 15:05:55 Etc/GMT""#, #""cancellation_date":"1335798355000""#,
      #""cancellation_date":"2012-04-30T15:05:55Z""#,
      #""cancellation_date":"2012-04-30 15:05:55 Etc/GMT","cancellation_date_ms":"","cancellation_date_pst":"x""#,
      #""cancellation_date_ms":"soon","cancellation_date":"2012-04-30 15:05:55 Etc/GMT""#,
    ])
  func everyFormOfADate(fields: String) throws {
    #expect(try item(fields).revocation == .stated(Revocation(date: Instant(seconds: 1_335_798_355))))
  }

  @Test(
    "A transaction with an unreadable date is a contradiction and no fact",
    arguments: [
      ("cancellation_date", #""cancellation_date":"yesterday""#),
      ("cancellation_date", #""cancellation_date_pst":"2012-04-30 08:05:55 America/Los_Angeles""#),
      ("cancellation_date", #""cancellation_date_ms":"-1""#), ("cancellation_date", #""cancellation_date":true"#),
      ("cancellation_date", #""cancellation_date_ms":99999999999999999999"#),
      ("expires_date", #""expires_date":"2012-04-30""#), ("purchase_date", #""purchase_date_ms":9223372036854775807"#),
      ("original_purchase_date", #""original_purchase_date_ms":-1"#),
    ])
  func unreadableDates(field: String, json: String) throws {
    let receipt = try decode(
      #"{"status":0,"receipt":{"bundle_id":"com.example.game","in_app":[{"transaction_id":"1","product_id":"a",\#(json)},"#
        + #"{"transaction_id":"2","product_id":"b"}]}}"#)
    #expect(receipt.facts.map(\.transactionId) == ["2"])
    #expect(receipt.contradictions == [.unreadableDate(transactionId: "1", field: field)])
  }

  // MARK: State of a subscription

  @Test(
    arguments: [
      (#""expires_date_ms":"1795212000001""#, "", SubscriptionState.active),
      (#""expires_date_ms":"1795211999999""#, "", .expired),
      (#""expires_date_ms":"1795211999999""#, #","is_in_billing_retry_period":"1""#, .billingRetry),
      (
        #""expires_date_ms":"1795211999999""#,
        #","is_in_billing_retry_period":"1","grace_period_expires_date_ms":"1795212000001""#, .gracePeriod
      ),
      (#""expires_date_ms":"1795212000001","cancellation_date_ms":"1795000000000""#, "", .revoked),
      (#""expires_date_ms":"1795212000001","cancellation_date_ms":"1795000000000","is_upgraded":"true""#, "", .active),
    ] as [(String, String, SubscriptionState)])
  func thePendingRenewalGivesTheSubscriptionsState(item: String, renewal: String, expected: SubscriptionState) throws {
    let receipt = try decode(
      #"{"status":0,"receipt":{"bundle_id":"com.example.game","in_app":[{"transaction_id":"1","original_transaction_id":"1","product_id":"a","#
        + #""web_order_line_item_id":"7","expires_date_ms":"1790000000000"}]},"latest_receipt_info":[{"#
        + #""transaction_id":"2","original_transaction_id":"1","product_id":"a","web_order_line_item_id":"8",\#(item)}],"#
        + #""pending_renewal_info":[{"original_transaction_id":"1"\#(renewal)}]}"#)
    #expect(receipt.facts.map(\.subscriptionStatus) == [expected, expected])
  }

  @Test(
    "An old receipt's answer states its subscription's state beside the receipt or by the status",
    arguments: [
      (21_006, "1795211999999", "", .expired),
      (21_006, "1795211999999", #""is_in_billing_retry_period":1,"#, .billingRetry),
      // Observed at a renewal.
      (21_006, "1795212000001", "", .active),
      (0, "1795212000001", #""auto_renew_status":0,"#, .active), (0, "1795211999999", "", nil),
    ] as [(Int, String, String, SubscriptionState?)])
  func oldSubscriptionStates(status: Int, expires: String, beside: String, expected: SubscriptionState?) throws {
    let receipt = try decode(
      #"{"status":\#(status),\#(beside)"receipt":{"bid":"com.example.old","product_id":"gold","quantity":"1","#
        + #""transaction_id":"2","original_transaction_id":"1","web_order_line_item_id":"7","request_date_ms":"1795212000000","#
        + #""expires_date":"\#(expires)"}}"#, status: status)
    #expect(receipt.facts.map(\.subscriptionStatus) == [expected])
  }

  // MARK: Helpers

  private func item(_ fields: String) throws -> TransactionFact {
    let receipt = try decode(
      #"{"status":0,"receipt":{"bundle_id":"com.example.game","in_app":[{"transaction_id":"1","product_id":"a",\#(fields)}]}}"#
    )
    return try #require(receipt.facts.first)
  }

  private func fact(_ id: String, in answer: String) throws -> TransactionFact {
    try #require(try decode(answer).facts.first { $0.transactionId == id })
  }

  private func decode(_ answer: String, status: Int = 0, host: AppleHost = .production) throws -> VerifiedReceipt {
    let fields = try #require(JSONFields(answer.utf8))
    return try VerifiedReceipt.decode(fields, status: status, host: host, receivedAt: Self.received)
  }
}
