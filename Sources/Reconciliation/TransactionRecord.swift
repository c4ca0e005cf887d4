/// What is known about one transaction: the fold of every fact, in the order in which Apple said them.
///
/// The contents lie behind one reference, because claims, verdicts and findings hand records on for every order.
/// Inlinable, because modules are optimised one by one.
@dynamicMemberLookup
public struct TransactionRecord: Hashable, Sendable {
  @usableFromInline var box: Box

  @usableFromInline final class Box: Sendable {
    @usableFromInline let contents: Contents

    @usableFromInline init(_ contents: Contents) { self.contents = contents }
  }

  public struct Contents: Hashable, Sendable {
    public var environment: AppleEnvironment
    public var transactionId: Identifier
    public var originalTransactionId: Identifier?
    public var webOrderLineItemId: Identifier?
    public var bundleId: String?
    public var productId: Identifier
    public var productType: ProductType?
    public var quantity: Int32?
    public var purchaseDate: Instant?
    public var originalPurchaseDate: Instant?
    public var expiresDate: Instant?
    /// The newest expiry, grace period end or renewal date among all periods of the same subscription.
    public var subscriptionExpiresDate: Instant?
    /// Apple's newest word on the status of the subscription, told with any of its periods; nil while nobody has asked.
    public var subscriptionStatus: SubscriptionState?
    /// When Apple said so, which tells the newest among the periods.
    public var subscriptionStatusDate: Instant?
    /// When the subscription renews next, as told last.
    public var renewalDate: Instant?
    /// The revocation in force.
    public var revocation: Revocation?
    /// When Apple last said if it was revoked; nil: never, through no channel that could. verifyReceipt cannot for consumables,
    /// and its silence is no "no", however much it tells later of other things.
    public var revocationToldDate: Instant?
    /// When Apple first said that an earlier revocation is gone; nil when none was, or when one is in force. Beside a
    /// revocation: Apple said so after the as-of only.
    public var revocationWithdrawnDate: Instant?
    public var priceMilliunits: Int64?
    public var currency: String?
    /// `.silent`: no channel that was asked could carry it.
    public var appAccountToken: Statement<String?>
    public var ownership: Ownership?
    /// Apple's own word: true for `RENEWAL`, false for `PURCHASE`; nil while nobody has told it.
    public var isRenewal: Bool?
    public var hasOffer: Bool?
    public var isUpgraded: Bool?
    /// The customer's newest request for a refund.
    public var refundRequest: RefundRequest?
    public var details = TransactionDetails()
    /// Facts that cannot both be true: another product or app under the same id.
    public var isContradictory: Bool
    /// The channel and time of the newest fact.
    public var channel: EvidenceChannel
    public var signedDate: Instant
    /// When Apple first said anything about it, as far as is known: renewals are signed ahead of their purchase date.
    public var firstSignedDate: Instant?
    /// As-of of the run that last asked.
    public var checkedAt: Instant?
    /// Further transaction IDs of the same purchase, sorted.
    public var otherIds: [Identifier] = []

    public init(environment: AppleEnvironment, transactionId: Identifier, productId: Identifier) {
      self.environment = environment
      self.transactionId = transactionId
      self.productId = productId
      appAccountToken = .silent
      isContradictory = false
      channel = .verifyReceipt
      signedDate = Instant(microseconds: 0)
    }
  }

  public init(_ contents: Contents) { box = Box(contents) }

  public init(environment: AppleEnvironment, transactionId: Identifier, productId: Identifier) {
    self.init(Contents(environment: environment, transactionId: transactionId, productId: productId))
  }

  @inlinable public subscript<Value>(dynamicMember field: KeyPath<Contents, Value>) -> Value {
    box.contents[keyPath: field]
  }

  /// Whoever changes many fields makes `Contents` first: each change here moves all of them.
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

  /// Folds every fact about one transaction. The order in which they arrived plays no part.
  ///
  /// Each field is what the newest fact that speaks about it says: an older fact never undoes a newer one, and silence
  /// never undoes anything. What receipts only guess at fills gaps of what Apple signed.
  ///
  /// A refund or a withdrawal with a hidden date has not happened yet. A refund whose withdrawal is hidden stands, beside the
  /// date of the withdrawal: Apple may have withdrawn it before that.
  ///
  /// - Parameters:
  ///   - facts: facts about one environment and transaction id.
  ///   - isHidden: whether a date is later than the as-of. All later words on refunds are hidden from an audit of the past.
  /// - Returns: nil for no facts.
  public static func folding(
    _ facts: [TransactionFact], hiding isHidden: (Instant) -> Bool = { _ in false }
  ) -> TransactionRecord? {
    let ordered = facts.sorted(by: isToldBefore)
    guard let newest = ordered.last else { return nil }
    var contents = Contents(
      environment: newest.environment, transactionId: Identifier(newest.transactionId),
      productId: Identifier(newest.productId))
    contents.take(ordered, hiding: isHidden)
    return TransactionRecord(contents)
  }

  /// The record as it was before a hidden refund or withdrawal.
  ///
  /// All other fields stay as they are, because evidence may be gone (`evidence.retention`). A withdrawal without evidence
  /// stays as well.
  ///
  /// - Parameter facts: the evidence about the transaction.
  public func beforeHiddenRefunds(_ facts: [TransactionFact], hiding isHidden: (Instant) -> Bool) -> TransactionRecord {
    var (contents, folded) = (box.contents, box.contents)
    (folded.revocation, folded.revocationWithdrawnDate, folded.isUpgraded) = (nil, nil, nil)
    folded.refundRequest = nil
    let refunds = folded.take(facts.sorted(by: TransactionRecord.isToldBefore), hiding: isHidden)
    (contents.revocation, contents.revocationWithdrawnDate) = (refunds.revocation, refunds.withdrawnDate)
    contents.refundRequest = refunds.request
    if refunds.revocation != nil, refunds.withdrawnDate == nil, !refunds.isReplaced, self.revocation == nil {
      contents.revocationWithdrawnDate = self.revocationWithdrawnDate
    }
    return TransactionRecord(contents)
  }

  /// Folds facts onto what was folded of all earlier ones, which need not be read again.
  ///
  /// - Parameter facts: facts about the same environment and transaction id.
  /// - Returns: nil where the record does not say enough for it: a fact is not newer than all that it was folded from, a
  ///   revocation was told before, and by whom decides what silence means, or whether what it knows was signed decides.
  public func adding(_ facts: [TransactionFact]) -> TransactionRecord? {
    guard self.revocation == nil, self.revocationWithdrawnDate == nil,
      facts.allSatisfy({ $0.signedDate > self.signedDate })
    else { return nil }
    let ordered = facts.sorted(by: TransactionRecord.isToldBefore)
    guard let newest = ordered.last else { return self }
    var contents = box.contents
    guard ordered.allSatisfy({ $0.isSigned || contents.isBought(asGuessedBy: $0) }) else { return nil }
    if contents.productId.text != newest.productId {
      contents.productId = Identifier(newest.productId)
      contents.isContradictory = true
    }
    contents.take(ordered) { _ in false }
    return TransactionRecord(contents)
  }

  /// Apple's order of saying it; ties are broken by channel and content, so that the fold is a function of the set.
  private static func isToldBefore(_ left: TransactionFact, _ right: TransactionFact) -> Bool {
    if left.signedDate != right.signedDate { return left.signedDate < right.signedDate }
    if left.channel.weight != right.channel.weight { return left.channel.weight < right.channel.weight }
    return left.tieBreakers.lexicographicallyPrecedes(right.tieBreakers)
  }

  /// Live: an authentic production purchase that Apple has not revoked in full.
  public var isLive: Bool { self.environment == .production && !isReversed }

  /// Whether Apple has taken it back in full.
  public var isReversed: Bool { self.revocation?.isFull ?? false }

  /// Whether Apple has ever said if it was revoked.
  public var tellsRevocation: Bool { self.revocationToldDate != nil }

  /// Whether Apple has said no earlier than that if it was revoked; nil: at any time.
  public func couldTellOfRefund(since date: Instant?) -> Bool {
    guard let told = self.revocationToldDate else { return false }
    return date.map { told >= $0 } ?? true
  }

  /// Whether nobody knows if a refund stood at the as-of: Apple told of it before, and after the as-of that it is gone.
  public var isRefundDoubtful: Bool { self.revocation != nil && self.revocationWithdrawnDate != nil }

  /// Whether only receipts tell of the refund in force, which have no place for how much of it was given back.
  public var isRefundShareUntold: Bool {
    guard let refund = self.revocation, !refund.tellsShare else { return false }
    return switch self.channel {
    case .verifyReceipt: true
    // A signed transaction tells the token even where there is none.
    case .offline: self.appAccountToken == .silent
    case .serverApi, .notification: false
    }
  }

  /// Whether somebody could tell if it was refunded, and of a refund how much was given back.
  public var tellsRefund: Bool { self.tellsRevocation && !isRefundShareUntold }

  /// Whether access came without a purchase by this user.
  public var isFamilyShared: Bool { self.ownership == .familyShared || self.revocation?.type == "FAMILY_REVOKE" }

  /// Whether it has an id of its own beside that of the purchase that it goes back to.
  private var hasOtherOriginal: Bool {
    self.originalTransactionId.map { $0 != self.transactionId } ?? false
  }

  /// Whether it is a later period of a subscription: Apple's word, or else two ids and an expiry. What the dates of its
  /// first purchase say plays no part, because Apple's receipts often date that one later.
  public var isLaterPeriod: Bool { self.isRenewal ?? (hasOtherOriginal && self.expiresDate != nil) }

  /// Whether it gives again what an earlier purchase paid for: no money moved for it.
  ///
  /// Apple states `PURCHASE` as the reason of restores of non-consumables, too, so the reason decides nothing.
  public var isRestore: Bool {
    guard self.isRenewal != true, self.expiresDate == nil else { return false }
    if hasOtherOriginal { return true }
    guard self.isRenewal == nil, let purchased = self.purchaseDate, let first = self.originalPurchaseDate else {
      return false
    }
    return first < purchased
  }

  /// The same transaction as a purchase of its own, where it looks like a restore.
  func asPurchase(on date: Instant) -> TransactionRecord {
    var contents = box.contents
    contents.originalTransactionId = contents.transactionId
    contents.originalPurchaseDate = date
    return TransactionRecord(contents)
  }

  /// All fields.
  var contents: Contents { box.contents }

  /// Whether the sale that it restores has another id.
  public var restoresOther: Bool { isRestore && hasOtherOriginal }

  /// When money moved: the purchase date, or of a restore that of the purchase that it restores.
  public var saleDate: Instant? { isRestore ? self.originalPurchaseDate ?? self.purchaseDate : self.purchaseDate }

  /// Of the App Store that sold it; nil when Apple has not said.
  public var country: Country? { Country(storefront: self.details.storefront) }
}

extension TransactionRecord.Contents {
  /// Takes facts, the newest last.
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
    // Receipts date a restore by themselves and cannot tell every offer: of what Apple has signed they fill gaps alone.
    for fact in ordered where !fact.isSigned { takePurchase(fact) }
    for fact in ordered where fact.isSigned { takePurchase(fact) }
    return refunds
  }

  /// When and as what it was bought.
  private mutating func takePurchase(_ fact: TransactionFact) {
    purchaseDate = fact.purchaseDate ?? purchaseDate
    originalPurchaseDate = fact.originalPurchaseDate ?? originalPurchaseDate
    isRenewal = fact.toldRenewal ?? isRenewal
    hasOffer = fact.toldOffer ?? hasOffer
  }

  /// Whether a receipt says nothing else of when and as what it was bought than is known, whoever told that.
  fileprivate func isBought(asGuessedBy fact: TransactionFact) -> Bool {
    func isSame<Value: Equatable>(_ known: Value?, _ told: Value?) -> Bool {
      known == nil || told == nil || known == told
    }
    return isSame(purchaseDate, fact.purchaseDate) && isSame(originalPurchaseDate, fact.originalPurchaseDate)
      && isSame(hasOffer, fact.toldOffer)
  }

  private mutating func take(_ fact: TransactionFact) {
    if fact.productId != productId.text { isContradictory = true }
    if let bundle = fact.bundleId {
      if let known = bundleId, known != bundle { isContradictory = true }
      bundleId = bundle
    }
    originalTransactionId = fact.originalTransactionId.map { Identifier($0) } ?? originalTransactionId
    // Receipts write 0 where there is none.
    webOrderLineItemId = fact.webOrderLineItemId.flatMap { $0 == "0" ? nil : Identifier($0) } ?? webOrderLineItemId
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
    if case .says = fact.appAccountToken { appAccountToken = fact.appAccountToken }
    if fact.revocation != .silent { revocationToldDate = fact.signedDate }
    channel = fact.channel
    signedDate = fact.signedDate
    firstSignedDate = firstSignedDate ?? fact.signedDate
  }
}

/// The refund of one transaction, folded from the words of all channels on refunds.
private struct RefundHistory {
  /// The refund in force.
  private(set) var revocation: Revocation?
  /// The first word that the refund is gone.
  private(set) var withdrawnDate: Instant?
  /// The refund in force after all facts, hidden ones included. Facts about refunds complete it or withdraw it.
  private var newest: Revocation?
  /// The channel of the newest refund.
  private var channel: EvidenceChannel?
  /// Whether a hidden refund has come after the one in force. Later withdrawals are of the hidden one.
  private(set) var isReplaced = false
  /// The newest request for a refund that is not hidden.
  private(set) var request: RefundRequest?

  init(revocation: Revocation?, withdrawnDate: Instant?, request: RefundRequest?) {
    (self.revocation, self.withdrawnDate, newest) = (revocation, withdrawnDate, revocation)
    self.request = request
  }

  /// Takes a fact that is newer than all facts before.
  mutating func take(_ fact: TransactionFact, isUpgraded: Bool, hiding isHidden: (Instant) -> Bool) {
    if let notice = fact.refundRequest, !isHidden(fact.signedDate) {
      request = RefundRequest.after(request, notice, at: fact.signedDate)
    }
    // verifyReceipt takes back by silence only a refund that verifyReceipt has shown.
    let showsGone = fact.channel == .verifyReceipt && channel == .verifyReceipt
    switch fact.revocation {
    case .says(.some(let told)):
      // Channels date one refund differently: the same refund keeps its first date, and is not hidden by a later one.
      let refund =
        fact.isSigned ? told.completed(by: newest) : told.ended(byUpgrade: isUpgraded).yielding(to: newest)
      newest = refund
      if isHidden(refund.date) {
        isReplaced = true
        return
      }
      (revocation, withdrawnDate, channel, isReplaced) = (refund, nil, fact.channel, false)
    case .says(.none):
      // verifyReceipt shows no partial refund that another channel has told.
      if fact.isSigned || showsGone || newest?.isFull ?? true {
        withdraw(at: fact.signedDate, told: channel != nil || fact.reversesRefund, isHidden)
      }
    case .silent:
      // verifyReceipt never shows refunds of consumables, and old receipts have no place for any.
      if showsGone, !fact.hasNoPlaceForRefunds { withdraw(at: fact.signedDate, told: true, isHidden) }
    }
  }

  private mutating func withdraw(at date: Instant, told: Bool, _ isHidden: (Instant) -> Bool) {
    newest = nil
    if isHidden(date) {
      if revocation != nil, !isReplaced { withdrawnDate = withdrawnDate ?? date }
      return
    }
    revocation = nil
    if told { withdrawnDate = withdrawnDate ?? date }
  }
}

extension EvidenceChannel {
  /// Among facts of the same instant the one with more to say is taken last.
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
  /// Apple's recorded customer price; nil where it is unknown or no whole number of minor units.
  public var price: Money? {
    guard let milliunits = self.priceMilliunits, let code = self.currency, let currency = Currency(code: code)
    else { return nil }
    return Money(milliunits: milliunits, currency: currency)
  }

  /// What is left of what was paid for it after Apple's refund; nil where nobody knows how much that was.
  ///
  /// - Parameter paid: what it cost.
  func left(of paid: Money) -> Money? {
    guard let revocation = self.revocation else { return paid }
    if revocation.isFull { return Money(minorUnits: 0, currency: paid.currency) }
    return revocation.percentage.map {
      Money(minorUnits: paid.minorUnits - paid.share(milliPercent: $0).minorUnits, currency: paid.currency)
    }
  }
}
