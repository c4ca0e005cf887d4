import Crypto
import Foundation
import Reconciliation
import SampleShops

/// Apple's sales reports of a sample shop, with a few differences of each kind from the shop's records.
enum SampleReports {
  static let issuerId = "57246542-96fe-1a63-e053-0824d011072a"
  static let keyId = "SAMPLE"
  static let sku = "GAME01"

  static func key(seed: UInt64) throws -> P256.Signing.PrivateKey {
    var random = SampleRandom(seed: seed ^ 0x5A1E_5C0D)
    return try P256.Signing.PrivateKey(rawRepresentation: Data(random.bytes(32)))
  }

  static func connect(key: P256.Signing.PrivateKey, rows: [[String: String]]) -> [String: Any] {
    [
      "vendor": "80012345", "issuerId": issuerId, "keyId": keyId, "publicKey": key.publicKey.pemRepresentation,
      "rows": rows,
    ]
  }

  static func row(_ product: String, type: String, units: String, price: String, parent: String = sku, on day: String)
    -> [String: String]
  {
    [
      "Provider": "APPLE", "SKU": product, "Product Type Identifier": type, "Units": units, "Customer Price": price,
      "Developer Proceeds": price == "0" ? "0" : "0.70", "Customer Currency": "USD", "Country Code": "US",
      "Currency of Proceeds": "USD", "Parent Identifier": parent, "Device": "iPhone", "Begin Date": day,
    ]
  }
}

extension SampleShop {
  /// Apple's transactions, in the format of the world file. Nothing here is random.
  var appleTransactions: [[String: Any]] {
    let unbooked = Set(known.findings.filter { $0.kind == .renewalWithoutOrder }.map(\.subject))
    let records = known.world.transactions + known.world.unseen
    let purchases = Set(records.lazy.filter { !$0.restoresAnotherID }.map(\.purchaseKey))
    let sales = zip(records, known.world.appleTransactions(name: name, isFinished: false)).enumerated()
    return sales.map { index, sold in
      var (record, transaction) = sold
      // The account token identifies the customer.
      transaction["customer"] = nil
      // Some sales are reported one or two days late, some refunds later.
      let bought = record.purchaseDate ?? timeline.asOf
      if index % 23 == 7 { transaction["reportedDate"] = (bought + .days(1)).milliseconds }
      if index % 61 == 3 { transaction["reportedDate"] = (bought + .days(2)).milliseconds }
      if let refunded = record.revocation?.date, index.isMultiple(of: 2) {
        transaction["refundReportedDate"] = (refunded + .days(3)).milliseconds
      }
      // A restore is not a sale. Its original was a sale, which may be known from the restore only. Unbooked renewals
      // are missing, too.
      let isRestore = record.isRenewal != true && record.originalPurchaseDate != record.purchaseDate
      let isAlone = record.isRestore && (!record.restoresAnotherID || !purchases.contains(record.purchaseKey))
      if isRestore, isAlone, let first = record.originalPurchaseDate {
        transaction["reportedDate"] = first.milliseconds
      } else if isRestore || unbooked.contains(record.transactionId) {
        transaction["isUnreported"] = true
      }
      return transaction.merging(reported[record.transactionId] ?? [:]) { $1 }
    } + lostOrders
  }

  /// Payments that never reached the shop and exist only in reports.
  private var lostOrders: [[String: Any]] {
    [(days: 9, quantity: 12), (days: 16, quantity: 1), (days: 17, quantity: 2)].enumerated().map { position, lost in
      let ware = SampleProduct.gems[position]
      return [
        "transactionId": "29999999999900\(position)", "environment": "Production", "bundleId": ShopFixture.bundle,
        "productId": ware.productId.text, "type": ware.type.rawValue, "quantity": lost.quantity, "currency": "USD",
        "purchaseDate": timeline.midnight(lost.days).milliseconds, "isReportOnly": true,
        "price": ware.price("USD").milliunits * Int64(lost.quantity),
      ]
    }
  }

  /// Rows without a purchase in the shop: another app, restores, trials, a partial refund, a new product.
  mutating func addOddRows() {
    let odd = [
      ("cards.pack", "IA1", "25", "0.99", "CARDS01"), ("gems.secret", "IA1", "4", "1.99", SampleReports.sku),
      (SampleProduct.heroes[0].productId.text, "IA3", "9", "0", SampleReports.sku),
      (SampleProduct.vip.productId.text, "IAY", "3", "0", SampleReports.sku),
      (SampleProduct.gems[0].productId.text, "IA1", "-1", "-0.40", SampleReports.sku),
      (SampleProduct.gems[2].productId.text, "IA1", "-2", "-9.99", SampleReports.sku),
      (SampleProduct.gems[1].productId.text, "IA1", "0", "-4.99", SampleReports.sku),
      (SampleReports.sku, "7F", "310", "0", ""),
    ]
    reportRows += odd.enumerated().map { position, row in
      SampleReports.row(
        row.0, type: row.1, units: row.2, price: row.3, parent: row.4, on: timeline.midnight(8 + position).day)
    }
  }
}
