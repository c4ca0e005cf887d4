/// A reason why a purchase may pay an order. An order prefers the kinds in this sequence.
public enum LinkKind: Int, Comparable, Sendable {
  /// A verified proof of this one purchase was sent for the order.
  case proof
  /// The order's account token equals the purchase's.
  case token
  case id
  /// The order states the original transaction ID of the subscription.
  case subscription
  case list
  /// The order states the ID of the subscription's first period, and a later period is the nearest to the order.
  case firstPeriod

  public static func < (left: LinkKind, right: LinkKind) -> Bool { left.rawValue < right.rawValue }
}

struct Link {
  var index: Int
  var transaction: TransactionRecord
  var kind: LinkKind
  /// True if the order states its transaction ID, or a verified receipt of the order contains it.
  var isReferenced: Bool
  var rank: LinkRank
}

extension Link {
  /// True if the order may own the purchase beside another one: as a second charge, which a renewal is not, or for
  /// units that its other purchases do not pay.
  var isFurther: Bool {
    transaction.environment == .production && !transaction.isLaterPeriod && kind != .firstPeriod
  }

  /// True if a second purchase by this link is a second charge.
  var isFurtherCharge: Bool { isFurther && transaction.isLive }

  func isPreferred(to other: Link) -> Bool {
    // The order was written for the nearest period, even if Apple has refunded that one.
    if (kind == .firstPeriod) != (other.kind == .firstPeriod) { return other.kind == .firstPeriod }
    if transaction.isReversed != other.transaction.isReversed { return !transaction.isReversed }
    if kind != other.kind { return kind < other.kind }
    // Of two purchases with its account token, the order prefers the one that it states or sent a receipt of.
    if isReferenced != other.isReferenced { return isReferenced }
    // A purchase with the token of another account is the last choice among equals.
    if (rank.token == .other) != (other.rank.token == .other) { return rank.token != .other }
    if rank.distance != other.rank.distance { return rank.distance < other.rank.distance }
    return transaction.key < other.transaction.key
  }
}

extension TransactionRecord {
  /// The units that a live payment pays for. Some receipts state no quantity.
  var liveUnits: Int64 { isLive ? Int64(self.quantity ?? 1) : 0 }

  /// The amount of the order for as many units as Apple states.
  public func share(of order: Order) -> Money {
    guard let units = self.quantity, units > 0, units < order.quantity else { return order.amount }
    return order.amount.share(Int64(units), of: Int64(order.quantity))
  }

  /// The order of time, then of IDs.
  func isSold(before other: TransactionRecord) -> Bool {
    (self.saleDate?.microseconds ?? .min, key) < (other.saleDate?.microseconds ?? .min, other.key)
  }
}

extension Order {
  /// The time between its creation and a sale; zero for a sale without a date.
  func distance(to sale: TransactionRecord?) -> Span { ((sale?.saleDate ?? createdAt) - createdAt).magnitude }
}

/// The properties that decide which of several orders a purchase pays.
public struct LinkRank: Sendable {
  var token: AccountToken.Relation
  var isInWindow: Bool
  var isProof: Bool
  var hasGoods: Bool
  var distance: Span
  var createdAt: Instant
  var orderId: Identifier

  init(_ claimant: Claimant, _ transaction: TransactionRecord, _ kind: LinkKind, rules: Rules) {
    token = AccountToken.relation(of: claimant.order, to: transaction)
    isInWindow = claimant.isInWindow(transaction, rules: rules)
    isProof = kind == .proof
    hasGoods = claimant.hasGoods
    createdAt = claimant.order.createdAt
    orderId = claimant.order.orderId
    distance = claimant.order.distance(to: transaction)
  }

  func precedes(_ other: LinkRank, isSamePerson: Bool) -> Bool {
    if (token == .same) != (other.token == .same) { return token == .same }
    if isInWindow != other.isInWindow { return isInWindow }
    if token != other.token { return token.rawValue < other.token.rawValue }
    if isProof != other.isProof { return isProof }
    if isSamePerson, hasGoods != other.hasGoods { return hasGoods }
    return isNearer(than: other)
  }

  public func isNearer(than other: LinkRank) -> Bool {
    (distance, createdAt, orderId) < (other.distance, other.createdAt, other.orderId)
  }
}

extension Claimant {
  func link(to transaction: TransactionRecord, stated: TransactionRecord?, rules: Rules) -> LinkKind? {
    guard fitness(of: transaction, rules: rules) == .eligible, !isOutdatedRestore(transaction, rules: rules) else {
      return nil
    }
    let isListed = list.contains(transaction.key)
    if isListed, proofIds.contains(transaction.transactionId) { return .proof }
    let isStated = stated.map { $0.isSame(as: transaction) || $0.purchaseKey == transaction.purchaseKey } ?? false
    let isNear = isInWindow(transaction, rules: rules)
    if isNear, !transaction.isLaterPeriod, AccountToken.relation(of: order, to: transaction) == .same { return .token }
    if isStated { return states(transaction) ? .id : .subscription }
    if states(transaction), let key = transaction.subscriptionKey, key == stated?.subscriptionKey {
      return .firstPeriod
    }
    guard isListed, isNear, !transaction.isLaterPeriod || isStatedIDUnknown else { return nil }
    return .list
  }

  func states(_ transaction: TransactionRecord) -> Bool {
    order.transactionId.map { transaction.isStated(by: $0) } ?? false
  }

  func stated(rules: Rules) -> TransactionRecord? {
    named(rules: rules).flatMap { eligibility(ofStated: $0, rules: rules) == .eligible ? $0 : nil }
  }

  /// False if every proof of the order was rejected and another order has a verified one.
  func isStatedIDLink(isProvenByOthers: Bool) -> Bool { proofValidity == .notAllRejected || !isProvenByOthers }

  /// True for an order that needs no payment, such as a gift of the shop.
  var isFree: Bool { order.amount.minorUnits == 0 && order.transactionId == nil && proven.isEmpty }

  /// Transactions that the account token or the stated ID may link to the order. A token links a gift to no charge.
  var linkedWithoutReceipt: some Sequence<TransactionRecord> {
    known.lazy.filter { !(isFree && $0.priceMilliunits ?? 0 > 0) && !list.contains($0.key) }
  }

  func links(_ index: Int = 0, stated: TransactionRecord?, rules: Rules) -> [Link] {
    var links: [Link] = []
    func add(_ transaction: TransactionRecord) {
      guard let kind = link(to: transaction, stated: stated, rules: rules) else { return }
      let rank = LinkRank(self, transaction, kind, rules: rules)
      let isReferenced = list.contains(transaction.key) || states(transaction)
      links.append(
        Link(index: index, transaction: transaction, kind: kind, isReferenced: isReferenced, rank: rank))
    }
    for transaction in proven { add(transaction) }
    if order.appAccountToken != nil || stated != nil {
      for transaction in linkedWithoutReceipt {
        let isStated = stated.map { $0.isSame(as: transaction) || states(transaction) } ?? false
        if order.appAccountToken != nil || isStated { add(transaction) }
      }
    }
    guard links.count > 1 else { return links }
    links.sort { $0.isPreferred(to: $1) }
    var purchases: Set<PurchaseKey> = []
    return links.filter { purchases.insert($0.transaction.purchaseKey).inserted }
  }
}
