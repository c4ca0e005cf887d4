/// The plain case, which nine of ten orders are: one proof, that brought the one transaction that the order names, and one
/// delivery, with nothing to find about any of them.
///
/// No rule is made here. It says what ``Judgement/init(judging:rules:)`` says, of orders about which no rule has anything to
/// say, and leaves all others to it: a test puts both beside each other, and so does every build for debugging. It is told
/// from the bytes of what waits on disk, and good as long as those are.
public struct SettledSale {
  public let order: PlainOrder
  /// Of the payment, which the order names.
  public let transactionId: BorrowedText
  public let paidAt: Instant
  public let deliveredAt: Instant
  /// Of the App Store that sold it.
  public let country: Country?
  /// As-of of the run that last asked Apple about it.
  public let checkedAt: Instant?

  /// - Parameters:
  ///   - proof: the only receipt that was sent for the order, which has brought `payment`.
  ///   - payment: all that is known of what the order names and what its proof brought, claimed by nobody else.
  ///   - delivery: the only one.
  /// - Returns: nil where the rules have to be asked. It presumes that no transaction id was to be looked up by itself, and
  ///   that Apple has answered for every receipt of the order's person.
  public init?(
    _ order: PlainOrder, proof: PlainProof, payment: PlainPayment, delivery: PlainDelivery, rules: borrowing Rules
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

  /// Whether the rules have come to the same.
  public func isSaid(by judgement: Judgement) -> Bool {
    guard case .valid(let judged) = judgement.row, case .paid(let payment) = judgement.verdict else { return false }
    return order.isSame(as: judged) && transactionId.isSame(as: payment.transactionId)
      && judgement.disposition == .settled && judgement.findings.isEmpty && judgement.isPaymentFinal
      && judgement.paidAt == paidAt && judgement.deliveredAt == deliveredAt && judgement.refundedAt == nil
      && judgement.checkedAt == checkedAt && judgement.environment == .production
      && judgement.transactionId == payment.transactionId && judgement.country == country
  }
}

/// An order that keeps the sales schema's contract, where it lies.
public struct PlainOrder {
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
  public var isChangedLater = false
  /// As that of an ``Order``.
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
      && verifiedAt == order.verifiedAt && isChangedLater == order.isChangedLater
      && refundBookedBy == order.refundBookedBy
  }

  fileprivate func isPaid(by payment: PlainPayment, _ rules: borrowing Rules) -> Bool {
    guard status == .verified, transactionId == payment.transactionId, productId == payment.productId,
      let bundle = payment.bundleId, bundleId.map({ $0 == bundle }) ?? bundle.isSame(as: rules.bundleIds.first ?? ""),
      payment.quantity.map({ $0 == quantity }) ?? true
    else { return false }
    if payment.tellsToken {
      switch (payment.appAccountToken, appAccountToken) {
      case (.none, .none): break
      case (.some(let token), .some(let own)):
        guard own == token || AccountToken.isSame(own.text, token.text) == true else { return false }
      case (.none, .some), (.some, .none): return false
      }
    }
    guard let code = payment.currency else { return true }
    guard amount.currency.isSpelt(code) else { return false }
    guard let milliunits = payment.priceMilliunits else { return true }
    return rules.tolerates(amount, charged: milliunits)
  }

  fileprivate func isDelivered(by delivery: PlainDelivery) -> Bool {
    delivery.revokedAt == nil && delivery.quantity == quantity && delivery.userId == userId
  }
}

/// A delivery that keeps the sales schema's contract, where it lies.
public struct PlainDelivery {
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

/// A receipt and what Apple said of it.
public struct PlainProof {
  public var hasDefect: Bool
  public var outcome: CheckOutcome
  public var claimedEnvironment: BorrowedText?
  /// The environment that Apple's answer or signature names.
  public var environment: AppleEnvironment?
  public var lastAttempt: Instant?
  /// As ``ProofState/isUnproven``.
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

/// What of a transaction decides whether it is a plain payment.
public struct PlainPayment {
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
  /// Whether a channel was asked that could carry an account token.
  public var tellsToken = false
  public var appAccountToken: BorrowedText?
  public var ownership: Ownership?
  public var isRenewal: Bool?
  public var hasOffer: Bool?
  public var isContradictory = false
  public var checkedAt: Instant?
  /// The country of the App Store, three letters.
  public var storefront: BorrowedText?

  public init(environment: AppleEnvironment, transactionId: BorrowedText, productId: BorrowedText) {
    (self.environment, self.transactionId, self.productId) = (environment, transactionId, productId)
  }

  /// A purchase of its own in production, no subscription, never refunded, no restore and no later period.
  fileprivate var isOrdinary: Bool {
    guard environment == .production, !isContradictory, !isRevoked, expiresDate == nil, ownership != .familyShared
    else { return false }
    if let originalTransactionId, originalTransactionId != transactionId { return false }
    if let isRenewal { return !isRenewal }
    guard let purchaseDate, let originalPurchaseDate else { return true }
    return originalPurchaseDate >= purchaseDate
  }
}
