import Crypto
import Foundation
import Reconciliation
import SampleShops

/// The second app of the sample shop, on the App Store Server API. Its orders state their transactions, and Apple
/// reports prices and storefronts, so reports can be compared exactly.
enum QuizApp {
  static let bundleId = "com.example.quiz"
  static let sku = "QUIZ01"
  static let keyId = "QUIZKEY"

  static let pack = SampleProduct("quiz.pack", .consumable, [199, 229, 300, 600, 1_200])
  static let month = SampleProduct("quiz.club.month", .autoRenewable, [499, 549, 800, 1_500, 3_000])
  static let year = SampleProduct("quiz.club.year", .autoRenewable, [3_999, 4_499, 6_400, 12_000, 24_000])

  /// Apple's alpha-3 storefront of each currency.
  fileprivate static let storefronts = ["USD": "USA", "EUR": "DEU", "JPY": "JPN", "KWD": "KWT", "CNY": "CHN"]

  static func key(seed: UInt64) throws -> P256.Signing.PrivateKey {
    var random = SampleRandom(seed: seed ^ 0x9012_AB1E)
    return try P256.Signing.PrivateKey(rawRepresentation: Data(random.bytes(32)))
  }

  static func app(key: P256.Signing.PrivateKey) -> [String: Any] {
    [
      "bundleId": bundleId, "appAppleId": 1_234_567_892, "sku": sku, "issuerId": "57246542-96fe-1a63-e053-0824d011072b",
      "keyId": keyId, "publicKey": key.publicKey.pemRepresentation,
    ]
  }
}

extension SampleShop {
  /// Customers' refund requests by number of the sale: one that is open, and one that Apple has declined.
  private var refundRequests: [Int: [String: Any]] {
    let declined = timeline.midnight(3) + .hours(9)
    return [
      5: [
        "consumptionRequestDate": (timeline.asOf - .hours(2)).milliseconds,
        "consumptionRequestReason": "UNINTENDED_PURCHASE",
      ],
      12: [
        "consumptionRequestDate": (declined - .hours(8)).milliseconds, "refundDeclinedDate": declined.milliseconds,
        "consumptionRequestReason": "UNSATISFIED_WITH_PURCHASE",
      ],
    ]
  }

  /// Adds three weeks of regular sales, and one of each difference in prices and storefronts. The first app does not
  /// change.
  mutating func openQuiz() {
    hasQuiz = true
    let users = customers.all.indices.filter { !customers.all[$0].isTester }
    let americans = users.filter { customers.all[$0].currency == "USD" }
    for number in 0..<42 {
      let moment = timeline.midnight(number / 2 + 1) + .hours(10) + .minutes(Int64(number))
      sell(QuizApp.pack, to: users[number * 7], at: moment, reported: refundRequests[number] ?? [:])
    }
    // A preserved price; an order of three units has a total that is not divisible by three.
    for number in 0..<3 {
      let afternoon = timeline.midnight(6 + number) + .hours(15)
      sell(QuizApp.pack, to: americans[number], at: afternoon, reported: ["reportedPrice": 1_790])
      sell(QuizApp.pack, to: americans[number + 3], at: afternoon - .days(3)) { scene in
        (scene.quantity, scene.amount) = (3, .of(499))
      }
    }
    // An upgrade within a day. Apple returns the money for the whole month, which our records do not show as a refund.
    let upgraded = timeline.midnight(14) + .hours(9)
    sell(QuizApp.month, to: americans[7], at: upgraded, reported: ["isUpgraded": true])
    sell(QuizApp.year, to: americans[7], at: upgraded + .hours(1), reported: ["isUpgrade": true])
    var givenBack = SampleReports.row(
      QuizApp.month.productId.text, type: "IAY", units: "-1", price: "-4.99", parent: QuizApp.sku,
      on: (timeline.midnight(13) + .hours(20)).day)
    givenBack["Developer Proceeds"] = "3.49"
    reportRows.append(givenBack)
    sell(QuizApp.month, to: americans[9], at: timeline.midnight(41) + .hours(9), isRenewedUnseen: true)
  }

  /// - Parameter isRenewedUnseen: adds a renewal that is neither booked nor reported.
  private mutating func sell(
    _ ware: SampleProduct, to user: Int, at moment: Instant, reported: [String: Any] = [:],
    isRenewedUnseen: Bool = false,
    change: (inout ShopFixture) -> Void = { _ in }
  ) {
    let currency = customers.all[user].currency
    var story = story(at: moment, channel: .serverApi, currency: currency)
    story.sells(ware)
    change(&story.scene)
    let isSubscription = ware.type == .autoRenewable
    let period = Span.days(ware.productId == QuizApp.year.productId ? 365 : 30)
    let sold = story.scene.transaction { record in
      record.bundleId = QuizApp.bundleId
      record.purchaseDate = moment + .seconds(20)
      if isSubscription { record.expiresDate = moment + .seconds(20) + period }
    }
    let order = story.scene.order { order in
      (order.bundleId, order.transactionId) = (QuizApp.bundleId, sold.transactionId)
      order.verifiedAt = moment + .seconds(22)
    }
    story.scene.delivery(of: order)
    story.expect(order, .settled)
    if isRenewedUnseen, let expiry = sold.expiresDate {
      let renewal = story.scene.transaction("T2") { record in
        record.bundleId = QuizApp.bundleId
        (record.originalTransactionId, record.originalPurchaseDate) = (sold.transactionId, sold.purchaseDate)
        (record.purchaseDate, record.expiresDate, record.isRenewal) = (expiry, expiry + period, true)
      }
      story.expect(.renewalWithoutOrder, on: renewal.transactionId)
    }
    add(story, by: [story.scene.id("user"): user])
    var fields = reported
    fields["storefront"] = QuizApp.storefronts[currency]
    if isSubscription { fields["subscriptionGroupIdentifier"] = "quiz.club" }
    for record in story.scene.world.transactions { self.reported[record.transactionId] = fields }
  }
}
