import Foundation

/// The answer for a valid receipt, in Apple's two formats (App Store Receipts, "responseBody"). Like Apple's answer, it
/// has no prices, no finished consumables in app receipts, no refunds of consumables, and tokens in latest info only.
struct ReceiptContent {
  var receipt: World.Receipt
  var world: World
  var now: Int64
  var horizon: Int64

  var unified: [String: Any] {
    let shown = listed.filter { $0.type != .consumable || $0.finished != true }
    let created = receipt.creationDate ?? shown.map(\.purchaseDate).max() ?? now
    var app: [String: Any] = [
      "receipt_type": receipt.environment == .production ? "Production" : "ProductionSandbox",
      "bundle_id": receipt.bundleId, "application_version": "1", "original_application_version": "1.0",
      "adam_id": appAppleId, "app_item_id": appAppleId, "version_external_identifier": 0, "download_id": 0,
      "in_app": shown.map { item($0, isLatest: false) },
    ]
    app.merge(dates("receipt_creation_date", created)) { $1 }
    app.merge(dates("request_date", now)) { $1 }
    app.merge(dates("original_purchase_date", shown.map(\.purchaseDate).min() ?? now)) { $1 }

    var answer: [String: Any] = ["status": 0, "environment": receipt.environment.rawValue, "receipt": app]
    let subscriptions = shown.filter { $0.type == .autoRenewable }
    guard !subscriptions.isEmpty else { return answer }
    var seen: Set<String> = []
    let originals = subscriptions.filter { seen.insert($0.originalId).inserted }
    answer["latest_receipt"] = receipt.payload
    answer["latest_receipt_info"] = originals.flatMap(family).map { item($0, isLatest: true) }
    answer["pending_renewal_info"] = originals.map(renewal)
    return answer
  }

  private var listed: [World.Transaction] {
    world.transactions(of: receipt).filter { $0.exists(by: horizon) }.map { $0.changed(by: horizon) }
  }

  private func renewal(_ original: World.Transaction) -> [String: Any] {
    let newest = newest(of: original)
    var fields: [String: Any] = [
      "original_transaction_id": original.originalId, "product_id": newest.productId,
      "auto_renew_product_id": newest.productId, "auto_renew_status": isExpired(newest) ? "0" : "1",
    ]
    if let isRetrying = newest.isInBillingRetryPeriod { fields["is_in_billing_retry_period"] = isRetrying ? "1" : "0" }
    return fields.merging(dates("grace_period_expires_date", newest.gracePeriodExpiresDate)) { $1 }
  }

  /// For old transaction receipts; nil if the world does not know the transaction.
  var flat: [String: Any]? {
    guard let transaction = listed.first else { return nil }
    var answer: [String: Any] = ["status": receipt.status ?? 0, "receipt": flatItem(transaction)]
    guard transaction.type == .autoRenewable else { return answer }
    let newest = newest(of: transaction)
    answer["auto_renew_product_id"] = newest.productId
    answer["auto_renew_status"] = isExpired(newest) ? 0 : 1
    if isExpired(newest) {
      answer["status"] = 21_006
      answer["latest_expired_receipt_info"] = flatItem(newest)
    } else {
      answer["latest_receipt"] = receipt.payload
      answer["latest_receipt_info"] = flatItem(newest)
    }
    return answer
  }

  private var appAppleId: Int64 {
    receipt.environment == .production ? world.app(bundleId: receipt.bundleId)?.appAppleId ?? 0 : 0
  }

  private func family(_ transaction: World.Transaction) -> [World.Transaction] {
    world.family(of: transaction).filter { $0.exists(by: horizon) }.map { $0.changed(by: horizon) }
  }

  private func newest(of transaction: World.Transaction) -> World.Transaction {
    family(transaction).max { ($0.expiresDate ?? 0) < ($1.expiresDate ?? 0) } ?? transaction
  }

  private func isExpired(_ transaction: World.Transaction) -> Bool {
    transaction.expiresDate.map { $0 < now } ?? false
  }

  private func item(_ transaction: World.Transaction, isLatest: Bool) -> [String: Any] {
    var fields = common(transaction)
    fields["is_trial_period"] = "\(transaction.isTrialPeriod ?? false)"
    fields.merge(dates("expires_date", transaction.expiresDate)) { $1 }
    if transaction.offerType == 2 { fields["promotional_offer_id"] = "promotion" }
    guard isLatest else { return fields }
    fields["in_app_ownership_type"] = transaction.inAppOwnershipType ?? "PURCHASED"
    fields["app_account_token"] = transaction.appAccountToken
    if transaction.offerType == 3 { fields["offer_code_ref_name"] = "offer code" }
    if transaction.isUpgraded == true { fields["is_upgraded"] = "true" }
    return fields
  }

  private func flatItem(_ transaction: World.Transaction) -> [String: Any] {
    var fields = common(transaction)
    fields["bid"] = receipt.bundleId
    fields["bvrs"] = "1"
    fields["item_id"] = "\(appAppleId)"
    fields["unique_identifier"] = "0000000000000000000000000000000000000000"
    // This format has milliseconds, unlike the unified format.
    fields["expires_date"] = transaction.expiresDate.map(String.init)
    return fields
  }

  private func common(_ transaction: World.Transaction) -> [String: Any] {
    var fields: [String: Any] = [
      "quantity": "\(transaction.quantity ?? 1)", "product_id": transaction.productId,
      "transaction_id": transaction.transactionId, "original_transaction_id": transaction.originalId,
    ]
    fields.merge(dates("purchase_date", transaction.purchaseDate)) { $1 }
    fields.merge(dates("original_purchase_date", transaction.originalPurchaseDate ?? transaction.purchaseDate)) { $1 }
    fields["web_order_line_item_id"] = transaction.webOrderLineItemId
    if transaction.type == .autoRenewable {
      fields["is_in_intro_offer_period"] = "\(transaction.offerType == 1)"
    }
    if let date = transaction.cancellationDate(at: horizon) {
      fields.merge(dates("cancellation_date", date)) { $1 }
      fields["cancellation_reason"] = "\(transaction.revocationReason ?? 0)"
    }
    return fields
  }

  /// A date in three forms: UTC and California text, and milliseconds as text.
  private func dates(_ name: String, _ milliseconds: Int64?) -> [String: Any] {
    guard let milliseconds else { return [:] }
    let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    let number = ["\(name)_ms": "\(milliseconds)"]
    let texts = [
      name: "\(date.formatted(Self.utc)) Etc/GMT",
      "\(name)_pst": "\(date.formatted(Self.pacific)) America/Los_Angeles",
    ]
    switch receipt.dates ?? .all {
    case .all: return texts.merging(number) { $1 }
    case .text: return texts
    case .milliseconds: return number
    }
  }

  private static let utc = style(.gmt)
  private static let pacific = style(TimeZone(identifier: "America/Los_Angeles") ?? .gmt)

  private static func style(_ timeZone: TimeZone) -> Date.ISO8601FormatStyle {
    Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: timeZone)
      .year().month().day().time(includingFractionalSeconds: false)
  }
}
