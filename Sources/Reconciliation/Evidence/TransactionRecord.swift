/// The state of one transaction: the fold of all evidence about it, ordered by Apple's date.
/// One reference holds the contents because records are passed on for every order. Inlinable across modules.
@dynamicMemberLookup
public struct TransactionRecord: Hashable, Sendable {
  @usableFromInline var box: Box

  @usableFromInline final class Box: Sendable {
    @usableFromInline let contents: Contents

    @usableFromInline init(_ contents: Contents) { self.contents = contents }
  }

  public typealias Contents = TransactionContents<Identifier, String>

  public init(_ contents: Contents) { box = Box(contents) }

  public init(environment: AppleEnvironment, transactionId: Identifier, productId: Identifier) {
    self.init(Contents(environment: environment, transactionId: transactionId, productId: productId))
  }

  /// Hot code calls it in closures, `{ $0.revocation }`, because a key path through it is built at run time.
  @inlinable public subscript<Value>(dynamicMember field: KeyPath<Contents, Value>) -> Value {
    box.contents[keyPath: field]
  }

  /// Callers that change many fields edit `Contents` first, because each change here copies all fields.
  @inlinable public subscript<Value>(dynamicMember field: WritableKeyPath<Contents, Value>) -> Value {
    get { box.contents[keyPath: field] }
    set {
      var contents = box.contents
      contents[keyPath: field] = newValue
      box = Box(contents)
    }
  }

  public static func == (left: TransactionRecord, right: TransactionRecord) -> Bool {
    left.box === right.box || left.box.contents == right.box.contents
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(box.contents) }

  /// Folds the evidence about one transaction. The order of arrival has no effect.
  /// Each field has the value of the newest fact that states it. Receipts only fill gaps in signed data. Refunds and
  /// withdrawals with a hidden date, after the as-of, have not happened. A refund with a hidden withdrawal stays, with
  /// that date, because Apple may have withdrawn it before the as-of.
  public static func folding(
    _ facts: [TransactionFact], hiding isHidden: (Instant) -> Bool = { _ in false }
  ) -> TransactionRecord? {
    let ordered = facts.sorted(by: isStatedBefore)
    guard let newest = ordered.last else { return nil }
    var contents = Contents(
      environment: newest.environment, transactionId: Identifier(newest.transactionId),
      productId: Identifier(newest.productId))
    contents.take(ordered, hiding: isHidden)
    return TransactionRecord(contents)
  }

  /// Returns the record before a hidden refund or withdrawal, from all its evidence.
  /// Other fields stay, and a withdrawal without evidence, because evidence may be deleted (`evidence.retention`).
  public func removingHiddenRefunds(_ facts: [TransactionFact], hiding isHidden: (Instant) -> Bool) -> TransactionRecord
  {
    var (contents, folded) = (box.contents, box.contents)
    (folded.revocation, folded.revocationWithdrawnDate, folded.isUpgraded) = (nil, nil, nil)
    folded.refundRequest = nil
    let refunds = folded.take(facts.sorted(by: TransactionRecord.isStatedBefore), hiding: isHidden)
    (contents.revocation, contents.revocationWithdrawnDate) = (refunds.revocation, refunds.withdrawnDate)
    contents.refundRequest = refunds.request
    if refunds.revocation != nil, refunds.withdrawnDate == nil, !refunds.isReplaced, self.revocation == nil {
      contents.revocationWithdrawnDate = self.revocationWithdrawnDate
    }
    return TransactionRecord(contents)
  }

  /// Returns the refund that was in force until Apple reversed it, from all evidence; nil: none was reversed, or a later
  /// one is in force.
  public func withdrawnRevocation(_ facts: [TransactionFact]) -> Revocation? {
    guard self.revocation == nil, let date = self.revocationWithdrawnDate else { return nil }
    return removingHiddenRefunds(facts) { $0 >= date }.revocation
  }

  /// Adds newer facts without reading the older ones again; nil: all facts must be folded again.
  /// Reasons: a fact is not newer, a receipt states another purchase, or silence may undo an earlier revocation.
  public func adding(_ facts: [TransactionFact]) -> TransactionRecord? {
    guard self.revocation == nil, self.revocationWithdrawnDate == nil,
      facts.allSatisfy({ $0.signedDate > self.signedDate })
    else { return nil }
    let ordered = facts.sorted(by: TransactionRecord.isStatedBefore)
    var contents = box.contents
    guard ordered.allSatisfy({ $0.productId == contents.productId.text }),
      ordered.allSatisfy({ $0.isSigned || contents.agreesOnPurchase(statedBy: $0) })
    else { return nil }
    contents.take(ordered) { _ in false }
    return TransactionRecord(contents)
  }

  /// Ties are broken by refund, channel and content, so that the fold depends on the set of facts alone.
  /// Of facts of one instant, a refund comes last and so counts, as between the IDs of one purchase.
  private static func isStatedBefore(_ left: TransactionFact, _ right: TransactionFact) -> Bool {
    if left.signedDate != right.signedDate { return left.signedDate < right.signedDate }
    if left.statesRefund != right.statesRefund { return right.statesRefund }
    if left.channel.weight != right.channel.weight { return left.channel.weight < right.channel.weight }
    return left.tieBreakers.lexicographicallyPrecedes(right.tieBreakers)
  }

  /// True for a production transaction that Apple has not revoked in full.
  public var isLive: Bool { self.environment == .production && !isReversed }

  public var isReversed: Bool { self.revocation?.isFull ?? false }

  /// True if a source has stated whether it was revoked.
  public var isRevocationKnown: Bool { self.revocationStatedDate != nil }

  /// True if Apple has stated since `date` whether it was revoked; nil: at any time.
  public func hasRevocationStatement(since date: Instant?) -> Bool {
    guard let statedDate = self.revocationStatedDate else { return false }
    return date.map { statedDate >= $0 } ?? true
  }

  /// True if Apple withdrew the refund after the as-of, so that its state at the as-of is unknown.
  public var isRefundDoubtful: Bool { self.revocation != nil && self.revocationWithdrawnDate != nil }

  /// True if only receipts state the refund in force, so that its share is unknown.
  public var isRefundShareUnknown: Bool { self.revocation.map { $0.isUnsigned && !$0.statesShare } ?? false }

  /// True if a source has stated whether it was refunded, and how much of it.
  public var isRefundKnown: Bool { self.isRevocationKnown && !isRefundShareUnknown }

  public var isFamilyShared: Bool { self.ownership == .familyShared || self.revocation?.type == "FAMILY_REVOKE" }

  var hasOtherOriginal: Bool {
    self.originalTransactionId.map { $0 != self.transactionId } ?? false
  }

  /// True for a later period of a subscription: Apple's reason, or else two IDs and an expiry.
  /// The original purchase date is not used, because receipts often date it later.
  public var isLaterPeriod: Bool { self.isRenewal ?? (hasOtherOriginal && self.expiresDate != nil) }

  /// When Apple first signed a renewal, ahead of its purchase date; nil: no renewal.
  var renewalSignedDate: Instant? { isLaterPeriod ? self.firstSignedDate ?? self.signedDate : nil }

  /// True if it restores an earlier purchase: no money moved.
  /// Apple states the reason `PURCHASE` for restores of non-consumables, too, so that reason decides nothing.
  public var isRestore: Bool {
    guard self.isRenewal != true, self.expiresDate == nil else { return false }
    if hasOtherOriginal { return true }
    guard self.isRenewal == nil, let purchased = self.purchaseDate, let first = self.originalPurchaseDate else {
      return false
    }
    return first < purchased
  }

  /// True if it is a purchase of the product. The product ID of several Advanced Commerce items is their SKUs, with commas.
  public func isPurchase(of product: Identifier) -> Bool {
    self.productId == product
      // Nearly every ID is of one product, and need not be split.
      || self.productId.count > product.count && self.productId.withUTF8 { $0.contains(UInt8(ascii: ",")) }
        && Self.items(self.productId.text).contains(product.text[...])
  }

  static func items(_ productId: String) -> [Substring] { productId.split(separator: ",") }

  /// True for a period of a subscription that ended while the subscription goes on; nil: Apple has not said whether it does.
  func isPastPeriodOfActiveSubscription(at asOf: Instant) -> Bool? {
    guard let end = self.expiresDate, let newest = self.subscriptionExpiresDate, end <= asOf, asOf < newest else {
      return false
    }
    return self.subscriptionStatus?.givesAccess
  }

  /// A copy with another original transaction; with its own ID, it is no restore.
  func asTransaction(of original: Identifier, on date: Instant) -> TransactionRecord {
    var contents = box.contents
    (contents.originalTransactionId, contents.originalPurchaseDate) = (original, date)
    return TransactionRecord(contents)
  }

  public var contents: Contents { box.contents }

  public var restoresAnotherID: Bool { box.contents.restoresAnotherID }

  /// When money moved: the purchase date, or for a restore that of the original purchase.
  public var saleDate: Instant? { isRestore ? self.originalPurchaseDate ?? self.purchaseDate : self.purchaseDate }

  public var country: Country? { Country(storefront: self.details.storefront) }
}

extension TransactionRecord.Contents {
  @discardableResult
  fileprivate mutating func take(_ ordered: [TransactionFact], hiding isHidden: (Instant) -> Bool) -> RefundHistory {
    var refunds = RefundHistory(
      revocation: revocation, withdrawnDate: revocationWithdrawnDate, request: refundRequest)
    for fact in ordered {
      take(fact)
      refunds.take(fact, isUpgraded: isUpgraded ?? false, hiding: isHidden)
    }
    (revocation, revocationWithdrawnDate) = (refunds.revocation, refunds.withdrawnDate)
    refundRequest = refunds.request
    // Unsigned facts come first because receipts date a restore themselves, cannot state every offer, and list a part
    // of a subscription bundle or of an Advanced Commerce purchase under a product and IDs of its own.
    let signed = ordered.filter(\.isSigned)
    for fact in ordered where !fact.isSigned { foldPurchase(fact) }
    for fact in signed { foldPurchase(fact) }
    let decisive = signed.isEmpty ? ordered : signed
    if decisive.contains(where: { $0.productId != productId.text }) { isContradictory = true }
    return refunds
  }

  private mutating func foldPurchase(_ fact: TransactionFact) {
    productId = Identifier(fact.productId)
    originalTransactionId = fact.originalTransactionId.map { Identifier($0) } ?? originalTransactionId
    // Receipts write 0 for no ID.
    webOrderLineItemId = fact.webOrderLineItemId.flatMap { $0 == "0" ? nil : Identifier($0) } ?? webOrderLineItemId
    purchaseDate = fact.purchaseDate ?? purchaseDate
    originalPurchaseDate = fact.originalPurchaseDate ?? originalPurchaseDate
    isRenewal = fact.statedRenewal ?? isRenewal
    hasOffer = fact.statedOffer ?? hasOffer
  }

  fileprivate func agreesOnPurchase(statedBy fact: TransactionFact) -> Bool {
    func isSame<Value: Equatable>(_ known: Value?, _ stated: Value?) -> Bool {
      known == nil || stated == nil || known == stated
    }
    let period = fact.webOrderLineItemId.flatMap { $0 == "0" ? nil : $0 }
    return isSame(purchaseDate, fact.purchaseDate) && isSame(originalPurchaseDate, fact.originalPurchaseDate)
      && isSame(hasOffer, fact.statedOffer) && isSame(originalTransactionId?.text, fact.originalTransactionId)
      && isSame(webOrderLineItemId?.text, period)
  }

  private mutating func take(_ fact: TransactionFact) {
    if let bundle = fact.bundleId {
      if let known = bundleId, known != bundle { isContradictory = true }
      bundleId = bundle
    }
    productType = fact.productType ?? productType
    quantity = fact.quantity ?? quantity
    expiresDate = fact.expiresDate ?? expiresDate
    subscriptionExpiresDate = [
      subscriptionExpiresDate, fact.expiresDate, fact.gracePeriodExpiresDate, fact.renewalDate,
    ].compactMap { $0 }.max()
    if let status = fact.subscriptionStatus {
      subscriptionStatus = status
      subscriptionStatusDate = fact.signedDate
    }
    renewalDate = fact.renewalDate ?? renewalDate
    details.take(fact.details)
    priceMilliunits = fact.priceMilliunits ?? priceMilliunits
    currency = fact.currency ?? currency
    ownership = fact.ownership ?? ownership
    isUpgraded = fact.isUpgraded ?? isUpgraded
    if case .stated = fact.appAccountToken { appAccountToken = fact.appAccountToken }
    if fact.revocation != .absent { revocationStatedDate = fact.signedDate }
    channel = fact.channel
    signedDate = fact.signedDate
    firstSignedDate = firstSignedDate ?? fact.signedDate
    if fact.channel == .notification { notifiedDate = notifiedDate ?? fact.signedDate }
  }
}

private struct RefundHistory {
  private(set) var revocation: Revocation?
  private(set) var withdrawnDate: Instant?
  /// The newest refund, hidden ones included. Later facts complete it or withdraw it.
  private var newest: Revocation?
  private var channel: EvidenceChannel?
  /// True if a hidden refund followed the one in force. Later withdrawals concern the hidden one.
  private(set) var isReplaced = false
  private(set) var request: RefundRequest?

  init(revocation: Revocation?, withdrawnDate: Instant?, request: RefundRequest?) {
    (self.revocation, self.withdrawnDate, newest) = (revocation, withdrawnDate, revocation)
    self.request = request
  }

  mutating func take(_ fact: TransactionFact, isUpgraded: Bool, hiding isHidden: (Instant) -> Bool) {
    if let notice = fact.refundRequest, !isHidden(fact.signedDate) {
      request = RefundRequest.after(request, notice, at: fact.signedDate)
    }
    // The silence of verifyReceipt withdraws only a refund that verifyReceipt has shown.
    let withdrawsByAbsence = fact.channel == .verifyReceipt && channel == .verifyReceipt
    switch fact.revocation {
    case .stated(.some) where !fact.isSigned && isUpgraded:
      // Receipts date an upgrade as a cancellation. It is no refund, even if an earlier receipt showed no upgrade.
      if let newest, newest.isUnsigned { withdraw(at: fact.signedDate, isStated: true, isHidden) }
    case .stated(.some(var stated)):
      stated.isUnsigned = !fact.isSigned
      // Channels date one refund differently: it keeps its first date, so that a later date does not hide it.
      let refund = fact.isSigned ? stated.completed(by: newest) : stated.yielding(to: newest)
      newest = refund
      if isHidden(refund.date) {
        isReplaced = true
        return
      }
      (revocation, withdrawnDate, channel, isReplaced) = (refund, nil, fact.channel, false)
    case .stated(.none):
      // verifyReceipt does not show a partial refund of another channel.
      if fact.isSigned || withdrawsByAbsence || newest?.isFull ?? true {
        withdraw(at: fact.signedDate, isStated: channel != nil || fact.reversesRefund, isHidden)
      }
    case .absent:
      // verifyReceipt never shows refunds of consumables, and old receipts have no field for refunds.
      if withdrawsByAbsence, !fact.cannotStateRefunds { withdraw(at: fact.signedDate, isStated: true, isHidden) }
    }
  }

  private mutating func withdraw(at date: Instant, isStated: Bool, _ isHidden: (Instant) -> Bool) {
    newest = nil
    if isHidden(date) {
      if revocation != nil, !isReplaced { withdrawnDate = withdrawnDate ?? date }
      return
    }
    revocation = nil
    if isStated { withdrawnDate = withdrawnDate ?? date }
  }
}

extension EvidenceChannel {
  /// Of facts of one instant, the channel with more fields comes last.
  fileprivate var weight: Int {
    switch self {
    case .verifyReceipt: 0
    case .offline: 1
    case .notification: 2
    case .serverApi: 3
    }
  }
}

extension TransactionRecord {
  /// Apple's customer price; nil: unknown, or no whole number of minor units.
  public var price: Money? {
    guard let milliunits = self.priceMilliunits, let code = self.currency, let currency = Currency(code: code)
    else { return nil }
    return Money(milliunits: milliunits, currency: currency)
  }

  /// The amount that remains after a refund; nil: the refunded share is unknown.
  func left(of paid: Money) -> Money? {
    guard let revocation = self.revocation else { return paid }
    if revocation.isFull { return Money(minorUnits: 0, currency: paid.currency) }
    return revocation.percentage.map {
      Money(minorUnits: paid.minorUnits - paid.share(milliPercent: $0).minorUnits, currency: paid.currency)
    }
  }
}
