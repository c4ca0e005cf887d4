/// The conditions of every finding on an order. Each is tested by itself; none hides another.
/// A class, so that a reason can read the facts while it is noted, without a copy.
final class FindingRules {
  let facts: OrderFacts
  let rules: Rules
  let verdict: Verdict?
  let disposition: Disposition
  let paidAt: Instant?
  let deliveredAt: Instant?
  let environment: AppleEnvironment?
  let transactionId: Identifier?
  var order: Order { facts.order }
  /// `OrderFacts.comparable`, searched once; nil while the payment is undecided.
  let comparable: TransactionRecord?
  /// The reason against comparisons that could accuse the wrong customer; nil: ownership is final.
  let openOwnershipReason: String?
  /// The reason for leaving a payment alone while an answer may move or add one; nil: none.
  let unread: String?
  var found: [Finding] = []
  let isExplaining: Bool
  var declinedReasons: [FindingKind: String] = [:]

  init(facts: consuming OrderFacts, rules: Rules, judgement: borrowing Judgement, isExplaining: Bool) {
    self.isExplaining = isExplaining
    self.rules = rules
    verdict = judgement.verdict
    disposition = judgement.disposition
    paidAt = judgement.paidAt
    deliveredAt = judgement.deliveredAt
    environment = judgement.environment
    transactionId = judgement.transactionId
    comparable =
      switch judgement.verdict {
      case .paid, .reversed: facts.comparable
      case .unpaid, .unconfirmed, .nothingToPay, .none: nil
      }
    openOwnershipReason =
      if !facts.isOwnershipFinal(rules) {
        "A missing answer could still give the payment to another order."
      } else if let payment = comparable, let source = facts.unreadSource(rules),
        facts.prefersToken(to: payment, rules: rules)
      {
        "\(source)."
      } else {
        nil
      }
    unread =
      facts.awaitsPayment(rules)
        || facts.claims.owned.contains { facts.mayLosePayment($0, rules: rules, isUnread: true) }
      ? "Apple has not answered about the stated ID, or a receipt of the same person. The answer could show another payment."
      : nil
    self.facts = facts
  }

  /// Returns all findings, worst first. The first with the largest amount at risk carries it.
  /// A column of amounts can therefore be added up. Further charges are separate amounts.
  func findings() -> [Finding] {
    considerDisposition()
    considerStatus()
    considerStuck()
    considerUnits()
    considerClaims()
    considerProofs()
    considerRefunds()
    considerDeliveries()
    considerComparison()
    considerDates()
    considerCatalogue()
    if let openOwnershipReason { requireReview(Reason(openOwnershipReason)) }
    if let unread { requireReview(Reason(unread)) { isDecidedByPayment && $0 != .look } }
    if rules.appsWithLookup.contains(rules.bundleId(of: order)),
      facts.claims.owned.contains(where: \.isRefundShareUnknown)
    {
      requireReview("Apple has not stated how much of the purchase was refunded.") { $0 == .bookRefund }
    }
    for index in found.indices where found[index].action.movesGoods {
      if found[index].evidenceCheckedAt.map({ $0 < rules.asOf }) ?? true {
        (found[index].action, found[index].units) = (.look, nil)
      }
    }
    decline(
      [.orphanPayment, .unclaimedRedemption, .renewalWithoutOrder, .orphanDelivery, .unreportedByShop],
      "This finding is about a payment, a delivery or a product week without an order.")
    decline([.boughtTwice], "This finding compares all orders of a person, after each of them is judged.")
    if isOfAppReview {
      for index in found.indices where found[index].kind.severity == .critical { found[index].severity = .minor }
    }
    // Sandbox amounts are in no total.
    if disposition == .sandbox {
      for index in found.indices {
        found[index].atStake = nil
        found[index].isAmountAtRiskUnknown = false
      }
    }
    found.sort { ($0.kind.index, $0.subject) < ($1.kind.index, $1.subject) }
    keepOne(.takeBack)
    keepOne(.bookRefund)
    // Before another finding of the order carries the amount.
    for index in found.indices where found[index].action == .bookRefund {
      found[index].refundToBook = found[index].atStake
    }
    let ofOrder = found.indices.filter { found[$0].kind != .chargedTwice }
    let placed = ofOrder.filter { found[$0].atStake != nil }
    let most = placed.compactMap { stake(at: $0) }.max()
    let carrier = placed.first { stake(at: $0) == most }
    for index in placed where index != carrier { found[index].atStake = nil }
    // Another finding carries the order's whole amount. If it carries a part, the rest stays unknown.
    if let most, most >= order.amount.minorUnits { for index in ofOrder { found[index].isAmountAtRiskUnknown = false } }
    return found
  }

  /// The amount at risk in the order's currency. Amounts of two currencies are not compared.
  private func stake(at index: Int) -> Int64? {
    found[index].atStake.flatMap { $0.currency == order.amount.currency ? $0.minorUnits : nil }
  }

  func add(
    _ kind: FindingKind, atStake: Money? = nil, on transaction: TransactionRecord? = nil, receipt: Receipt? = nil,
    delivery: Delivery? = nil, subject: Subject? = nil, isAmountAtRiskUnknown: Bool = false, severity: Severity? = nil,
    _ reason: Reason
  ) {
    var finding = Finding(kind: kind, subject: subject ?? .order(order.orderId), reason: reason)
    finding.severity = severity ?? finding.severity
    finding.orderId = order.orderId
    finding.userId = order.userId
    finding.productId = order.productId
    finding.transactionId = transaction?.shownId(stated: order.transactionId) ?? transactionId
    finding.environment = transaction?.environment ?? environment
    finding.receiptId = (receipt ?? proof(of: transaction ?? named))?.receiptId
    finding.deliveryId = delivery?.deliveryId
    finding.bundleId = rules.bundleId(of: order)
    finding.country = (transaction ?? named)?.country
    finding.amount = order.amount
    finding.atStake = atStake
    finding.isAmountAtRiskUnknown = isAmountAtRiskUnknown
    let soldAt = (transaction ?? named)?.saleDate
    // Transactions that other orders own have not paid this one.
    finding.paidAt = paidAt == nil ? nil : soldAt
    finding.occurredAt = refundDate(of: kind, on: transaction) ?? soldAt ?? order.createdAt
    finding.orderedAt = order.createdAt
    finding.deliveredAt = deliveredAt
    if let transaction = transaction ?? named, let end = transaction.subscriptionExpiresDate {
      (finding.subscriptionExpiresDate, finding.subscriptionStatus) = (end, transaction.subscriptionStatus)
    }
    finding.evidenceCheckedAt = evidenceCheckedAt(transaction, receipt)
    // A user without goods has none to take back.
    let goods = delivery.map { [$0] } ?? facts.unrevokedDeliveries
    if finding.action == .takeBack, !goods.contains(where: isWithUser) {
      finding.action = .look
      (finding.deliveryId, finding.goodsHolder) = (goods.first?.deliveryId, goods.first?.userId)
    }
    finding.units = units(for: finding.action)
    found.append(finding)
  }

  /// The date of the refund that a kind is about, or of its reversal; nil for other kinds.
  private func refundDate(of kind: FindingKind, on transaction: TransactionRecord?) -> Instant? {
    let owned = facts.claims.owned
    if kind == .refundReversedNotReinstated { return owned.compactMap { $0.revocationWithdrawnDate }.max() }
    guard kind.has(.isAboutRefund) else { return nil }
    return transaction?.revocation?.date ?? owned.compactMap { $0.revocation?.date }.max()
  }

  /// Leaves actions of earlier findings to a person; by default all that give goods.
  func requireReview(_ why: Reason? = nil, _ which: (FindingAction) -> Bool = \.deliversGoods) {
    for index in found.indices where which(found[index].action) {
      (found[index].action, found[index].units) = (.look, nil)
      if let why { found[index].reason = "\(found[index].reason) \(why)" }
    }
  }

  /// Keeps one action of several that are alike, because a job would take goods, or book the refund, once per finding.
  private func keepOne(_ action: FindingAction) {
    let takers = found.indices.filter { found[$0].action == action }
    guard takers.count > 1 else { return }
    let taker =
      action == .bookRefund
      ? takers.first
      : takers.first { found[$0].kind == .deliveredNotPaid || found[$0].kind == .refundedStillDelivered }
        ?? takers.first { found[$0].kind != .deliveredTwice }
    for index in takers where index != taker { (found[index].action, found[index].units) = (.look, nil) }
  }

  private var isDecidedByPayment: Bool {
    switch verdict {
    case .paid, .reversed: true
    case .unpaid, .unconfirmed, .nothingToPay, .none: false
    }
  }

  private func units(for action: FindingAction) -> Units? {
    switch action {
    case .deliver, .deliverRest, .reinstate:
      Units(ordered: Int64(order.quantity) - facts.refundedUnits, delivered: facts.deliveredUnits)
    case .takeBack: Units(ordered: Int64(order.quantity), delivered: facts.unrevokedUnits)
    case .bookRefund, .correctStatus, .look: nil
    }
  }

  private var named: TransactionRecord? {
    facts.claims.owned.first
      ?? (facts.claims.lost.map(\.transaction) + [verdict?.transaction].compactMap(\.self) + facts.known)
      .first { $0.isOf(transactionId) }
  }

  /// The receipt of a transaction, or else of the order. A rejected one only if the verdict rests on it.
  private func proof(of transaction: TransactionRecord?) -> Receipt? {
    let speaking = facts.validReceipts.filter { receipt in
      receipt.state.outcome != .rejected || receipt.state.reason == verdict?.reason
        || verdict?.reason == .unreadable && receipt.state.isUnreadable
    }
    let ids = transaction.map { $0.keys.map { $0.transactionId } } ?? [transactionId].compactMap(\.self)
    if ids.isEmpty { return speaking.first }
    let sourceReceiptId = facts.sourceReceipts.first { ids.contains($0.key.transactionId) }?.value
    return speaking.first { $0.state.signedTransactionId.map(ids.contains) ?? false }
      ?? sourceReceiptId.flatMap { id in speaking.first { $0.receiptId == id } }
      ?? (ids.allSatisfy { facts.list.named($0).isEmpty }
        ? nil : speaking.first { $0.state.signedTransactionId == nil && $0.state.containedCount > 0 })
      ?? speaking.first
  }

  func isWithUser(_ delivery: Delivery) -> Bool { rules.people.isSame(delivery.userId, order.userId) }

  var strangers: Reason? {
    let unrevoked = facts.unrevokedDeliveries
    guard let first = unrevoked.first, !unrevoked.contains(where: isWithUser) else { return nil }
    let more = Set(unrevoked.map(\.userId)).count - 1
    if more == 0 { return "user \(user: first.userId)" }
    return "user \(user: first.userId) and \(more) more"
  }

  /// The oldest of Apple's answers behind a finding; nil: one is missing.
  /// A vain attempt does not renew an answer, and facts known before a proof came do not answer for the proof.
  /// A finding on an owned payment does not rest on proofs that a local check refused.
  func evidenceCheckedAt(_ transaction: TransactionRecord?, _ receipt: Receipt?) -> Instant? {
    if let receipt { return receipt.state.answeredAt }
    let payment = transaction ?? facts.claims.owned.first ?? verdict?.transaction
    let isOnOwnedPayment =
      comparable != nil && facts.claims.owned.contains { $0.purchaseKey == payment?.purchaseKey }
    let receipts = facts.validReceipts.filter { !isOnOwnedPayment || !$0.state.isRefusedLocally }
    var answers = receipts.map(\.state.answeredAt)
    if let lookup = facts.lookup { answers.append(lookup.answeredAt) }
    if let payment { answers.append(payment.checkedAt) }
    let known = answers.compactMap(\.self)
    return known.count == answers.count ? known.min() : nil
  }

  func decline(_ kinds: @autoclosure () -> [FindingKind], _ because: @autoclosure () -> String) {
    guard isExplaining else { return }
    for kind in kinds() { declinedReasons[kind] = because() }
  }

  func declineOthers(_ kinds: @autoclosure () -> [FindingKind], _ because: @autoclosure () -> String) {
    guard isExplaining else { return }
    for kind in kinds() where !found.contains(where: { $0.kind == kind }) { declinedReasons[kind] = because() }
  }

  var payment: String {
    switch verdict {
    case .paid: "it is paid"
    case .nothingToPay: "nothing was to be paid"
    case .reversed: "Apple has refunded it in full"
    case .unpaid(let reason, _): "it is unpaid, because \(reason.explanation)"
    case .unconfirmed(let reason): "whether it is paid is not known, because \(reason.explanation)"
    case .none: "its payment has no verdict"
    }
  }
}
