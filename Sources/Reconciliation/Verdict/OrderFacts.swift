/// The evidence about one order: the order, Apple's records and the deliveries.
public struct OrderFacts: Sendable {
  public var order: Order
  public var deliveries: [Delivery]
  public var receipts: [Receipt]
  /// The look-up of the stated transaction ID; nil: none is needed or possible.
  public var lookup: ProofState?
  /// Transactions that valid receipts of this order contain, by key.
  public var proven: [TransactionRecord] { list.records }
  public var list: VerifiedTransactions
  /// Known transactions with the stated ID, by key, whichever receipt contains them.
  public var known: [TransactionRecord] { knownList.records }
  public var knownList: VerifiedTransactions
  public var claims: OrderClaims
  /// The user with the transaction's account token, first of this person. See ``needsAccountTokenUser``.
  public var accountTokenUser: Identifier?
  /// The user of another person whose orders claim the earlier periods of ``ownedSubscription``.
  public var subscriber: Identifier?
  /// True if another order claims a later period of ``ownedSubscription``.
  public var hasLaterOrder = false
  /// Orders of this person, this one included, with unanswered receipts of their own.
  public var unansweredOrders: [UnansweredOrder] = []
  /// For orders with several receipts: the first receipt that contains an owned transaction.
  public var sourceReceipts: [TransactionKey: Identifier] = [:]
  /// True if the order has goods, set if deliveries are not read; nil: ``deliveries`` decide.
  public var hasGoods: Bool?
  /// Transactions known from lists alone, about which Apple has not answered.
  public var awaited: Set<TransactionKey> = []

  public init(
    order: Order, deliveries: [Delivery] = [], receipts: [Receipt] = [], lookup: ProofState? = nil,
    proven: [TransactionRecord] = [], known: [TransactionRecord] = [], claims: OrderClaims = OrderClaims(),
    accountTokenUser: Identifier? = nil
  ) {
    self.order = order
    // Sorted because no sentence about them may depend on the order of rows.
    self.deliveries = deliveries.count > 1 ? deliveries.sorted { $0.deliveryId < $1.deliveryId } : deliveries
    self.receipts = receipts.count > 1 ? receipts.sorted { $0.receiptId < $1.receiptId } : receipts
    self.lookup = lookup
    list = proven.isEmpty ? .none : VerifiedTransactions(proven)
    knownList = known.isEmpty ? .none : VerifiedTransactions(known)
    self.claims = claims
    self.accountTokenUser = accountTokenUser
  }

  public func claimant(_ rules: borrowing Rules) -> Claimant {
    Claimant(
      order: order, proven: list, known: knownList, signedIds: signedIds, proofIds: proofIds,
      proofValidity: proofValidity,
      isOpen: isOpen(rules), isStatedIDUnknown: lookupOutcome == .notFound, hasGoods: hasGoods ?? (unrevokedUnits > 0)
    )
  }

  /// The outcome of the look-up; `verified` if Apple has stated the ID since it answered that it does not know it.
  var lookupOutcome: CheckOutcome? {
    guard lookup?.outcome == .notFound, let answeredAt = lookup?.answeredAt, let id = order.transactionId else {
      return lookup?.outcome
    }
    // The stated transaction of an owner of another one may be among the lost claims alone.
    let records = known + proven + claims.lost.map(\.transaction)
    let isStatedSince = records.contains { record in
      switch record.environment {
      case .production, .sandbox: record.isOf(id) && record.signedDate > answeredAt
      // Not signed by Apple.
      case .xcode, .localTesting: false
      }
    }
    return isStatedSince ? .verified : .notFound
  }

  public var proofValidity: ProofValidity {
    let sound = validReceipts
    guard !sound.isEmpty, sound.allSatisfy({ $0.state.outcome == .rejected }) else { return .notAllRejected }
    let isUnreadable = sound.allSatisfy { $0.state.isUnreadable }
    switch lookupOutcome {
    case .verified: return isUnreadable ? .allUnreadableIDKnown : .allRejectedIDKnown
    case .notFound: return .allRejected
    case .pending, .unanswered, .review, .rejected: return .allRejectedIDPending
    case .none: return isUnreadable ? .allRejectedIDPending : .allRejected
    }
  }

  /// IDs in its own signed payloads; empty unless each valid proof contains exactly one ID.
  /// A list, or an unreadable receipt, may contain the stated ID. Receipts sent by other users are left out.
  public var signedIds: [Identifier] {
    if receipts.isEmpty { return [] }
    let proofs = validReceipts.filter { $0.state.outcome != .rejected || $0.state.isUnreadable }
    guard proofs.allSatisfy({ $0.state.signedTransactionId != nil }) else { return [] }
    return proofs.filter { $0.userId == nil || $0.userId == order.userId }.compactMap { $0.state.signedTransactionId }
  }

  private var proofIds: Set<Identifier> {
    if receipts.isEmpty { return [] }
    return Set(validReceipts.lazy.filter { $0.state.isProof }.compactMap { $0.state.signedTransactionId })
  }

  /// True if an unanswered receipt could still reveal a payment.
  public var hasUnansweredProofs: Bool { receipts.contains { $0.defect == nil && $0.state.mayRevealPayment } }

  /// True if another order owns a payment that it claims, until an answer is there.
  var mayGetLostPayment: Bool {
    claims.lost.contains { !$0.isFinal && $0.transaction.environment == .production }
  }

  /// True if the content of one of its proofs is unknown for good.
  var hasUnreadableProof: Bool { validReceipts.contains { $0.state.isUnreadable } }

  func isOpen(_ rules: borrowing Rules) -> Bool {
    receipts.contains { $0.defect == nil && $0.state.mayMovePayment(rules) } || mayPreferFirstPeriod(rules)
  }

  /// True if the stated ID is known as the original ID of other periods alone, and its look-up has no answer yet.
  private func mayPreferFirstPeriod(_ rules: borrowing Rules) -> Bool {
    guard let id = order.transactionId, let lookup, lookup.mayMovePayment(rules) else { return false }
    let records = known + proven
    return records.contains { $0.isReferred(by: id) } && !records.contains { $0.isOf(id) }
  }

  /// True if another order of the person could get the payment once its receipt is answered.
  func mayLosePayment(_ payment: TransactionRecord, rules: Rules, isUnread: Bool = false) -> Bool {
    if unansweredOrders.isEmpty { return false }
    let own = claimant(rules)
    // Any other order with a verified proof precedes an order without one that is valid.
    if own.proofValidity != .notAllRejected {
      return unansweredOrders.contains {
        (!isUnread || $0.isUnread) && $0.order.orderId != order.orderId
          && payment.isPurchase(of: $0.order.productId) && rules.bundleId(of: $0.order) == payment.bundleId
      }
    }
    let kind = own.link(to: payment, stated: own.stated(rules: rules), rules: rules) ?? .list
    let rank = LinkRank(own, payment, kind, rules: rules)
    return unansweredOrders.contains { (!isUnread || $0.isUnread) && $0.couldOutrank(rank, on: payment, rules: rules) }
  }

  /// True if a payment may come from a receipt with unknown content, or from the look-up. Not for a stuck question.
  func awaitsPayment(_ rules: Rules) -> Bool {
    receipts.contains { $0.defect == nil && $0.state.isUnread && !$0.state.isStuck(rules) }
      || isStatedIDPending && lookup.map { $0.awaitsAnswer && !$0.isStuck(rules) } ?? false
  }

  /// True if a proof or the look-up is unanswered. The order is not called a duplicate until then.
  /// A stated ID that is not known yet is looked up whatever the order's proofs contain.
  func awaitsAnswer(_ rules: Rules) -> Bool {
    lookup?.awaitsAnswer ?? (isStatedIDPending && rules.appsWithLookup.contains(rules.bundleId(of: order)))
      || validReceipts.contains { $0.state.awaitsAnswer }
  }

  /// True if a missing answer may state kind or refund. Receipts list IDs and dates alone.
  func awaitsDetails(of record: TransactionRecord) -> Bool {
    awaited.contains(record.key) || lookup?.awaitsAnswer ?? false && record.transactionId == order.transactionId
  }

  /// True if a missing answer may state a refund. A signed transaction shows the state at its signing.
  /// - Parameter date: the date of a later charge. If the last statement about this one is older, an open question of
  ///   less than `audit.stuckAfter` counts as well.
  func awaitsRefund(of record: TransactionRecord, since date: Instant?, rules: Rules) -> Bool {
    let isUnanswered = validReceipts.contains {
      $0.state.awaitsAnswer && $0.state.signedTransactionId == record.transactionId
    }
    if isUnanswered || !record.isRevocationKnown && awaitsDetails(of: record) { return true }
    if record.hasRevocationStatement(since: date) { return false }
    return lookup?.isRenewalUnanswered(rules) ?? false && record.transactionId == order.transactionId
      || validReceipts.contains {
        $0.state.isRenewalUnanswered(rules)
          && $0.state.signedTransactionId ?? record.transactionId == record.transactionId
      }
  }

  /// The live purchases linked to the order whose refund a missing answer about its proofs or its stated ID may state.
  public func awaitedRefunds(_ rules: Rules) -> Set<PurchaseKey> {
    let open = validReceipts.filter { $0.state.isProof && $0.state.owesRefundStatement(rules) }
    let isStatedOpen = lookup?.owesRefundStatement(rules) ?? false
    if open.isEmpty, !isStatedOpen { return [] }
    let own = claimant(rules)
    let stated = own.stated(rules: rules)
    var awaited: Set<PurchaseKey> = []
    for record in proven + known where record.isLive && !record.hasRevocationStatement(since: rules.asOf) {
      let isAsked =
        isStatedOpen && record.isOf(order.transactionId)
        || list.contains(record.key)
          && open.contains { $0.state.signedTransactionId ?? record.transactionId == record.transactionId }
      if isAsked, own.link(to: record, stated: stated, rules: rules) != nil { awaited.insert(record.purchaseKey) }
    }
    return awaited
  }

  /// True if it was refunded, and a missing answer could show that only a part was.
  public func awaitsShare(of record: TransactionRecord) -> Bool {
    record.isRefundShareUnknown && awaitsDetails(of: record)
  }

  /// The unread source that may contain a purchase which no receipt of the order contains: one with its account token,
  /// or a period of the subscription whose original transaction ID it states; nil: there is none.
  func unreadSource(_ rules: Rules) -> String? {
    let awaitsSales = rules.awaitsSales(of: order)
    guard awaitsSales || unansweredOrders.contains(where: { $0.isUnread && isNear($0.order, rules) }) else {
      return nil
    }
    let isOfSubscription = order.transactionId.map { stated in
      (proven + known).contains { $0.expiresDate != nil && $0.originalTransactionId == stated }
    }
    guard order.appAccountToken != nil || isOfSubscription ?? false else { return nil }
    return awaitsSales
      ? "Apple's notifications of its time are not read yet, and one may contain its purchase"
      : "Apple has not answered about a receipt of the same person, which may contain its purchase"
  }

  /// True for another order whose receipt may contain a purchase within the window of this order.
  private func isNear(_ other: Order, _ rules: Rules) -> Bool {
    other.orderId != order.orderId && rules.bundleId(of: other) == rules.bundleId(of: order)
      && (other.createdAt - order.createdAt).magnitude <= rules.matchWindow
  }

  /// True if the order prefers a purchase with its account token to the one that it owns.
  func prefersToken(to payment: TransactionRecord, rules: Rules) -> Bool {
    let own = claimant(rules)
    guard !payment.isReversed, let kind = own.link(to: payment, stated: own.stated(rules: rules), rules: rules) else {
      return true
    }
    return kind > .token || kind == .token && !own.list.contains(payment.key) && !own.states(payment)
  }

  /// True if the period was upgraded, and no later period of its subscription is known.
  func awaitsUpgrade(from period: TransactionRecord) -> Bool {
    guard period.isUpgraded == true, let end = period.expiresDate else { return false }
    return period.subscriptionExpiresDate.map { $0 <= end } ?? true
  }

  var isStatedIDPending: Bool {
    order.transactionId != nil && claims.named == nil && claims.refused == nil && lookupOutcome != .notFound
  }

  /// The reason of an unpaid verdict as a clause. Without a receipt, the stated transaction is of another app.
  public func explanation(of reason: PaymentReason) -> String {
    reason == .wrongBundle && validReceipts.isEmpty ? "the transaction belongs to another app" : reason.explanation
  }

  var validReceipts: [Receipt] {
    receipts.contains { $0.defect != nil } ? receipts.filter { $0.defect == nil } : receipts
  }

  /// True for an order of amount 0 that needs no evidence of a payment, such as a gift of the shop.
  var isFree: Bool { order.amount.minorUnits == 0 && order.transactionId == nil && validReceipts.isEmpty }

  var validDeliveries: [Delivery] {
    deliveries.contains { $0.defect != nil } ? deliveries.filter { $0.defect == nil } : deliveries
  }

  /// Decides a doubtful refund: with goods in full it is withdrawn, otherwise it stays.
  /// A withdrawal has only the date of Apple's first statement without the refund, and may have come before the as-of.
  /// If the shop's status was `refunded`, the refund stays, so that no finding denies it.
  public mutating func decideDoubtfulRefunds() {
    let isMarkedRefunded = order.status == .refunded && !order.isChangedAfterAsOf
    for place in claims.owned.indices where claims.owned[place].isRefundDoubtful {
      if !isMarkedRefunded, unrevokedUnits >= Int64(order.quantity) { claims.owned[place].revocation = nil }
    }
    claims.moveLivePaymentsFirst()
  }

  var unrevokedDeliveries: [Delivery] {
    let sound = validDeliveries
    return sound.allSatisfy { $0.stands } ? sound : sound.filter { $0.stands }
  }

  /// The owned production transaction, the only one whose fields may be compared with the order.
  public var comparable: TransactionRecord? {
    claims.owned.first.flatMap { $0.environment == .production ? $0 : nil }
  }

  /// The purchases that pay for the order's units, refunded ones included: the first owned one in production, and the
  /// nearest further ones for the units that it leaves, live ones first. Other owned purchases are second charges.
  var payments: [TransactionRecord] {
    guard let first = comparable else { return [] }
    guard claims.owned.count > 1, let units = first.quantity, units > 0, units < order.quantity else { return [first] }
    func rank(_ record: TransactionRecord) -> (Int, Span, TransactionKey) {
      (record.isReversed ? 1 : 0, order.distance(to: record), record.key)
    }
    let further = claims.owned.dropFirst()
      .filter { $0.currency == nil || first.currency == nil || $0.currency == first.currency }
    var (taken, rest) = ([first], Int64(order.quantity) - Int64(units))
    for record in further.sorted(by: { rank($0) < rank($1) }) {
      let units = Int64(record.quantity ?? 1)
      guard units > 0, units <= rest else { continue }
      taken.append(record)
      rest -= units
    }
    return taken
  }

  /// The payments that Apple has refunded, in full or in part, except those whose refunded share is still to be stated.
  var refundedPayments: [TransactionRecord] { payments.filter { $0.revocation != nil && !awaitsShare(of: $0) } }

  /// The refunded part of the order's amount; nil: nothing was refunded, or an unknown share.
  var refundedAmount: Money? {
    let parts = refundedPayments.map { payment in
      payment.revocation.flatMap { $0.part(of: payment.share(of: order)) }
    }
    return parts.contains(nil) ? nil : Money.sum(parts.compactMap(\.self))
  }

  /// The units of payments that Apple has refunded in full beside a live one. The shop does not owe them any more.
  var refundedUnits: Int64 {
    guard claims.owned.count > 1, comparable?.isLive ?? false else { return 0 }
    return payments.reduce(0) { $0 + ($1.isReversed ? Int64($1.quantity ?? 1) : 0) }
  }

  /// The units that the payments are for, refunded ones included; nil: Apple has not stated a quantity.
  var paidQuantity: Int64? {
    let payments = payments
    guard !payments.isEmpty, payments.allSatisfy({ $0.quantity != nil }) else { return nil }
    return payments.reduce(0) { $0 + Int64($1.quantity ?? 0) }
  }

  /// The prices of the payments, refunded ones included; nil: Apple has not stated a price.
  var paidMilliunits: Int64? {
    // Of several Advanced Commerce items the price is that of all.
    let prices = payments.map { $0.productId == order.productId ? $0.priceMilliunits : nil }
    guard !prices.isEmpty, !prices.contains(nil) else { return nil }
    return Int64(exactly: prices.reduce(Int128(0)) { $0 + Int128($1 ?? 0) })
  }

  /// True if no missing answer could change which transaction the order owns.
  func isOwnershipFinal(_ rules: Rules) -> Bool {
    guard claims.isFinal, !isOpen(rules) else { return false }
    // A purchase under the stated ID is preferred to others in the receipts, once it is known.
    if isStatedIDPending, !(lookup?.isStuck(rules) ?? false) { return false }
    return claims.owned.first.map { !mayLosePayment($0, rules: rules) } ?? true
  }

  /// True if the user with the transaction's account token matters: the order has no equal token.
  public var needsAccountTokenUser: Bool {
    guard let transaction = comparable, case .stated(.some) = transaction.appAccountToken else { return false }
    return AccountToken.relation(of: order, to: transaction) != .same
  }
}
