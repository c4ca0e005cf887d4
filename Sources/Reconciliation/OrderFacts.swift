/// Everything that is known about one order: what we recorded, what Apple said, what the user got.
public struct OrderFacts: Sendable {
  public var order: Order
  public var deliveries: [Delivery]
  /// The receipts sent for this order.
  public var receipts: [Receipt]
  /// The look-up of the transaction id that it names, where its receipts do not settle it; nil where nobody asks by id.
  public var lookup: ProofState?
  /// Transactions that genuine receipts sent for this order bring, by key.
  public var proven: [TransactionRecord] { list.records }
  /// The same as a list that further orders may share.
  public var list: ProvenTransactions
  /// What is known under the id that the order names, whoever brought it, by key.
  public private(set) var known: [TransactionRecord]
  /// What claiming has come to, with every other order taken into account.
  public var claims: OrderClaims
  /// A user for whom the shop has the account token on file that Apple's transaction carries: the order's own user or an
  /// alias of theirs before anybody else. Wanted where ``asksForTokenHolder``.
  public var accountTokenUser: Identifier?
  /// Orders of the order's person, this one among them, whose own receipts are not answered yet.
  public var openOrders: [OpenOrder] = []
  /// Where several receipts were sent for it: of what it owns, the first that lists it.
  public var bringers: [TransactionKey: Identifier] = [:]
  /// Whether the order has goods, where its deliveries are not read; nil: ``deliveries`` say it.
  public var hasGoods: Bool?
  /// What only lists bring about which Apple has not answered.
  public var awaited: Set<TransactionKey> = []

  public init(
    order: Order, deliveries: [Delivery] = [], receipts: [Receipt] = [], lookup: ProofState? = nil,
    proven: [TransactionRecord] = [], known: [TransactionRecord] = [], claims: OrderClaims = OrderClaims(),
    accountTokenUser: Identifier? = nil
  ) {
    self.order = order
    // Rows come in any order; what is said about them may not depend on it.
    self.deliveries = deliveries.count > 1 ? deliveries.sorted { $0.deliveryId < $1.deliveryId } : deliveries
    self.receipts = receipts.count > 1 ? receipts.sorted { $0.receiptId < $1.receiptId } : receipts
    self.lookup = lookup
    list = proven.isEmpty ? .none : ProvenTransactions(proven)
    self.known = known.isEmpty ? [] : ProvenTransactions(known).records
    self.claims = claims
    self.accountTokenUser = accountTokenUser
  }

  /// The same facts as a claimant sees them.
  public func claimant(_ rules: borrowing Rules) -> Claimant {
    Claimant(
      order: order, proven: list, known: known, signedIds: signedIds, proofIds: proofIds, worth: worth,
      isOpen: isOpen(rules), isNameUnknown: lookup?.outcome == .notFound, hasGoods: hasGoods ?? (heldUnits > 0))
  }

  /// What its proofs are worth when it names a transaction.
  public var worth: ProofWorth {
    let sound = soundReceipts
    guard !sound.isEmpty, sound.allSatisfy({ $0.state.outcome == .rejected }) else { return .notFalse }
    let isUnreadable = sound.allSatisfy(\.state.isUnreadable)
    switch lookup?.outcome {
    case .verified: return isUnreadable ? .unreadableButNameKnown : .allFalseButNameKnown
    case .notFound: return .allFalse
    case .pending, .unanswered, .review, .rejected: return .allFalseButNameOpen
    case .none: return isUnreadable ? .allFalseButNameOpen : .allFalse
    }
  }

  /// Ids inside its own signed payloads, when each proof that is not false holds exactly one: a receipt that lists many, or
  /// that nobody could read, may hold the named one. What somebody else has sent for the order is not its own.
  public var signedIds: [Identifier] {
    if receipts.isEmpty { return [] }
    let proofs = soundReceipts.filter { $0.state.outcome != .rejected || $0.state.isUnreadable }
    guard proofs.allSatisfy({ $0.state.signedTransactionId != nil }) else { return [] }
    return proofs.filter { $0.userId == nil || $0.userId == order.userId }.compactMap(\.state.signedTransactionId)
  }

  /// IDs of the transactions of which a proof of that one purchase was sent for the order.
  private var proofIds: Set<Identifier> {
    if receipts.isEmpty { return [] }
    return Set(soundReceipts.lazy.filter(\.state.isProof).compactMap(\.state.signedTransactionId))
  }

  /// Whether a receipt is unanswered that could still bring a payment.
  public var hasOpenProofs: Bool { receipts.contains { $0.defect == nil && $0.state.mayBringPayment } }

  /// Whether a receipt is unanswered that could still change what it owns, and its question is not stuck.
  func isOpen(_ rules: borrowing Rules) -> Bool {
    receipts.contains { $0.defect == nil && $0.state.mayChangeOwners(rules) }
  }

  /// Whether another order of the same person, once its receipt is answered, could have the payment.
  func mayLose(_ payment: TransactionRecord, rules: Rules, isUnread: Bool = false) -> Bool {
    if openOrders.isEmpty { return false }
    let own = claimant(rules)
    let kind = own.link(to: payment, stated: own.stated(rules: rules), rules: rules) ?? .list
    let rank = LinkRank(own, payment, kind, isRefuted: false, rules: rules)
    return openOrders.contains { (!isUnread || $0.isUnread) && $0.couldOutrank(rank, on: payment, rules: rules) }
  }

  /// Whether a payment may still come from a receipt of which nobody knows yet what it holds, or under the id that it names
  /// and of which nothing is known, while somebody is asked about it.
  var awaitsPayment: Bool {
    receipts.contains { $0.defect == nil && $0.state.isUnread } || isNameOpen && lookup?.awaitsAnswer ?? false
  }

  /// Whether a question about one of its own proofs, or about the id that it names, has no answer: nobody is told then that
  /// another order has what it claims, however well that is known.
  var awaitsAnswer: Bool {
    lookup?.awaitsAnswer ?? false || soundReceipts.contains(where: \.state.awaitsAnswer)
  }

  /// Whether a question is open whose answer may say more of a purchase than what is known: what it is, and whether it was
  /// refunded, Apple says in signed transactions alone, and a receipt lists ids and dates.
  func awaitsDetails(of record: TransactionRecord) -> Bool {
    awaited.contains(record.key) || lookup?.awaitsAnswer ?? false && record.transactionId == order.transactionId
  }

  /// Whether an answer is missing that could say that a live purchase was refunded. A signed transaction says how things
  /// were when Apple signed it.
  func awaitsRefund(of record: TransactionRecord) -> Bool {
    !record.tellsRevocation && awaitsDetails(of: record)
      || soundReceipts.contains { $0.state.awaitsAnswer && $0.state.signedTransactionId == record.transactionId }
  }

  /// Whether it was refunded, and an answer that is missing could tell that only a part was.
  public func awaitsShare(of record: TransactionRecord) -> Bool {
    record.isRefundShareUntold && awaitsDetails(of: record)
  }

  /// Whether it names an id of which nothing is known and about which Apple has not answered.
  var isNameOpen: Bool { order.transactionId != nil && claims.named == nil && lookup?.outcome != .notFound }

  /// Receipts that keep the sales schema's contract.
  var soundReceipts: [Receipt] {
    receipts.contains { $0.defect != nil } ? receipts.filter { $0.defect == nil } : receipts
  }

  /// Deliveries that keep the sales schema's contract.
  var soundDeliveries: [Delivery] {
    deliveries.contains { $0.defect != nil } ? deliveries.filter { $0.defect == nil } : deliveries
  }

  /// Lets goods in full say that a doubtful refund is gone, and otherwise that it stands. A withdrawal has no date but that of
  /// Apple's first word without the refund: it may have come before the as-of, and an honest shop may have known.
  ///
  /// A shop that said `refunded` at the as-of speaks for the refund, whatever its goods say: it is not told that Apple has
  /// not refunded what Apple had. Once settled, facts stay as they are.
  public mutating func settleRefunds() {
    let saysRefunded = order.status == .refunded && !order.isChangedLater
    for place in claims.owned.indices where claims.owned[place].isRefundDoubtful {
      if !saysRefunded, heldUnits >= Int64(order.quantity) { claims.owned[place].revocation = nil }
    }
  }

  /// Deliveries that were not taken back.
  var standingDeliveries: [Delivery] {
    let sound = soundDeliveries
    return sound.allSatisfy { $0.stands } ? sound : sound.filter { $0.stands }
  }

  /// The production transaction that the order owns: the only one whose price, quantity, token and dates may be compared
  /// with the order's.
  public var comparable: TransactionRecord? {
    claims.owned.first.flatMap { $0.environment == .production ? $0 : nil }
  }

  /// What pays the order: the production purchase that it owns, or several that are together for the units ordered.
  private var paying: [TransactionRecord] {
    guard let first = comparable else { return [] }
    let live = claims.liveOwned
    guard live.count > 1, first.quantity.map({ $0 < order.quantity }) ?? false,
      live.allSatisfy({ $0.currency == first.currency }),
      live.reduce(0, { $0 + Int64($1.quantity ?? 1) }) == order.quantity
    else { return [first] }
    return live
  }

  /// How many units Apple was paid for; nil where Apple has not said.
  var paidQuantity: Int64? {
    let paying = paying
    guard !paying.isEmpty, paying.allSatisfy({ $0.quantity != nil }) else { return nil }
    return paying.reduce(0) { $0 + Int64($1.quantity ?? 0) }
  }

  /// What Apple charged for the order; nil where Apple has not said.
  var paidMilliunits: Int64? {
    let prices = paying.map(\.priceMilliunits)
    guard !prices.isEmpty, !prices.contains(nil) else { return nil }
    return prices.reduce(0) { $0 + ($1 ?? 0) }
  }

  /// Whether no answer that is missing could give what the order owns to another order, or the order another transaction.
  func isOwnershipFinal(_ rules: Rules) -> Bool {
    guard claims.isFinal, !isOpen(rules) else { return false }
    // What it names comes before what its receipts bring besides, once anything is known of it.
    let isNameStuck = lookup?.unansweredSince.map { rules.asOf - $0 >= rules.stuckAfter } ?? false
    if isNameOpen, !isNameStuck { return false }
    return claims.owned.first.map { !mayLose($0, rules: rules) } ?? true
  }

  /// Whether it matters for whom the shop has the account token on file that the order's transaction carries: the order has
  /// none that is the same.
  public var asksForTokenHolder: Bool {
    guard let transaction = comparable, case .says(.some) = transaction.appAccountToken else { return false }
    return AccountToken.relation(of: order, to: transaction) != .same
  }
}
