/// The plain case, which nine of ten orders are: one proof, that brought the one transaction that the order names, and one
/// delivery, with nothing to find about any of them.
///
/// No rule is made here. It says what ``Judgement/init(judging:rules:)`` says, of orders about which no rule has anything to
/// say, and leaves all others to it: a test puts both beside each other, and so does every build for debugging.
extension Judgement {
  /// - Parameters:
  ///   - proof: the only receipt that was sent for the order, which has brought `payment`.
  ///   - payment: all that is known of what the order names and what its proof brought, claimed by nobody else.
  ///   - delivery: the only one.
  /// - Returns: nil where the rules have to be asked. It presumes that no transaction id was to be looked up by itself, and
  ///   that Apple has answered for every receipt of the order's person.
  public init?(
    settling order: Order, proof: borrowing Receipt, payment: TransactionRecord, delivery: borrowing Delivery,
    rules: borrowing Rules
  ) {
    guard Judgement.isGenuine(proof), Judgement.isOrdinary(payment), order.isPaid(by: payment, rules),
      order.isDelivered(by: delivery), let paidAt = payment.purchaseDate
    else { return nil }
    let deliveredAt = delivery.deliveredAt
    guard deliveredAt >= paidAt - rules.clockSkew, order.createdAt - paidAt <= rules.matchWindow,
      !rules.isInFuture(order.createdAt), !rules.isInFuture(paidAt), !rules.isInFuture(deliveredAt),
      order.verifiedAt.map({ !rules.isInFuture($0) }) ?? true
    else { return nil }
    if let catalogue = rules.catalogue {
      guard catalogue.knows(order.productId), catalogue.isOnSale(order.productId, at: paidAt) != false else {
        return nil
      }
    }
    self.init(settled: order, payment, deliveredAt: deliveredAt, lastAttempt: proof.state.lastAttempt)
  }

  private init(settled order: Order, _ payment: TransactionRecord, deliveredAt: Instant, lastAttempt: Instant?) {
    row = .valid(order)
    verdict = .paid(payment)
    disposition = .settled
    findings = []
    paidAt = payment.purchaseDate
    self.deliveredAt = deliveredAt
    environment = .production
    transactionId = payment.transactionId
    checkedAt = payment.checkedAt
    take(attempt: lastAttempt)
  }

  private static func isGenuine(_ proof: borrowing Receipt) -> Bool {
    guard proof.defect == nil, proof.state.outcome == .verified else { return false }
    guard let claimed = proof.claimedEnvironment, let signed = proof.state.environment else { return true }
    return claimed == signed.rawValue
  }

  /// A purchase of its own in production, no subscription, never refunded.
  private static func isOrdinary(_ payment: TransactionRecord) -> Bool {
    payment.environment == .production && !payment.isContradictory && payment.revocation == nil
      && payment.expiresDate == nil && !payment.isFamilyShared && !payment.isRestore && !payment.isLaterPeriod
  }
}

extension Order {
  fileprivate func isPaid(by payment: TransactionRecord, _ rules: borrowing Rules) -> Bool {
    guard status == .verified, transactionId == payment.transactionId, productId == payment.productId,
      payment.bundleId == rules.bundleId(of: self), payment.quantity.map({ $0 == quantity }) ?? true
    else { return false }
    switch payment.appAccountToken {
    case .silent: break
    case .says(.none): if appAccountToken != nil { return false }
    case .says(.some(let token)):
      guard let own = appAccountToken, AccountToken.isSame(own, token) else { return false }
    }
    guard let code = payment.currency else { return true }
    guard amount.currency.isSpelt(code) else { return false }
    guard let milliunits = payment.priceMilliunits, payment.hasOffer != true else { return true }
    return rules.tolerates(amount, charged: milliunits)
  }

  fileprivate func isDelivered(by delivery: borrowing Delivery) -> Bool {
    delivery.defect == nil && delivery.revokedAt == nil && delivery.quantity == quantity && delivery.userId == userId
  }
}
