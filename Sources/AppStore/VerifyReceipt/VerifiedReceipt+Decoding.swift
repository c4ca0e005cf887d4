import Reconciliation

extension VerifiedReceipt {
  /// Decodes the answer to a genuine receipt. It has the unified form, or the flat form of old transaction receipts,
  /// whose `receipt` is the transaction (Apple: App Store Receipts, "responseBody"). An answer without its content
  /// fields is no answer.
  static func decode(
    _ answer: JSONFields, status: Int, host: AppleHost, receivedAt: Instant
  ) throws(Silence) -> VerifiedReceipt {
    guard let receipt = answer.object("receipt") else { throw .appleError("status \(status) without a receipt") }
    // Only the flat form has a transaction ID in the receipt itself.
    let isFlat = receipt.has("transaction_id")
    var inReceipt = [receipt]
    if !isFlat {
      guard let list = receipt.objectList("in_app") else { throw .appleError("status \(status) without a list in_app") }
      guard receipt.text("bundle_id") != nil else { throw .appleError("status \(status) without bundle_id") }
      inReceipt = list
    }
    for key in ["latest_receipt_info", "latest_expired_receipt_info", "pending_renewal_info"] where answer.has(key) {
      guard answer.object(key) != nil || answer.objectList(key) != nil else {
        throw .appleError("status \(status) whose \(key) is no list")
      }
    }
    let latest =
      (answer.objects("latest_receipt_info") ?? []) + (answer.objects("latest_expired_receipt_info") ?? [])

    var items = TransactionItems(areFlat: isFlat)
    for item in inReceipt { items.add(item, isLatest: false) }
    for item in latest { items.add(item, isLatest: true) }
    if items.unreadable > 0 {
      throw .appleError("status \(status) with \(items.unreadable) purchases without transaction_id or product_id")
    }

    // The flat form states no environment: it is the host's, because a host redirects the receipts of the other one
    // (21007, 21008). An undocumented value is no answer, because it may stand for purchases without money.
    let stated = [answer.text("environment"), receipt.text("receipt_type")].compactMap(\.self)
    let environment = stated.lazy.compactMap(AppleEnvironment.init(receiptType:)).first
    guard stated.isEmpty || environment != nil else {
      throw .appleError("status \(status) of an undocumented environment")
    }
    var decoded = VerifiedReceipt(
      environment: environment ?? host.environment,
      bundleId: receipt.text("bundle_id") ?? receipt.text("bid") ?? latest.lazy.compactMap { $0.text("bid") }.first,
      facts: [], requestDate: receipt.date("request_date").instant ?? receivedAt, status: status)
    if decoded.environment != host.environment {
      decoded.contradictions.append(.environment(answered: decoded.environment))
    }
    decoded.creationDate = receipt.date("receipt_creation_date").instant
    if isFlat { decoded.ownTransactionId = receipt.text("transaction_id") }
    var renewals = renewals(answer.objects("pending_renewal_info") ?? [])
    // The flat form has its subscription beside the receipt, or shows its expiry by the status alone.
    if isFlat, status == 21006 || answer.has("auto_renew_status"),
      let id = receipt.text("original_transaction_id")
    {
      let isBeingCollected = answer.flag("is_in_billing_retry_period") == true
      renewals[id, default: PendingRenewal()].isBeingCollected = isBeingCollected
    }
    for item in items.items {
      if let field = item.unreadableDate {
        decoded.contradictions.append(.unreadableDate(transactionId: item.transactionId, field: field))
        continue
      }
      var fact = item.fact(environment: decoded.environment, requestDate: decoded.requestDate)
      fact.bundleId = decoded.bundleId
      fact.gracePeriodExpiresDate = fact.originalTransactionId.flatMap { renewals[$0]?.gracePeriodEnd }
      decoded.facts.append(fact)
    }
    decoded.addSubscriptionStatuses(renewals)
    return decoded
  }

  /// Sets the subscription status of every period whose renewal is in the answer.
  private mutating func addSubscriptionStatuses(_ renewals: [String: PendingRenewal]) {
    var newest: [String: TransactionFact] = [:]
    for fact in facts where fact.productType == .autoRenewable {
      guard let id = fact.originalTransactionId, renewals[id] != nil, let expiry = fact.expiresDate else { continue }
      if let known = newest[id]?.expiresDate, known >= expiry { continue }
      newest[id] = fact
    }
    for index in facts.indices where facts[index].productType == .autoRenewable {
      guard let id = facts[index].originalTransactionId, let latest = newest[id] else { continue }
      facts[index].subscriptionStatus = renewals[id]?.status(latest: latest, at: requestDate)
    }
  }

  private static func renewals(_ items: [JSONFields]) -> [String: PendingRenewal] {
    var renewals: [String: PendingRenewal] = [:]
    for item in items {
      guard let id = item.text("original_transaction_id") else { continue }
      let end = item.date("grace_period_expires_date").instant
      var renewal = renewals[id] ?? PendingRenewal()
      renewal.gracePeriodEnd = [renewal.gracePeriodEnd, end].compactMap(\.self).max()
      renewal.isBeingCollected = renewal.isBeingCollected || item.flag("is_in_billing_retry_period") == true
      renewals[id] = renewal
    }
    return renewals
  }
}

private struct PendingRenewal {
  var gracePeriodEnd: Instant?
  var isBeingCollected = false

  func status(latest: TransactionFact, at date: Instant) -> SubscriptionState {
    // For an upgraded plan it is the date of the upgrade.
    if case .stated(.some(let revocation)) = latest.revocation, revocation.isFull, latest.isUpgraded != true {
      return .revoked
    }
    if let expiry = latest.expiresDate, expiry > date { return .active }
    if let gracePeriodEnd, gracePeriodEnd > date { return .gracePeriod }
    return isBeingCollected ? .billingRetry : .expired
  }
}

/// The items of one answer, merged by transaction ID.
private struct TransactionItems {
  let areFlat: Bool
  private(set) var items: [TransactionItem] = []
  private var positions: [String: Int] = [:]
  private(set) var unreadable = 0

  init(areFlat: Bool) { self.areFlat = areFlat }

  mutating func add(_ fields: JSONFields, isLatest: Bool) {
    guard let id = fields.text("transaction_id"), let productId = fields.text("product_id") else {
      unreadable += 1
      return
    }
    if let position = positions[id] {
      // The latest information is newer, so its non-empty fields win.
      items[position].fields = items[position].fields.overlaid(by: fields)
      items[position].productId = productId
      items[position].isLatest = items[position].isLatest || isLatest
    } else {
      positions[id] = items.count
      items.append(
        TransactionItem(transactionId: id, productId: productId, fields: fields, isFlat: areFlat, isLatest: isLatest))
    }
  }
}

/// One transaction from `in_app`, `latest_receipt_info` or a flat receipt.
private struct TransactionItem {
  var transactionId: String
  var productId: String
  var fields: JSONFields
  /// True for the flat form, which has no field for a refund.
  var isFlat: Bool
  /// True if it is in the latest information, which lists only subscriptions.
  var isLatest: Bool

  // Only subscriptions have an expiry date or a web order line item ID.
  private var isSubscription: Bool { expiresDate != nil || fields.has("web_order_line_item_id") }

  private var expiresDate: Instant? { fields.date("expires_date").instant }

  /// The first unreadable date, because an unreadable date may contradict the rest.
  var unreadableDate: String? {
    ["cancellation_date", "expires_date", "purchase_date", "original_purchase_date"].first {
      fields.date($0) == .unreadable
    }
  }

  func fact(environment: AppleEnvironment, requestDate: Instant) -> TransactionFact {
    var fact = TransactionFact(
      environment: environment, transactionId: transactionId, productId: productId, channel: .verifyReceipt,
      signedDate: requestDate)
    fact.originalTransactionId = fields.text("original_transaction_id")
    fact.webOrderLineItemId = fields.text("web_order_line_item_id")
    fact.productType = productType
    fact.quantity = fields.integer32("quantity").flatMap { $0 > 0 ? $0 : nil }
    fact.purchaseDate = fields.date("purchase_date").instant
    fact.originalPurchaseDate = fields.date("original_purchase_date").instant
    fact.expiresDate = expiresDate
    fact.revocation = revocation
    fact.cannotStateRefunds = isFlat && revocation == .absent
    if let token = fields.text("app_account_token") { fact.appAccountToken = .stated(token) }
    fact.ownership = fields.text("in_app_ownership_type").flatMap(Ownership.init(rawValue:))
    fact.hasOffer = hasOffer
    fact.isUpgraded = fields.flag("is_upgraded")
    fact.details.subscriptionGroupIdentifier = fields.text("subscription_group_identifier")
    fact.details.offerIdentifier = fields.text("promotional_offer_id") ?? fields.text("offer_code_ref_name")
    return fact
  }

  private var productType: ProductType? {
    expiresDate != nil && (fields.has("web_order_line_item_id") || isLatest) ? .autoRenewable : nil
  }

  // A receipt never shows the refund of a consumable, so a missing date is a statement only for subscriptions.
  private var revocation: Statement<Revocation?> {
    guard let date = fields.date("cancellation_date").instant else {
      return isSubscription && !isFlat ? .stated(nil) : .absent
    }
    return .stated(Revocation(date: date, reason: fields.integer32("cancellation_reason")))
  }

  // Never false, because a win-back or one-time offer has no field.
  private var hasOffer: Bool? {
    let isOffer = fields.has("promotional_offer_id") || fields.has("offer_code_ref_name")
    return isOffer || ["is_trial_period", "is_in_intro_offer_period"].contains { fields.flag($0) == true } ? true : nil
  }
}

private enum DateField: Hashable {
  case absent
  case read(Instant)
  case unreadable

  var instant: Instant? { if case .read(let instant) = self { instant } else { nil } }
}

extension JSONFields {
  /// Parses the first readable form: milliseconds or text. In flat receipts `expires_date` itself is milliseconds.
  /// Apple never sends zero as a date.
  fileprivate func date(_ name: String) -> DateField {
    for key in [name + "_ms", name] {
      if let number = integer(key) {
        if number == 0 { continue }
        return number > 0 ? (Instant(appleMilliseconds: number).map(DateField.read) ?? .unreadable) : .unreadable
      }
      if let instant = text(key).flatMap({ Instant(verifyReceiptText: $0) ?? Instant(rfc3339: $0) }) {
        return .read(instant)
      }
    }
    let isSilent = [name + "_ms", name, name + "_pst"].allSatisfy { !has($0) || integer($0) == 0 }
    return isSilent ? .absent : .unreadable
  }
}
