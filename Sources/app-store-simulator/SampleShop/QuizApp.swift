import Crypto
import Foundation

/// A second app of the sample shop, which is asked through the App Store Server API: its orders name their transactions, and
/// Apple tells prices and storefronts, so that reports can be compared to the coin.
struct QuizApp {
  static let bundleId = "com.example.quiz"
  static let appAppleId: Int64 = 1_234_567_892
  static let sku = "QUIZ01"
  static let issuerId = "57246542-96fe-1a63-e053-0824d011072b"
  static let keyId = "QUIZKEY"

  static let pack = SampleProduct(productId: "quiz.pack", kind: .consumable, prices: [199, 229, 300, 600, 1_200])
  static let month = SampleProduct(
    productId: "quiz.club.month", kind: .autoRenewable, prices: [499, 549, 800, 1_500, 3_000])
  static let year = SampleProduct(
    productId: "quiz.club.year", kind: .autoRenewable, prices: [3_999, 4_499, 6_400, 12_000, 24_000])

  fileprivate(set) var transactions: [SampleTransaction] = []
  /// Rows of sales reports that no transaction makes.
  fileprivate(set) var rows: [[String: String]] = []
  private var serial: Int64 = 0

  /// A key that the same seed makes on every machine.
  static func key(seed: UInt64) throws -> P256.Signing.PrivateKey {
    var random = SampleRandom(seed: seed ^ 0x9012_AB1E)
    return try P256.Signing.PrivateKey(rawRepresentation: Data(random.bytes(32)))
  }

  fileprivate mutating func nextId(_ base: Int64) -> String {
    serial += 1
    return String(base + serial * 7_919)
  }
}

extension SampleCurrency {
  /// Where people pay in it, in Apple's three letters.
  fileprivate var storefront: String {
    switch self {
    case .usd: "USA"
    case .eur: "DEU"
    case .jpy: "JPN"
    case .kwd: "KWT"
    case .cny: "CHN"
    }
  }
}

extension ShopBuilder {
  /// Opens the second app: three weeks of honest sales, and of each difference that only prices and storefronts show one.
  ///
  /// Nothing is drawn: the first app is the same with or without it.
  mutating func openQuiz() {
    var app = QuizApp()
    let users = customers.all.indices.filter { !customers.all[$0].isTester }
    let americans = users.filter { customers.all[$0].currency == .usd }
    for number in 0..<42 {
      let moment = midnight(number / 2 + 1) + 10 * Timeline.hour + Int64(number) * Timeline.minute
      sell(QuizApp.pack, to: users[number * 7], at: moment, in: &app) { _, _ in }
    }
    // A price that was kept for some, and three for a price that three do not divide.
    for number in 0..<3 {
      sell(QuizApp.pack, to: americans[number], at: midnight(6 + number) + 15 * Timeline.hour, in: &app) {
        _, transaction in transaction.reportedPrice = 1_790
      }
      sell(QuizApp.pack, to: americans[number + 3], at: midnight(9 + number) + 15 * Timeline.hour, in: &app) {
        order, transaction in
        (order.quantity, order.amount) = (3, "4.99")
        (transaction.quantity, transaction.price) = (3, 4_990)
      }
    }
    // From the month to the year on the same day: Apple gives the whole month back, which is no refund of ours.
    let upgraded = midnight(14) + 9 * Timeline.hour
    sell(QuizApp.month, to: americans[7], at: upgraded, in: &app) { $1.isUpgraded = true }
    sell(QuizApp.year, to: americans[7], at: upgraded + Timeline.hour, in: &app) { $1.isUpgrade = true }
    app.rows.append([
      "Provider": "APPLE", "SKU": QuizApp.month.productId, "Product Type Identifier": "IAY", "Units": "-1",
      "Developer Proceeds": "3.49", "Customer Currency": "USD", "Country Code": "US", "Currency of Proceeds": "USD",
      "Customer Price": "-4.99", "Parent Identifier": QuizApp.sku, "Device": "iPhone",
      "Begin Date": String(Timeline.text(midnight(13) + 20 * Timeline.hour).prefix(10)),
    ])
    // A renewal that nobody booked, and that the reports have not either.
    let joined = midnight(41) + 9 * Timeline.hour
    let first = sell(QuizApp.month, to: americans[9], at: joined, in: &app) { _, _ in }
    var renewal = first
    renewal.transactionId = app.nextId(2_000_000_700_000_000)
    renewal.purchaseDate = joined + 30 * Timeline.day
    renewal.expiresDate = joined + 60 * Timeline.day
    renewal.transactionReason = .renewal
    renewal.isUnreported = true
    app.transactions.append(renewal)
    expect("renewal_without_order", on: renewal.transactionId)
    quiz = app
  }

  private func midnight(_ days: Int) -> Int64 { timeline.lastMidnight - Int64(days) * Timeline.day }

  @discardableResult
  private mutating func sell(
    _ product: SampleProduct, to user: Int, at moment: Int64, in app: inout QuizApp,
    change: (inout OrderRow, inout SampleTransaction) -> Void
  ) -> SampleTransaction {
    let customer = customers.all[user]
    let id = app.nextId(2_000_000_700_000_000)
    var transaction = SampleTransaction(
      transactionId: id, originalTransactionId: id, bundleId: QuizApp.bundleId, productId: product.productId,
      type: product.kind, quantity: 1, purchaseDate: moment + 20 * Timeline.second,
      originalPurchaseDate: moment + 20 * Timeline.second,
      price: customer.currency.milliunits(minorUnits: product.price(customer.currency)),
      currency: customer.currency.code, appAccountToken: customer.accountToken)
    transaction.storefront = customer.currency.storefront
    if product.kind == .autoRenewable {
      let days: Int64 = product.productId == QuizApp.year.productId ? 365 : 30
      transaction.expiresDate = transaction.purchaseDate + days * Timeline.day
      transaction.subscriptionGroupIdentifier = "quiz.club"
    }
    var order = OrderRow(
      orderId: app.nextId(8_100_000_000_000_000_000), userId: customer.userId, productId: product.productId,
      quantity: 1,
      amount: customer.currency.text(minorUnits: product.price(customer.currency)), currency: customer.currency.code,
      status: "verified", transactionId: id, accountToken: customer.accountToken, createdAt: moment,
      verifiedAt: moment + 22 * Timeline.second, updatedAt: moment + 25 * Timeline.second)
    order.bundleId = QuizApp.bundleId
    change(&order, &transaction)
    app.transactions.append(transaction)
    add(order)
    add(
      DeliveryRow(
        deliveryId: app.nextId(510_000_000_000_000_000), orderId: order.orderId, userId: order.userId,
        productId: order.productId, quantity: order.quantity, deliveredAt: moment + 25 * Timeline.second))
    return transaction
  }
}
