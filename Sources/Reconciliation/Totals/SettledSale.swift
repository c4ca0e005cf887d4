/// A settled order without findings, decided from the bytes of its stored records.
/// Nine of ten orders have one proof, one purchase and one delivery that agree. No rule is made here: a test and
/// every debug build compare the result with ``Judgement/init(judging:rules:)``. It is valid as long as the bytes.
public struct SettledSale {
  public let order: BorrowedOrder
  public let transactionId: BorrowedText
  public let paidAt: Instant
  public let deliveredAt: Instant
  public let country: Country?
  public let checkedAt: Instant?

  /// Decides an order with one proof, which contains `payment`, and one delivery.
  /// The caller ensures that no other order claims the payment, that no ID was to be looked up by itself, and that
  /// Apple has answered for every receipt of the person.
  /// - Returns: nil if the rules must decide.
  public init?(
    _ order: BorrowedOrder, proof: BorrowedReceipt, payment: BorrowedTransaction, delivery: BorrowedDelivery,
    rules: borrowing Rules
  ) {
    guard proof.isGenuine, payment.isOrdinary, order.isPaid(by: payment, rules), order.isDelivered(by: delivery),
      let paidAt = payment.purchaseDate
    else { return nil }
    let deliveredAt = delivery.deliveredAt
    guard deliveredAt >= paidAt - rules.clockSkew, order.createdAt - paidAt <= rules.matchWindow,
      !rules.isInFuture(order.createdAt), !rules.isInFuture(paidAt), !rules.isInFuture(deliveredAt),
      order.verifiedAt.map({ !rules.isInFuture($0) }) ?? true
    else { return nil }
    if let catalogue = rules.catalogue {
      let productId = order.productId.id
      guard catalogue.knows(productId), catalogue.isOnSale(productId, at: paidAt) != false else { return nil }
    }
    self.order = order
    transactionId = payment.transactionId
    (self.paidAt, self.deliveredAt) = (paidAt, deliveredAt)
    country = Country(storefront: payment.details.storefront)
    // The latest attempt is when Apple was last asked.
    switch (payment.checkedAt, proof.state.lastAttempt) {
    case (.some(let checked), .some(let attempt)): checkedAt = max(checked, attempt)
    case (let checked, let attempt): checkedAt = checked ?? attempt
    }
  }

  public func isConfirmed(by judgement: Judgement) -> Bool {
    guard case .valid(let judged) = judgement.row, case .paid(let payment) = judgement.verdict else { return false }
    return order.orderId.isSame(as: judged.orderId) && transactionId.isSame(as: payment.transactionId)
      && judgement.disposition == .settled && judgement.findings.isEmpty && judgement.isPaymentFinal
      && judgement.paidAt == paidAt && judgement.deliveredAt == deliveredAt && judgement.refundedAt == nil
      && judgement.checkedAt == checkedAt && judgement.environment == .production
      && judgement.transactionId == payment.transactionId && judgement.country == country
  }
}

extension BorrowedOrder {
  fileprivate func isPaid(by payment: BorrowedTransaction, _ rules: borrowing Rules) -> Bool {
    guard status == .verified, transactionId == payment.transactionId, productId == payment.productId,
      let bundle = payment.bundleId, bundleId.map({ $0 == bundle }) ?? bundle.isSame(as: rules.bundleIds.first ?? ""),
      payment.quantity.map({ $0 == quantity }) ?? true
    else { return false }
    if case .stated(let stated) = payment.appAccountToken {
      switch (stated, appAccountToken) {
      case (.none, .none): break
      case (.some(let token), .some(let own)):
        guard own == token || AccountToken.isSame(own.text, token.text) == true else { return false }
      case (.none, .some), (.some, .none): return false
      }
    }
    guard let code = payment.currency else { return true }
    guard amount.currency.hasCode(code) else { return false }
    guard let milliunits = payment.priceMilliunits else { return true }
    return rules.tolerates(amount, charged: milliunits)
  }

  fileprivate func isDelivered(by delivery: BorrowedDelivery) -> Bool {
    delivery.revokedAt == nil && delivery.quantity == Int64(quantity) && delivery.userId == userId
  }
}

extension BorrowedReceipt {
  fileprivate var isGenuine: Bool {
    guard defect == nil, state.outcome == .verified, !state.isUnproven else { return false }
    guard let claimedEnvironment, let environment = state.environment else { return true }
    return claimedEnvironment.isSame(as: environment.rawValue)
  }
}

extension BorrowedTransaction {
  /// True for a production purchase without revocation: no subscription, restore or renewal.
  fileprivate var isOrdinary: Bool {
    guard environment == .production, !isContradictory, revocation == nil, expiresDate == nil,
      ownership != .familyShared
    else { return false }
    if let originalTransactionId, originalTransactionId != transactionId { return false }
    if let isRenewal { return !isRenewal }
    guard let purchaseDate, let originalPurchaseDate else { return true }
    return originalPurchaseDate >= purchaseDate
  }
}
