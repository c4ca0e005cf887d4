import Crypto
import Foundation

/// What Apple's sales reports make of a sample shop, a little of everything that sets them apart from what the shop knows.
struct SampleReports: Encodable {
  static let vendor = "80012345"
  static let issuerId = "57246542-96fe-1a63-e053-0824d011072a"
  static let keyId = "SAMPLE"
  static let sku = "GAME01"

  var vendor = SampleReports.vendor
  var issuerId = SampleReports.issuerId
  var keyId = SampleReports.keyId
  var publicKey: String
  var rows: [[String: String]] = []

  /// - Parameter key: what the shop's downloads are signed with.
  init(key: P256.Signing.PrivateKey) { publicKey = key.publicKey.pemRepresentation }

  /// A key that the same seed makes on every machine.
  static func key(seed: UInt64) throws -> P256.Signing.PrivateKey {
    var random = SampleRandom(seed: seed ^ 0x5A1E_5C0D)
    return try P256.Signing.PrivateKey(rawRepresentation: Data(random.bytes(32)))
  }
}

extension ShopBuilder {
  /// The world with Apple's side of the tie-out. Nothing is drawn: the shop is the same with or without it.
  func reportedWorld(key: P256.Signing.PrivateKey, quizKey: P256.Signing.PrivateKey) -> SampleWorld {
    var world = world
    for index in world.apps.indices where world.apps[index].bundleId == Catalogue.bundleId {
      world.apps[index].sku = SampleReports.sku
    }
    for index in world.transactions.indices { move(&world.transactions[index], index) }
    world.transactions += lostOrders
    var reports = SampleReports(key: key)
    reports.rows = oddRows
    if let quiz {
      world.apps.append(
        SampleWorld.App(
          bundleId: QuizApp.bundleId, appAppleId: QuizApp.appAppleId, sku: QuizApp.sku, issuerId: QuizApp.issuerId,
          keyId: QuizApp.keyId, publicKey: quizKey.publicKey.pemRepresentation))
      world.transactions += quiz.transactions
      reports.rows += quiz.rows
    }
    world.connect = reports
    return world
  }

  /// Some sales are counted a day or two late, some refunds later still, and renewals that nobody booked not at all.
  private func move(_ transaction: inout SampleTransaction, _ index: Int) {
    if index % 23 == 7 { transaction.reportedDate = transaction.purchaseDate + Timeline.day }
    if index % 61 == 3 { transaction.reportedDate = transaction.purchaseDate + 2 * Timeline.day }
    if let refunded = transaction.revocationDate, index.isMultiple(of: 2) {
      transaction.refundReportedDate = refunded + 3 * Timeline.day
    }
    if unowned[transaction.transactionId] == "renewal_without_order" { transaction.isUnreported = true }
  }

  /// Payments that never reached the shop: reports alone know of them.
  private var lostOrders: [SampleTransaction] {
    [(days: 9, quantity: 12), (days: 16, quantity: 1), (days: 17, quantity: 2)].enumerated().map { position, lost in
      let product = Catalogue.gems[position % Catalogue.gems.count]
      let date = timeline.lastMidnight - Int64(lost.days) * Timeline.day
      var transaction = SampleTransaction(
        transactionId: "29999999999900\(position)", originalTransactionId: "29999999999900\(position)",
        productId: product.productId, type: product.kind, quantity: Int64(lost.quantity), purchaseDate: date,
        originalPurchaseDate: date, price: 0, currency: SampleCurrency.usd.code)
      transaction.price = SampleCurrency.usd.milliunits(minorUnits: product.price(.usd) * Int64(lost.quantity))
      transaction.isReportOnly = true
      return transaction
    }
  }

  /// Rows that no purchase of the shop makes: another app's, restored purchases, trials, a part of a refund, a new product.
  private var oddRows: [[String: String]] {
    [
      ("cards.pack", "IA1", "25", "0.99", "CARDS01"), ("gems.secret", "IA1", "4", "1.99", SampleReports.sku),
      (Catalogue.heroes[0].productId, "IA3", "9", "0", SampleReports.sku),
      (Catalogue.vip.productId, "IAY", "3", "0", SampleReports.sku),
      (Catalogue.gems[0].productId, "IA1", "-1", "-0.40", SampleReports.sku),
      (Catalogue.gems[2].productId, "IA1", "-2", "-9.99", SampleReports.sku),
      (Catalogue.gems[1].productId, "IA1", "0", "-4.99", SampleReports.sku), (SampleReports.sku, "7F", "310", "0", ""),
    ].enumerated().map { position, row in
      let isFree = row.3 == "0"
      return [
        "Provider": "APPLE", "SKU": row.0, "Product Type Identifier": row.1, "Units": row.2,
        "Developer Proceeds": isFree ? "0" : "0.70", "Customer Currency": "USD", "Country Code": "US",
        "Currency of Proceeds": "USD", "Customer Price": row.3, "Parent Identifier": row.4, "Device": "iPhone",
        "Begin Date": String(Timeline.text(timeline.lastMidnight - Int64(8 + position) * Timeline.day).prefix(10)),
      ]
    }
  }
}
