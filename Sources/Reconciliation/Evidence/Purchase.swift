/// The key of a purchase: one payment at Apple, which may have several transaction IDs.
public struct PurchaseKey: Hashable, Comparable, Sendable {
  public var environment: AppleEnvironment
  /// The transaction ID; for restores and subscription periods the original one.
  public var transactionId: Identifier
  /// Apple's ID of a subscription period, or else its product; empty for other purchases.
  public var period: Identifier
  public var purchasedAt: Instant?

  public init(
    environment: AppleEnvironment, transactionId: Identifier, period: Identifier = "", purchasedAt: Instant? = nil
  ) {
    (self.environment, self.transactionId) = (environment, transactionId)
    (self.period, self.purchasedAt) = (period, purchasedAt)
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(transactionId)
    if !period.isEmpty { hasher.combine(period) }
  }

  /// A hash of all fields (FNV-1a), the same in every process.
  public var fingerprint: UInt64 {
    var hash = transactionId.withUTF8 { BorrowedText($0).fingerprint }
    hash = environment.rawValue.utf8.reduce(hash, BorrowedText.fingerprint)
    hash = period.withUTF8 { $0.reduce(hash, BorrowedText.fingerprint) }
    guard let purchasedAt else { return hash }
    return withUnsafeBytes(of: purchasedAt.microseconds.littleEndian) { $0.reduce(hash, BorrowedText.fingerprint) }
  }

  public static func < (left: PurchaseKey, right: PurchaseKey) -> Bool {
    let order = left.transactionId.compareBytes(right.transactionId)
    if order != 0 { return order < 0 }
    if left.environment != right.environment { return left.environment < right.environment }
    if left.period != right.period { return left.period < right.period }
    return (left.purchasedAt?.microseconds ?? .min) < (right.purchasedAt?.microseconds ?? .min)
  }
}

extension TransactionContents {
  public var purchaseKey: PurchaseKey {
    if expiresDate != nil, let original = originalTransactionId {
      return PurchaseKey(
        environment: environment, transactionId: original.id, period: (webOrderLineItemId ?? productId).id,
        purchasedAt: webOrderLineItemId == nil ? purchaseDate : nil)
    }
    // A restore is of its original purchase.
    let restored = restoresAnotherID ? originalTransactionId : nil
    return PurchaseKey(environment: environment, transactionId: (restored ?? transactionId).id)
  }

  /// True for a restore whose original purchase has another transaction ID.
  public var restoresAnotherID: Bool {
    isRenewal != true && expiresDate == nil && originalTransactionId.map { $0 != transactionId } ?? false
  }

  /// The key of the subscription of a period, which no purchase has; nil for other purchases.
  public var subscriptionKey: PurchaseKey? {
    guard expiresDate != nil, let original = originalTransactionId else { return nil }
    return PurchaseKey(environment: environment, transactionId: original.id)
  }
}

extension TransactionRecord {
  public var purchaseKey: PurchaseKey { box.contents.purchaseKey }

  /// As that of the contents.
  public var subscriptionKey: PurchaseKey? { box.contents.subscriptionKey }

  /// The original transaction ID of a subscription's period in production; nil: it is none.
  public var productionSubscription: Identifier? {
    self.environment == .production ? subscriptionKey?.transactionId : nil
  }

  /// True for a renewal in production that Apple refunded in full.
  public var isRefundedRenewal: Bool {
    self.environment == .production && isReversed && isLaterPeriod && !isRefundDoubtful
  }

  public func isOf(_ id: Identifier?) -> Bool {
    guard let id else { return false }
    return self.transactionId == id || !self.otherIds.isEmpty && self.otherIds.contains(id)
  }

  /// The `bundleTransactionID` of a part of a subscription bundle: an order may state it, and no transaction has it.
  /// An ordinary period, which has a price or is its own original, has the ID of its line item in the same field.
  public var bundleTransactionId: Identifier? {
    guard self.expiresDate != nil, self.priceMilliunits ?? 0 == 0, hasOtherOriginal else { return nil }
    return self.webOrderLineItemId
  }

  /// True if the ID is of this purchase: one of its transaction IDs, or the `bundleTransactionID` of its bundle.
  func isStated(by id: Identifier) -> Bool { isOf(id) || bundleTransactionId == id }

  /// True if an order that states the ID may mean it: the purchase, or its subscription.
  public func isReferred(by id: Identifier) -> Bool { isStated(by: id) || self.originalTransactionId == id }

  public var smallestId: Identifier { self.otherIds.first.map { min($0, self.transactionId) } ?? self.transactionId }

  /// The ID in reports: the stated one if it is of this purchase, else the smallest.
  public func shownId(stated: Identifier?) -> Identifier {
    if let stated, isOf(stated) { return stated }
    return smallestId
  }

  public var keys: [TransactionKey] {
    self.otherIds.isEmpty
      ? [key] : [key] + self.otherIds.map { TransactionKey(environment: self.environment, transactionId: $0) }
  }

  var isKnownByRestoresAlone: Bool { restoresAnotherID && !isOf(self.originalTransactionId) }

  /// Gives each transaction the newest facts about any ID of its purchase. `records` are complete.
  /// A restore after the full refund of its original purchase is a purchase of its own, or restores the last such
  /// purchase of the original, if that one was not refunded in full before.
  public static func foldingPurchases(
    _ records: [TransactionRecord], hiding isHidden: (Instant) -> Bool = { _ in false }
  ) -> [TransactionRecord] {
    var folded = separatingRepurchases(records)
    for places in Dictionary(grouping: folded.indices, by: { folded[$0].purchaseKey }).values where places.count > 1 {
      let purchase = PurchaseFold(places.map { folded[$0] }, hiding: isHidden)
      for place in places { folded[place] = purchase.applied(to: folded[place]) }
    }
    return folded
  }

  private static func separatingRepurchases(_ records: [TransactionRecord]) -> [TransactionRecord] {
    var refunds: [PurchaseKey: Instant] = [:]
    for record in records where record.isReversed && !record.restoresAnotherID {
      refunds[record.purchaseKey] = record.revocation?.date
    }
    if refunds.isEmpty { return records }
    let restores = records.indices.compactMap { place -> (place: Int, bought: Instant)? in
      guard records[place].restoresAnotherID, let refunded = refunds[records[place].purchaseKey],
        let bought = records[place].purchaseDate, refunded < bought
      else { return nil }
      return (place, bought)
    }
    var separated = records
    // By original purchase, the latest one of its own.
    var repurchases: [PurchaseKey: TransactionRecord] = [:]
    let sequence = restores.sorted { ($0.bought, records[$0.place].key) < ($1.bought, records[$1.place].key) }
    for (place, bought) in sequence {
      let original = records[place].purchaseKey
      if let last = repurchases[original], let date = last.purchaseDate,
        !last.isReversed || last.revocation.map({ $0.date >= bought }) ?? true
      {
        separated[place] = records[place].asTransaction(of: last.transactionId, on: date)
      } else {
        separated[place] = records[place].asTransaction(of: records[place].transactionId, on: bought)
        repurchases[original] = separated[place]
      }
    }
    return separated
  }
}

private struct PurchaseFold {
  private let ids: [Identifier]
  private var period: TransactionRecord.Contents
  private var revocation: Revocation?
  private var withdrawnDate: Instant?
  private var statedDate: Instant?
  private var checkedAt: Instant?
  private var isContradictory = false
  private var price: (milliunits: Int64, currency: String?)?

  init(_ records: [TransactionRecord], hiding isHidden: (Instant) -> Bool) {
    // Of the contents, because a key path of a generic field is looked up at run time.
    ids = Set(records.map { $0.box.contents.transactionId }).sorted()
    let bySignature = records.sorted {
      let (left, right) = ($0.box, $1.box)
      return (left.contents.signedDate, left.contents.transactionId)
        < (right.contents.signedDate, right.contents.transactionId)
    }
    period = bySignature[0].contents
    for record in bySignature.dropFirst() { period.take(newer: record) }
    // The first period has the ID that all periods of the subscription go back to.
    if period.isRenewal == nil, let original = period.originalTransactionId, ids.contains(original) {
      period.isRenewal = false
    }
    for record in bySignature {
      isContradictory = isContradictory || record.isContradictory
      checkedAt = [checkedAt, record.checkedAt].compactMap(\.self).max()
      if !record.restoresAnotherID, let milliunits = record.priceMilliunits { price = (milliunits, record.currency) }
    }
    // Of statements of one instant, a refund comes last and so counts.
    let byRefund = records.compactMap { record in record.revocationStatedDate.map { (record: record, statedDate: $0) } }
      .sorted {
        ($0.statedDate, $0.record.revocation == nil ? 0 : 1, $0.record.transactionId)
          < ($1.statedDate, $1.record.revocation == nil ? 0 : 1, $1.record.transactionId)
      }
    for (record, date) in byRefund { takeRefund(of: record, statedOn: date, hiding: isHidden) }
  }

  private mutating func takeRefund(
    of record: TransactionRecord, statedOn date: Instant, hiding isHidden: (Instant) -> Bool
  ) {
    defer { statedDate = date }
    // Receipts date an upgrade as a cancellation, and may state the upgrade under another ID.
    if record.isRefundShareUnknown, period.isUpgraded == true { return }
    if let refund = record.revocation {
      var newer = refund.statesShare ? refund.completed(by: revocation) : refund.yielding(to: revocation)
      newer.date = min(newer.date, refund.date)
      revocation = newer
      withdrawnDate = record.revocationWithdrawnDate
      return
    }
    guard let known = revocation else {
      withdrawnDate = record.revocationWithdrawnDate ?? withdrawnDate
      return
    }
    // verifyReceipt shows no partial refund of another channel.
    guard known.isFull || record.channel != .verifyReceipt else { return }
    withdrawnDate = withdrawnDate ?? record.revocationWithdrawnDate ?? date
    if !isHidden(date) { revocation = nil }
  }

  func applied(to record: TransactionRecord) -> TransactionRecord {
    var contents = record.contents
    if record.expiresDate != nil {
      contents = period
      contents.transactionId = record.transactionId
      contents.ownership = record.ownership
      if case .stated = record.appAccountToken { contents.appAccountToken = record.appAccountToken }
    } else if let price {
      (contents.priceMilliunits, contents.currency) = (price.milliunits, price.currency)
    }
    (contents.revocation, contents.revocationWithdrawnDate) = (revocation, withdrawnDate)
    (contents.revocationStatedDate, contents.checkedAt) = (statedDate, checkedAt)
    contents.isContradictory = isContradictory
    contents.otherIds = ids.filter { $0 != record.transactionId }
    return TransactionRecord(contents)
  }
}

extension TransactionRecord.Contents {
  fileprivate mutating func take(newer: TransactionRecord) {
    if newer.productId != productId { isContradictory = true }
    productId = newer.productId
    webOrderLineItemId = newer.webOrderLineItemId ?? webOrderLineItemId
    bundleId = newer.bundleId ?? bundleId
    productType = newer.productType ?? productType
    quantity = newer.quantity ?? quantity
    purchaseDate = newer.purchaseDate ?? purchaseDate
    originalPurchaseDate = newer.originalPurchaseDate ?? originalPurchaseDate
    expiresDate = newer.expiresDate ?? expiresDate
    subscriptionExpiresDate = [subscriptionExpiresDate, newer.subscriptionExpiresDate].compactMap(\.self).max()
    if let date = newer.subscriptionStatusDate, subscriptionStatusDate.map({ $0 <= date }) ?? true {
      (subscriptionStatus, subscriptionStatusDate) = (newer.subscriptionStatus, date)
    }
    renewalDate = newer.renewalDate ?? renewalDate
    priceMilliunits = newer.priceMilliunits ?? priceMilliunits
    currency = newer.currency ?? currency
    if case .stated = newer.appAccountToken { appAccountToken = newer.appAccountToken }
    isRenewal = newer.isRenewal ?? isRenewal
    hasOffer = newer.hasOffer ?? hasOffer
    isUpgraded = newer.isUpgraded ?? isUpgraded
    refundRequest = newer.refundRequest ?? refundRequest
    details.take(newer.details)
    (channel, signedDate) = (newer.channel, newer.signedDate)
    firstSignedDate = [firstSignedDate, newer.firstSignedDate].compactMap(\.self).min()
  }
}
