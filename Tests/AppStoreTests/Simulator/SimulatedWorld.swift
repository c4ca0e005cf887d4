import Foundation

/// Worlds for the simulator: apps, their transactions, and receipts.
enum SimulatedWorld {
  /// 2026-11-18T00:00:00Z.
  static let start: Int64 = 1_795_017_600_000
  static let hour: Int64 = 3_600_000
  static let day = 24 * hour
  static let token = "7e3fb204-2b3c-4f4e-8a3e-7f3c9c1d2b11"
  static let subscription = "Auto-Renewable Subscription"

  /// A transaction, with further fields.
  static func sold(
    _ id: String, _ product: String = "gems.100", _ type: String = "Consumable", at date: Int64, _ more: String = "",
    environment: String = "Production", app: String = "com.example.game"
  ) -> String {
    #"{"transactionId":"\#(id)","environment":"\#(environment)","bundleId":"\#(app)","productId":"\#(product)","#
      + #""type":"\#(type)","purchaseDate":\#(date)\#(more.isEmpty ? "" : ",")\#(more)}"#
  }

  /// A receipt with transactions, and further fields.
  static func receipt(
    _ payload: String, _ ids: [String], _ more: String = "", kind: String = "app", environment: String = "Production",
    app: String = "com.example.game"
  ) -> String {
    #"{"payload":"\#(payload)","kind":"\#(kind)","environment":"\#(environment)","bundleId":"\#(app)","#
      + #""transactions":[\#(ids.map { "\"\($0)\"" }.joined(separator: ","))]\#(more.isEmpty ? "" : ",")\#(more)}"#
  }

  /// A payload that begins like a PKCS#7 receipt.
  static func payload(_ number: UInt8) -> String {
    let content: [UInt8] = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02, 0xA0, 0x03, 0x02, 0x01]
    return Data([0x30, 0x10] + content + [number]).base64EncodedString()
  }

  // MARK: Receipts for `verifyReceipt`

  static let game = payload(1)
  static let sandboxGame = payload(2)
  static let accountGone = payload(3)
  static let withSecret = payload(4)
  static let oldConsumable = payload(5)
  static let oldSubscription = payload(6)
  static let forged = payload(99)
  static let many = (UInt8(100)..<160).map(payload)

  static func ofReceipts(refund: String = #""revocationDate":null"#) -> String {
    let token = #""appAccountToken":"\#(token)""#
    let transactions = [
      sold(
        "1", at: 1_795_000_000_000,
        #""quantity":2,"price":990,"currency":"USD",\#(token),"revocationDate":1795100000000,"finished":false"#),
      sold("2", "gems.500", at: 1_795_000_001_000, #""finished":true"#),
      sold("3", "remove.ads", "Non-Consumable", at: 1_795_000_002_000, #"\#(refund),"revocationReason":1"#),
      sold(
        "4", "gold.monthly", subscription, at: 1_790_000_000_000,
        #""expiresDate":1792600000000,"isTrialPeriod":true,"webOrderLineItemId":"904",\#(token)"#),
      sold(
        "5", "gold.monthly", subscription, at: 1_792_600_000_000,
        #""originalTransactionId":"4","originalPurchaseDate":1790000000000,"expiresDate":1795200000000,"#
          + #""webOrderLineItemId":"905""#), sold("1", at: 1_795_000_000_000, environment: "Sandbox"),
    ]
    let receipts =
      [
        receipt(game, ["1", "2", "3", "4", "unknown"]), receipt(sandboxGame, ["1"], environment: "Sandbox"),
        receipt(accountGone, [], #""status":21010"#), receipt(withSecret, [], app: "com.example.secret"),
        receipt(oldConsumable, ["1"], kind: "transaction"), receipt(oldSubscription, ["4"], kind: "transaction"),
      ] + many.map { receipt($0, ["3"]) }
    return #"{"apps":[{"bundleId":"com.example.game","appAppleId":1234567890},"#
      + #"{"bundleId":"com.example.secret","sharedSecret":"open sesame"}],"transactions":["#
      + transactions.joined(separator: ",") + #"],"receipts":[\#(receipts.joined(separator: ","))]}"#
  }

  // MARK: Every kind of transaction

  /// - Parameter app: further fields of the app.
  static func ofEveryKind(
    _ more: String = "", receipts: String = "", app: String = "", now: Int64 = start, and others: [String] = []
  ) -> String {
    let transactions = [
      sold(
        "1", at: start - hour,
        #""quantity":2,"price":1990,"currency":"EUR","orderId":"MINVOICE1","storefront":"DEU","storefrontId":"143443","#
          + #""appTransactionId":"704897469903783919","consumptionRequestDate":\#(start - 60_000),"#
          + #""consumptionRequestReason":"FULFILLMENT_ISSUE","refundDeclinedDate":\#(start - 30_000)"#),
      sold(
        "2", "remove.ads", "Non-Consumable", at: start - 2 * hour,
        #""orderId":"MINVOICE1","revocationDate":\#(start - hour),"revocationReason":1"#),
      sold(
        "3", "gold.monthly", subscription, at: start - 9 * hour,
        #""expiresDate":\#(start - 5 * hour),"isUpgraded":true,"webOrderLineItemId":"903","customer":"anna""#),
      sold(
        "4", "platinum.monthly", subscription, at: start - 5 * hour,
        #""expiresDate":\#(start - hour),"isUpgrade":true,"webOrderLineItemId":"904","subscriptionStatus":1,"#
          + #""renewalDate":\#(start + 72 * hour),"billingPlanType":"MONTHLY","previousOriginalTransactionId":"3","#
          + #""customer":"anna","commitmentInfo":{"billingPeriodNumber":1,"totalBillingPeriods":12}"#),
      sold(
        "5", "silver.monthly", subscription, at: start - 4 * hour,
        #""expiresDate":\#(start + hour),"redeemsOffer":true,"offerType":3,"offerIdentifier":"AUTUMN","#
          + #""webOrderLineItemId":"905""#),
      sold(
        "6", "bundle", at: start - 3 * hour,
        #""price":4000,"currency":"USD","advancedCommerceInfo":{"items":[{"SKU":"a","price":1000,"refunds":["#
          + #"{"refundAmount":1000,"refundDate":\#(start - hour),"refundType":"FULL"}]},{"SKU":"b","price":3000}]}"#),
      sold(
        "7", "remove.ads", "Non-Consumable", at: start - hour / 2,
        #""originalTransactionId":"2","originalPurchaseDate":\#(start - 2 * hour)"#),
    ]
    return #"{"apps":[{"bundleId":"com.example.game","appAppleId":1234567890\#(app)}],"now":\#(now),"#
      + #""receipts":[\#(receipts)],"transactions":[\#((transactions + others).joined(separator: ","))]\#(more)}"#
  }

  // MARK: A customer's history

  /// - Parameter count: consumables, one per hour; the second is refunded after one day and reversed after two.
  static func ofOneCustomer(
    _ count: Int = 3, app: String = "", price: Int = 1_990, and others: [String] = [], more: String = ""
  ) -> String {
    let gems = (1...count).map { number in
      let refund =
        #","revocationDate":\#(start + day),"revocationReason":1,"revocationType":"REFUND_FULL","#
        + #""refundReversedDate":\#(start + 2 * day)"#
      return sold(
        "\(1_000 + number)", at: start - Int64(count - number) * hour,
        #""price":\#(price),"currency":"USD","appAccountToken":"\#(token)","finished":true\#(number == 2 ? refund : "")"#
      )
    }
    let strangers = [sold("5", at: start, environment: "Sandbox"), sold("6", at: start, app: "com.example.other")]
    return #"{"apps":[{"bundleId":"com.example.game","appAppleId":1234567890\#(app)}],"receipts":[],"now":\#(start),"#
      + #""transactions":[\#((gems + strangers + others).joined(separator: ","))]\#(more)}"#
  }
}
