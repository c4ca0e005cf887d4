import Reconciliation

extension VerifiedReceipt {
  /// Reads the answer to a genuine receipt in either of its shapes: the unified one with `receipt.in_app`,
  /// `latest_receipt_info` and `pending_renewal_info`, or the flat one for old transaction receipts, whose `receipt` is the
  /// transaction itself (Apple: App Store Receipts, "responseBody").
  ///
  /// Nil when there is no receipt in it, which contradicts the status. `unreadable` counts listed items that are no
  /// transactions.
  static func decode(
    _ answer: JSONFields, status: Int, host: AppleHost, receivedAt: Instant
  ) -> (receipt: VerifiedReceipt, unreadable: Int)? {
    guard let receipt = answer.object("receipt") else { return nil }
    // Only the flat shape names a transaction in the receipt itself.
    let inReceipt = receipt.has("transaction_id") ? [receipt] : receipt.objects("in_app")
    let latest = answer.objects("latest_receipt_info") + answer.objects("latest_expired_receipt_info")

    var items = TransactionItems()
    for item in inReceipt { items.add(item, isLatest: false) }
    for item in latest { items.add(item, isLatest: true) }

    let environment = environment(of: answer, receipt: receipt) ?? host.environment
    let bundleId = receipt.text("bundle_id") ?? receipt.text("bid") ?? latest.lazy.compactMap { $0.text("bid") }.first
    let requestDate = receipt.instant("request_date_ms") ?? receivedAt
    let grace = gracePeriodEnds(answer.objects("pending_renewal_info"))
    let facts = items.inOrder.map { item in
      var fact = item.fact(environment: environment, requestDate: requestDate)
      fact.bundleId = bundleId
      fact.gracePeriodExpiresDate = fact.originalTransactionId.flatMap { grace[$0] }
      return fact
    }
    let decoded = VerifiedReceipt(
      environment: environment, bundleId: bundleId, facts: facts, requestDate: requestDate, status: status,
      creationDate: receipt.instant("receipt_creation_date_ms"), gracePeriodEnds: grace)
    return (decoded, items.unreadable)
  }

  /// `environment`, else what `receipt_type` tells: `Production`, `ProductionVPP`, `ProductionSandbox`,
  /// `ProductionVPPSandbox`.
  private static func environment(of answer: JSONFields, receipt: JSONFields) -> AppleEnvironment? {
    if let environment = answer.text("environment").flatMap(AppleEnvironment.init(rawValue:)) { return environment }
    guard let type = receipt.text("receipt_type"), type.hasPrefix("Production") else { return nil }
    return type.hasSuffix("Sandbox") ? .sandbox : .production
  }

  private static func gracePeriodEnds(_ renewals: [JSONFields]) -> [String: Instant] {
    var ends: [String: Instant] = [:]
    for renewal in renewals {
      guard let id = renewal.text("original_transaction_id"),
        let end = renewal.instant("grace_period_expires_date_ms")
      else { continue }
      ends[id] = max(ends[id] ?? end, end)
    }
    return ends
  }
}

/// The items of one answer, those with the same transaction id as one.
private struct TransactionItems {
  private var items: [TransactionItem] = []
  private var positions: [String: Int] = [:]
  private(set) var unreadable = 0

  var inOrder: [TransactionItem] { items }

  mutating func add(_ fields: JSONFields, isLatest: Bool) {
    guard let id = fields.text("transaction_id"), let productId = fields.text("product_id") else {
      unreadable += 1
      return
    }
    if let position = positions[id] {
      // The latest information is the newer one, and wins where it says something.
      items[position].fields = items[position].fields.overlaid(by: fields)
      items[position].productId = productId
      items[position].isLatest = items[position].isLatest || isLatest
    } else {
      positions[id] = items.count
      items.append(TransactionItem(transactionId: id, productId: productId, fields: fields, isLatest: isLatest))
    }
  }
}

/// One transaction as `in_app`, `latest_receipt_info` or a flat receipt show it.
private struct TransactionItem {
  var transactionId: String
  var productId: String
  var fields: JSONFields
  /// Whether it was listed among the latest information, where only subscriptions are.
  var isLatest: Bool

  /// Only subscriptions have an expiry or a line item of a web order.
  private var isSubscription: Bool { expiresDate != nil || fields.has("web_order_line_item_id") }

  /// In flat receipts `expires_date` itself is milliseconds; in unified ones it is a date for people, and no number.
  private var expiresDate: Instant? { fields.instant("expires_date_ms") ?? fields.instant("expires_date") }

  func fact(environment: AppleEnvironment, requestDate: Instant) -> TransactionFact {
    var fact = TransactionFact(
      environment: environment, transactionId: transactionId, productId: productId, channel: .verifyReceipt,
      signedDate: requestDate)
    fact.originalTransactionId = fields.text("original_transaction_id")
    fact.webOrderLineItemId = fields.text("web_order_line_item_id")
    fact.productType = productType
    fact.quantity = fields.integer("quantity").flatMap { $0 > 0 ? Int32(exactly: $0) : nil }
    fact.purchaseDate = fields.instant("purchase_date_ms")
    fact.originalPurchaseDate = fields.instant("original_purchase_date_ms")
    fact.expiresDate = expiresDate
    fact.revocation = revocation
    if let token = fields.text("app_account_token") { fact.appAccountToken = .says(token) }
    fact.ownership = fields.text("in_app_ownership_type").flatMap(Ownership.init(rawValue:))
    fact.isRenewal = isRenewal(fact)
    fact.hasOffer = hasOffer
    fact.isUpgraded = fields.flag("is_upgraded")
    return fact
  }

  private var productType: ProductType? {
    expiresDate != nil && (fields.has("web_order_line_item_id") || isLatest) ? .autoRenewable : nil
  }

  /// Consumables never show a refund, and only subscriptions can be told from them: elsewhere no date says nothing.
  private var revocation: Statement<Revocation?> {
    if let date = fields.instant("cancellation_date_ms") {
      let reason = fields.integer("cancellation_reason").flatMap(Int32.init(exactly:))
      return .says(Revocation(date: date, reason: reason))
    }
    // A cancellation whose date cannot be read must not be taken for none.
    if fields.has("cancellation_date") || fields.has("cancellation_date_ms") { return .silent }
    return isSubscription ? .says(nil) : .silent
  }

  /// A restored purchase also has two ids and two dates, but only a subscription renews.
  private func isRenewal(_ fact: TransactionFact) -> Bool? {
    guard isSubscription else { return false }
    guard let original = fact.originalTransactionId, let purchased = fact.purchaseDate,
      let originallyPurchased = fact.originalPurchaseDate
    else { return nil }
    return original != transactionId && purchased > originallyPurchased
  }

  private var hasOffer: Bool? {
    if fields.has("promotional_offer_id") || fields.has("offer_code_ref_name") { return true }
    let flags = [fields.flag("is_trial_period"), fields.flag("is_in_intro_offer_period")].compactMap(\.self)
    return flags.isEmpty ? nil : flags.contains(true)
  }
}

extension JSONFields {
  /// Milliseconds since the epoch, as a text or a number. Zero and less are no dates of Apple's.
  fileprivate func instant(_ key: String) -> Instant? {
    integer(key).flatMap { $0 > 0 ? Instant(milliseconds: $0) : nil }
  }
}
