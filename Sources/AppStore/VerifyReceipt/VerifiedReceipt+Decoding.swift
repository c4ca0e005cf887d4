import Reconciliation

/// Content that an answer of verifyReceipt lacks.
struct MissingContent: Error, Hashable {
  /// For the operator, in words that go on after the status.
  var detail: String

  init(_ detail: String) { self.detail = detail }
}

extension VerifiedReceipt {
  /// Reads the answer to a genuine receipt in either of its shapes: the unified one with `receipt.in_app`,
  /// `latest_receipt_info` and `pending_renewal_info`, or the flat one for old transaction receipts, whose `receipt` is the
  /// transaction itself (Apple: App Store Receipts, "responseBody").
  ///
  /// An answer without the fields that carry its content says nothing about the receipt, and is no answer.
  static func decode(
    _ answer: JSONFields, status: Int, host: AppleHost, receivedAt: Instant
  ) throws(MissingContent) -> VerifiedReceipt {
    guard let receipt = answer.object("receipt") else { throw MissingContent("without a receipt") }
    // Only the flat shape names a transaction in the receipt itself.
    let isFlat = receipt.has("transaction_id")
    var inReceipt = [receipt]
    if !isFlat {
      guard let list = receipt.objectList("in_app") else { throw MissingContent("without a list in_app") }
      guard receipt.text("bundle_id") != nil else { throw MissingContent("without bundle_id") }
      inReceipt = list
    }
    for key in ["latest_receipt_info", "latest_expired_receipt_info", "pending_renewal_info"] where answer.has(key) {
      guard answer.object(key) != nil || answer.objectList(key) != nil else {
        throw MissingContent("whose \(key) is no list")
      }
    }
    let latest =
      (answer.objects("latest_receipt_info") ?? []) + (answer.objects("latest_expired_receipt_info") ?? [])

    var items = TransactionItems(areFlat: isFlat)
    for item in inReceipt { items.add(item, isLatest: false) }
    for item in latest { items.add(item, isLatest: true) }
    if items.unreadable > 0 {
      throw MissingContent("with \(items.unreadable) purchases without transaction_id or product_id")
    }

    var decoded = VerifiedReceipt(
      environment: environment(of: answer, receipt: receipt) ?? host.environment,
      bundleId: receipt.text("bundle_id") ?? receipt.text("bid") ?? latest.lazy.compactMap { $0.text("bid") }.first,
      facts: [], requestDate: receipt.date("request_date").instant ?? receivedAt, status: status)
    if decoded.environment != host.environment {
      decoded.contradictions.append(.environment(answered: decoded.environment))
    }
    decoded.creationDate = receipt.date("receipt_creation_date").instant
    if isFlat { decoded.ownTransactionId = receipt.text("transaction_id") }
    var renewals = renewals(answer.objects("pending_renewal_info") ?? [])
    // The flat shape tells of its one subscription beside the receipt, or by the status alone.
    if isFlat, status == 21006 || answer.has("auto_renew_status"),
      let id = receipt.text("original_transaction_id")
    {
      let isBeingCollected = answer.flag("is_in_billing_retry_period") == true
      renewals[id, default: PendingRenewal()].isBeingCollected = isBeingCollected
    }
    decoded.gracePeriodEnds = renewals.compactMapValues(\.gracePeriodEnd)
    for item in items.inOrder {
      if let field = item.unreadableDate {
        decoded.contradictions.append(.unreadableDate(transactionId: item.transactionId, field: field))
        continue
      }
      var fact = item.fact(environment: decoded.environment, requestDate: decoded.requestDate)
      fact.bundleId = decoded.bundleId
      fact.gracePeriodExpiresDate = fact.originalTransactionId.flatMap { renewals[$0]?.gracePeriodEnd }
      decoded.facts.append(fact)
    }
    decoded.tellSubscriptionStatuses(renewals)
    return decoded
  }

  /// Says of every period how its subscription stood when Apple answered, where the answer tells of its renewal.
  private mutating func tellSubscriptionStatuses(_ renewals: [String: PendingRenewal]) {
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

  /// `environment`, else what `receipt_type` tells: `Production`, `ProductionVPP`, `ProductionSandbox`,
  /// `ProductionVPPSandbox`.
  private static func environment(of answer: JSONFields, receipt: JSONFields) -> AppleEnvironment? {
    if let environment = answer.text("environment").flatMap(AppleEnvironment.init(rawValue:)) { return environment }
    guard let type = receipt.text("receipt_type"), type.hasPrefix("Production") else { return nil }
    return type.hasSuffix("Sandbox") ? .sandbox : .production
  }

  /// What is to become of subscriptions, by original transaction id.
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

/// An entry of `pending_renewal_info`.
private struct PendingRenewal {
  var gracePeriodEnd: Instant?
  /// Whether Apple still tries to collect the money.
  var isBeingCollected = false

  /// How the subscription stands whose newest period is `latest`.
  func status(latest: TransactionFact, at date: Instant) -> SubscriptionState {
    if case .says(.some(let revocation)) = latest.revocation, revocation.isFull { return .revoked }
    if let expiry = latest.expiresDate, expiry > date { return .active }
    if let gracePeriodEnd, gracePeriodEnd > date { return .gracePeriod }
    return isBeingCollected ? .billingRetry : .expired
  }
}

/// The items of one answer, those with the same transaction id as one.
private struct TransactionItems {
  let areFlat: Bool
  private var items: [TransactionItem] = []
  private var positions: [String: Int] = [:]
  private(set) var unreadable = 0

  init(areFlat: Bool) { self.areFlat = areFlat }

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
      items.append(
        TransactionItem(
          transactionId: id, productId: productId, fields: fields, isFlat: areFlat, isLatest: isLatest))
    }
  }
}

/// One transaction as `in_app`, `latest_receipt_info` or a flat receipt show it.
private struct TransactionItem {
  var transactionId: String
  var productId: String
  var fields: JSONFields
  /// Whether it is of the flat shape, which has no place for a refund.
  var isFlat: Bool
  /// Whether it was listed among the latest information, where only subscriptions are.
  var isLatest: Bool

  /// Only subscriptions have an expiry or a line item of a web order.
  private var isSubscription: Bool { expiresDate != nil || fields.has("web_order_line_item_id") }

  private var expiresDate: Instant? { fields.date("expires_date").instant }

  /// The first of its dates that is there and cannot be read: what it says may be the opposite of what is left.
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
    fact.hasNoPlaceForRefunds = isFlat && revocation == .silent
    if let token = fields.text("app_account_token") { fact.appAccountToken = .says(token) }
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

  /// Consumables never show a refund, and only subscriptions can be told from them: elsewhere no date says nothing.
  private var revocation: Statement<Revocation?> {
    guard let date = fields.date("cancellation_date").instant else {
      return isSubscription && !isFlat ? .says(nil) : .silent
    }
    // Of a plan that was replaced by a larger one it is the date of that, and what was left of the period was given back.
    let type = fields.flag("is_upgraded") == true ? "REFUND_PRORATED" : nil
    return .says(Revocation(date: date, type: type, reason: fields.integer32("cancellation_reason")))
  }

  /// True, or nil: a win-back or a one-time offer has no field.
  private var hasOffer: Bool? {
    let isOffer = fields.has("promotional_offer_id") || fields.has("offer_code_ref_name")
    return isOffer || ["is_trial_period", "is_in_intro_offer_period"].contains { fields.flag($0) == true } ? true : nil
  }
}

/// One of verifyReceipt's dates.
private enum DateField: Hashable {
  case absent
  case read(Instant)
  /// There, but in no form that is known here.
  case unreadable

  var instant: Instant? {
    guard case .read(let instant) = self else { return nil }
    return instant
  }
}

extension JSONFields {
  /// A date by the first of its forms that can be read: milliseconds, or the text for people; in flat receipts
  /// `expires_date` itself is milliseconds. Zero is no date of Apple's.
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
