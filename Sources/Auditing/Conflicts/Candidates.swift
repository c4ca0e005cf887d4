import AuditStore
import Reconciliation

/// The orders that could own a transaction. A pure function of all references of it, whatever their order. Others are
/// left out to keep contests small: an app receipt lists every purchase of its user, for each of their orders.
struct Candidates {
  /// Orders that could own it, by ID. With one order it is uncontested, with none it cannot be claimed.
  private(set) var claimants: [Identifier] = []
  /// Orders that cannot own it but have a proof about it that affects them, by ID.
  private(set) var affectedOrders: [Identifier] = []
  /// Claimants without an account token, or with another than the transaction's, with their users.
  private(set) var withOtherToken: [(orderId: Identifier, userId: Identifier)] = []
  /// Whether an order of its product, created within the window, states it or has a receipt of it, and has its account
  /// token.
  private(set) var isWithToken = false
  /// True if the only claimant has a verified proof of this one purchase, was created within the window, and has no
  /// other account token. No order that merely states the subscription precedes it.
  private var isProvenInWindow = false
  /// The presumed user if no order claims it: of the first order, otherwise of a receipt.
  private(set) var userId: Identifier?
  private(set) var newestProof: CheckSubject?
  /// True if only app receipts without an answer contain it, and no evidence shows refunds.
  private(set) var awaitsDetails = false

  /// An order that states the ID without any proof. Reduced to its identity: a shop may have one per order.
  struct StatingOrder {
    var orderId: Identifier
    var userId: Identifier
    var productId: Identifier
    var createdAt: Instant
    var appAccountToken: String?
  }

  struct ReferenceCollector {
    fileprivate private(set) var statingOrders: [StatingOrder] = []
    fileprivate private(set) var references: [TransactionReference] = []

    /// Prepares for another ID. Releases large buffers, but keeps those of a user with thousands of purchases.
    mutating func clear() {
      references.removeAll(keepingCapacity: references.count < 1 << 13)
      statingOrders.removeAll(keepingCapacity: statingOrders.count < 1 << 13)
    }

    mutating func take(_ reference: consuming TransactionReference) {
      if reference.referenceSource != nil { return references.append(reference) }
      guard let order = reference.order, !order.isBad else { return references.append(reference) }
      statingOrders.append(
        StatingOrder(
          orderId: order.orderId, userId: order.userId, productId: order.productId,
          createdAt: order.createdAt, appAccountToken: order.appAccountToken))
    }

    mutating func finish() { statingOrders.sort { $0.orderId < $1.orderId } }
  }

  fileprivate struct Stake {
    var order: TransactionReference.OrderSide
    var names = false
    var isAboutSinglePurchase = false
    var isProven = false

    init(order: TransactionReference.OrderSide) { self.order = order }

    mutating func take(_ other: Stake) {
      names = names || other.names
      isAboutSinglePurchase = isAboutSinglePurchase || other.isAboutSinglePurchase
      isProven = isProven || other.isProven
    }

    mutating func take(_ source: TransactionReference.ReferenceSource) {
      isAboutSinglePurchase = isAboutSinglePurchase || source.isAboutSinglePurchase
      isProven = isProven || source.isProof
    }
  }

  /// Mentions of one order usually follow each other; thousands of orders may list the same purchases.
  private struct ClaimStakes {
    private var stakes: [Stake] = []
    private var isSorted = true

    mutating func note(_ order: TransactionReference.OrderSide, _ change: (inout Stake) -> Void) {
      if let last = stakes.last?.order.orderId, last != order.orderId {
        isSorted = isSorted && last < order.orderId
        stakes.append(Stake(order: order))
      } else if stakes.isEmpty {
        stakes.append(Stake(order: order))
      }
      change(&stakes[stakes.count - 1])
    }

    consuming func byOrder() -> [Stake] {
      if isSorted { return stakes }
      stakes.sort { $0.order.orderId < $1.order.orderId }
      var merged: [Stake] = []
      for stake in stakes {
        if merged.last?.order.orderId == stake.order.orderId {
          merged[merged.count - 1].take(stake)
        } else {
          merged.append(stake)
        }
      }
      return merged
    }
  }

  /// The links that could connect orders to the transaction without a reference to it, by their keys.
  ///
  /// - Parameter openTokens: as ``OrdersReading/openTokens``.
  func awaitedLinks(_ record: TransactionRecord, openTokens: BloomFilter) -> [UnprovenLink] {
    guard record.saleDate != nil, !record.isContradictory, !record.isFamilyShared else { return [] }
    var links: [UnprovenLink] = []
    if record.expiresDate != nil, let original = record.originalTransactionId, original != record.transactionId,
      !isProvenInWindow
    {
      if let bundle = record.bundleTransactionId, bundle != original { links.append(.subscription(bundle)) }
      links.append(.subscription(original))
    }
    if let token = record.linkingToken {
      let spelling = AccountToken.spelling(token)
      if !isWithToken || openTokens.mayContain(AccountToken.fingerprint(token)) { links.append(.token(spelling)) }
    }
    return links
  }

  init(for record: TransactionRecord, references: some Sequence<TransactionReference>, rules: Rules) {
    self.init(for: record, references, statingOrders: [], rules)
  }

  init(for record: TransactionRecord, _ gathering: ReferenceCollector, rules: Rules) {
    if gathering.statingOrders.isEmpty, gathering.references.count == 1,
      let only = Candidates(for: record, theOnly: gathering.references[0], rules)
    {
      self = only
    } else {
      self.init(for: record, gathering.references, statingOrders: gathering.statingOrders, rules)
    }
  }

  /// Fast path for one reference; nil if it is not of an order, or of one that can claim nothing.
  private init?(for record: TransactionRecord, theOnly reference: borrowing TransactionReference, _ rules: Rules) {
    guard let order = reference.order, !order.isBad else { return nil }
    let isContained = reference.referenceSource?.environment == record.environment
    if isContained { newestProof = reference.referenceSource?.subject }
    // The same ID in another environment is another purchase.
    guard reference.isNamed || isContained else { return }
    userId = order.userId
    claimants = [order.orderId]
    if record.hasOtherToken(than: order.appAccountToken) { withOtherToken = [(order.orderId, order.userId)] }
    isWithToken = record.isPaid(
      with: order.appAccountToken, for: order.productId, near: order.createdAt, rules: rules)
    isProvenInWindow = isWithToken && isContained && reference.referenceSource?.isProof ?? false
  }

  private init(
    for record: TransactionRecord, _ references: some Sequence<TransactionReference>, statingOrders: [StatingOrder],
    _ rules: Rules
  ) {
    var stakes = ClaimStakes()
    var senders: Set<Identifier> = []
    var newest: (receivedAt: Instant, subject: CheckSubject)?
    var isAnswered = record.isRefundKnown
    for reference in references {
      if reference.isNamed, let order = reference.order { stakes.note(order) { $0.names = true } }
      guard let referenceSource = reference.referenceSource, referenceSource.environment == record.environment else {
        continue
      }
      isAnswered = isAnswered || !referenceSource.awaitsDetails
      if newest.map({ ($0.receivedAt, $0.subject.id) < (referenceSource.receivedAt, referenceSource.subject.id) })
        ?? true
      {
        newest = (referenceSource.receivedAt, referenceSource.subject)
      }
      guard let order = reference.order else {
        if let sender = referenceSource.userId { senders.insert(sender) }
        continue
      }
      stakes.note(order) { $0.take(referenceSource) }
    }
    newestProof = newest?.subject
    awaitsDetails = newest != nil && !isAnswered
    let sorted = stakes.byOrder()
    userId = Self.firstUser(sorted, statingOrders) ?? senders.min()
    isWithToken =
      sorted.contains { stake in
        let order = stake.order
        return !order.isBad
          && record.isPaid(with: order.appAccountToken, for: order.productId, near: order.createdAt, rules: rules)
      }
      || statingOrders.contains {
        record.isPaid(with: $0.appAccountToken, for: $0.productId, near: $0.createdAt, rules: rules)
      }
    let isAlone = sorted.count { !$0.order.isBad } + statingOrders.count == 1
    claimants.reserveCapacity(statingOrders.count)
    var further = statingOrders[...]
    func addStatingOrders(before orderId: Identifier?) {
      while let next = further.first, orderId.map({ next.orderId < $0 }) ?? true {
        claimants.append(next.orderId)
        if record.hasOtherToken(than: next.appAccountToken) { withOtherToken.append((next.orderId, next.userId)) }
        further.removeFirst()
      }
    }
    for stake in sorted where !stake.order.isBad {
      let orderId = stake.order.orderId
      addStatingOrders(before: orderId)
      // A single order is kept in any case, because leaving it out would save nothing.
      if isAlone || stake.couldClaim(record, rules: rules) {
        claimants.append(orderId)
        isProvenInWindow =
          stake.isProven && !record.hasOtherToken(than: stake.order.appAccountToken)
          && record.isSold(near: stake.order.createdAt, rules: rules)
        if record.hasOtherToken(than: stake.order.appAccountToken) {
          withOtherToken.append((orderId, stake.order.userId))
        }
      } else if stake.isAboutSinglePurchase || stake.mayMissTransaction(record) {
        affectedOrders.append(orderId)
      }
    }
    addStatingOrders(before: nil)
    if claimants.count != 1 || !statingOrders.isEmpty { isProvenInWindow = false }
  }

  private static func firstUser(_ stakes: [Stake], _ statingOrders: [StatingOrder]) -> Identifier? {
    guard let stake = stakes.first?.order else { return statingOrders.first?.userId }
    return statingOrders.first.flatMap { $0.orderId < stake.orderId ? $0.userId : nil } ?? stake.userId
  }
}

extension TransactionRecord {
  /// The account token, as `AccountToken.spelling` has it.
  var statedToken: String? {
    guard case .stated(.some(let token)) = self.appAccountToken else { return nil }
    return AccountToken.spelling(token)
  }

  /// The account token that links orders to the purchase without a receipt; renewals repeat that of the first period.
  var linkingToken: String? {
    guard case .stated(.some(let token)) = self.appAccountToken, !isLaterPeriod else { return nil }
    return token
  }

  fileprivate func isSold(near createdAt: Instant, rules: Rules) -> Bool {
    saleDate.map { ($0 - createdAt).magnitude <= rules.matchWindow } ?? false
  }

  /// Whether the token, the product and the date of an order fit it.
  fileprivate func isPaid(
    with token: String?, for productId: Identifier, near createdAt: Instant, rules: Rules
  ) -> Bool {
    !hasOtherToken(than: token) && isPurchase(of: productId) && isSold(near: createdAt, rules: rules)
  }

  /// The dates on which money may have moved. A restore is a purchase of its own date if its original purchase was
  /// refunded before, which is known only with all transactions of the purchase.
  var possibleSaleDates: [Instant] {
    guard restoresAnotherID, let own = self.purchaseDate, own != saleDate else { return [saleDate].compactMap(\.self) }
    return [saleDate].compactMap(\.self) + [own]
  }

  func mayBeSold(near createdAt: Instant, rules: Rules) -> Bool {
    possibleSaleDates.contains { ($0 - createdAt).magnitude <= rules.matchWindow }
  }

  fileprivate func hasOtherToken(than own: String?) -> Bool {
    guard case .stated(.some(let token)) = self.appAccountToken else { return false }
    return own.map { AccountToken.isSame($0, token) != true } ?? true
  }
}

extension Candidates.Stake {
  /// True if this order, which states no ID, would be judged differently without the transaction. Its product is the
  /// ordered one, or is in doubt.
  fileprivate func mayMissTransaction(_ record: TransactionRecord) -> Bool {
    order.named == nil && (record.isPurchase(of: order.productId) || record.isContradictory)
  }

  /// True if matching could give the order this transaction. Errs on the side of true.
  func couldClaim(_ record: TransactionRecord, rules: Rules) -> Bool {
    if names || (order.named != nil && order.named == record.originalTransactionId) { return true }
    // A proof of this one purchase links the order to it at any time.
    return record.isPurchase(of: order.productId)
      && (isAboutSinglePurchase || record.saleDate == nil || record.mayBeSold(near: order.createdAt, rules: rules))
  }
}

extension TransactionReference.ReferenceSource {
  /// True for a verified proof of one purchase. A look-up is none, because anyone can state an ID.
  fileprivate var isProof: Bool { isAboutSinglePurchase && isGenuine && subject.kind == .receipt }
}
