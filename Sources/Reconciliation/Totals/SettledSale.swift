/// A settled order without findings, decided from the bytes of its stored records.
/// Nine of ten orders have one proof, one transaction and one delivery that agree. No rule is made here: a test and
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
    _ order: BorrowedOrder, proof: BorrowedProof, payment: BorrowedPayment, delivery: BorrowedDelivery,
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
    country = Country(storefront: payment.storefront)
    // The latest attempt is when Apple was last asked.
    switch (payment.checkedAt, proof.lastAttempt) {
    case (.some(let checked), .some(let attempt)): checkedAt = max(checked, attempt)
    case (let checked, let attempt): checkedAt = checked ?? attempt
    }
  }

  public func isConfirmed(by judgement: Judgement) -> Bool {
    guard case .valid(let judged) = judgement.row, case .paid(let payment) = judgement.verdict else { return false }
    return order.isSame(as: judged) && transactionId.isSame(as: payment.transactionId)
      && judgement.disposition == .settled && judgement.findings.isEmpty && judgement.isPaymentFinal
      && judgement.paidAt == paidAt && judgement.deliveredAt == deliveredAt && judgement.refundedAt == nil
      && judgement.checkedAt == checkedAt && judgement.environment == .production
      && judgement.transactionId == payment.transactionId && judgement.country == country
  }
}

/// A valid order in the bytes of its record.
public struct BorrowedOrder {
  public var orderId: BorrowedText
  public var userId: BorrowedText
  public var bundleId: BorrowedText?
  public var productId: BorrowedText
  public var quantity: Int32
  public var amount: Money
  public var status: OrderStatus
  public var transactionId: BorrowedText?
  public var appAccountToken: BorrowedText?
  public var createdAt: Instant
  public var verifiedAt: Instant?
  public var isChangedAfterAsOf = false
  public var refundBookedBy: Instant?

  public init(
    orderId: BorrowedText, userId: BorrowedText, bundleId: BorrowedText?, productId: BorrowedText, quantity: Int32,
    amount: Money, status: OrderStatus, transactionId: BorrowedText?, appAccountToken: BorrowedText?,
    createdAt: Instant, verifiedAt: Instant?
  ) {
    (self.orderId, self.userId, self.bundleId, self.productId) = (orderId, userId, bundleId, productId)
    (self.quantity, self.amount, self.status) = (quantity, amount, status)
    (self.transactionId, self.appAccountToken) = (transactionId, appAccountToken)
    (self.createdAt, self.verifiedAt) = (createdAt, verifiedAt)
  }

  fileprivate func isSame(as order: Order) -> Bool {
    orderId.id == order.orderId && userId.id == order.userId && bundleId?.text == order.bundleId
      && productId.id == order.productId && quantity == order.quantity && amount == order.amount
      && status == order.status && transactionId.id == order.transactionId
      && appAccountToken?.text == order.appAccountToken && createdAt == order.createdAt
      && verifiedAt == order.verifiedAt && isChangedAfterAsOf == order.isChangedAfterAsOf
      && refundBookedBy == order.refundBookedBy
  }

  fileprivate func isPaid(by payment: BorrowedPayment, _ rules: borrowing Rules) -> Bool {
    guard status == .verified, transactionId == payment.transactionId, productId == payment.productId,
      let bundle = payment.bundleId, bundleId.map({ $0 == bundle }) ?? bundle.isSame(as: rules.bundleIds.first ?? ""),
      payment.quantity.map({ $0 == quantity }) ?? true
    else { return false }
    if payment.statesToken {
      switch (payment.appAccountToken, appAccountToken) {
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
    delivery.revokedAt == nil && delivery.quantity == quantity && delivery.userId == userId
  }
}

public struct BorrowedDelivery {
  public var deliveryId: BorrowedText
  public var orderId: BorrowedText?
  public var userId: BorrowedText
  public var productId: BorrowedText
  public var quantity: Int32
  public var deliveredAt: Instant
  public var revokedAt: Instant?

  public init(
    deliveryId: BorrowedText, orderId: BorrowedText?, userId: BorrowedText, productId: BorrowedText, quantity: Int32,
    deliveredAt: Instant, revokedAt: Instant?
  ) {
    (self.deliveryId, self.orderId, self.userId) = (deliveryId, orderId, userId)
    (self.productId, self.quantity) = (productId, quantity)
    (self.deliveredAt, self.revokedAt) = (deliveredAt, revokedAt)
  }
}

public struct BorrowedProof {
  public var hasDefect: Bool
  public var outcome: CheckOutcome
  public var claimedEnvironment: BorrowedText?
  public var environment: AppleEnvironment?
  public var lastAttempt: Instant?
  public var isUnproven: Bool

  public init(
    hasDefect: Bool, outcome: CheckOutcome, claimedEnvironment: BorrowedText?, environment: AppleEnvironment?,
    lastAttempt: Instant?, isUnproven: Bool
  ) {
    (self.hasDefect, self.outcome, self.lastAttempt) = (hasDefect, outcome, lastAttempt)
    (self.claimedEnvironment, self.environment, self.isUnproven) = (claimedEnvironment, environment, isUnproven)
  }

  fileprivate var isGenuine: Bool {
    guard !hasDefect, outcome == .verified, !isUnproven else { return false }
    guard let claimedEnvironment, let environment else { return true }
    return claimedEnvironment.isSame(as: environment.rawValue)
  }
}

/// The fields of a transaction that decide whether it is a plain payment.
public struct BorrowedPayment {
  public var environment: AppleEnvironment
  public var transactionId: BorrowedText
  public var originalTransactionId: BorrowedText?
  public var webOrderLineItemId: BorrowedText?
  public var bundleId: BorrowedText?
  public var productId: BorrowedText
  public var quantity: Int32?
  public var purchaseDate: Instant?
  public var originalPurchaseDate: Instant?
  public var expiresDate: Instant?
  public var isRevoked = false
  public var priceMilliunits: Int64?
  public var currency: BorrowedText?
  public var statesToken = false
  public var appAccountToken: BorrowedText?
  public var ownership: Ownership?
  public var isRenewal: Bool?
  public var hasOffer: Bool?
  public var isContradictory = false
  public var checkedAt: Instant?
  public var storefront: BorrowedText?

  public init(environment: AppleEnvironment, transactionId: BorrowedText, productId: BorrowedText) {
    (self.environment, self.transactionId, self.productId) = (environment, transactionId, productId)
  }

  /// True for a production purchase without revocation: no subscription, restore or renewal.
  fileprivate var isOrdinary: Bool {
    guard environment == .production, !isContradictory, !isRevoked, expiresDate == nil, ownership != .familyShared
    else { return false }
    if let originalTransactionId, originalTransactionId != transactionId { return false }
    if let isRenewal { return !isRenewal }
    guard let purchaseDate, let originalPurchaseDate else { return true }
    return originalPurchaseDate >= purchaseDate
  }
}
