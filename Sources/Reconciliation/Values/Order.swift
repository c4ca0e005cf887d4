/// The shop's status of an order. It is never evidence of payment.
public enum OrderStatus: String, Hashable, CaseIterable, Sendable {
  case pending, verified, failed, cancelled, refunded
}

/// One purchase as the shop recorded it.
public struct Order: Hashable, Sendable {
  public var orderId: Identifier
  public var userId: Identifier
  /// nil: the only configured app.
  public var bundleId: String?
  public var productId: Identifier
  public var quantity: Int32
  public var amount: Money
  public var status: OrderStatus
  /// As reported by the client or the first verification.
  public var transactionId: Identifier?
  public var appAccountToken: String?
  public var createdAt: Instant
  /// When the shop believed that the order was paid.
  public var verifiedAt: Instant?
  /// True if the row was changed after the as-of, so that its content then is unknown.
  public var isChangedAfterAsOf = false
  /// The last change of a row with status `refunded`; nil: another status, or unknown.
  public var refundBookedBy: Instant?

  public init(
    orderId: Identifier, userId: Identifier, productId: Identifier, quantity: Int32 = 1, amount: Money,
    status: OrderStatus, createdAt: Instant
  ) {
    (self.orderId, self.userId, self.productId, self.quantity) = (orderId, userId, productId, quantity)
    (self.amount, self.status, self.createdAt) = (amount, status, createdAt)
  }
}

/// A row that breaks the sales contract. It is reported, and counts for nothing else.
public struct BadOrder: Hashable, Sendable {
  public var orderId: Identifier
  public var userId: Identifier
  public var bundleId: String?
  public var productId: Identifier
  public var quantity: Int64?
  public var amountText: String
  public var currencyText: String
  public var statusText: String
  public var transactionId: Identifier?
  public var createdAt: Instant
  /// True if the row has no usable date. Another date stands in for it.
  public var isUndated = false
  public var defect: String

  public init(
    orderId: Identifier, userId: Identifier, bundleId: String?, productId: Identifier, quantity: Int64?,
    amountText: String, currencyText: String, statusText: String, transactionId: Identifier?, createdAt: Instant,
    defect: String
  ) {
    (self.orderId, self.userId, self.bundleId) = (orderId, userId, bundleId)
    (self.productId, self.quantity, self.amountText) = (productId, quantity, amountText)
    (self.currencyText, self.statusText, self.transactionId) = (currencyText, statusText, transactionId)
    (self.createdAt, self.defect) = (createdAt, defect)
  }
}

public enum OrderRow: Hashable, Sendable {
  case valid(Order)
  case bad(BadOrder)

  public var orderId: Identifier {
    switch self {
    case .valid(let order): order.orderId
    case .bad(let bad): bad.orderId
    }
  }
  public var userId: Identifier {
    switch self {
    case .valid(let order): order.userId
    case .bad(let bad): bad.userId
    }
  }
  public var productId: Identifier {
    switch self {
    case .valid(let order): order.productId
    case .bad(let bad): bad.productId
    }
  }
  public var bundleId: String? {
    switch self {
    case .valid(let order): order.bundleId
    case .bad(let bad): bad.bundleId
    }
  }
  public var createdAt: Instant {
    switch self {
    case .valid(let order): order.createdAt
    case .bad(let bad): bad.createdAt
    }
  }
}

/// The record that goods or access were given to a user.
public struct Delivery: Hashable, Sendable {
  public var deliveryId: Identifier
  public var orderId: Identifier?
  public var userId: Identifier
  public var productId: Identifier
  /// Units, 1 or more. With a ``defect``, as stored; nil: NULL.
  public var quantity: Int64?
  public var deliveredAt: Instant
  public var revokedAt: Instant?
  /// True if the row has no usable date, which is a defect. Another date stands in for ``deliveredAt``.
  public var isUndated = false
  /// Set if the row breaks the sales contract. Such a delivery counts for nothing else.
  public var defect: String?

  public init(
    deliveryId: Identifier, orderId: Identifier?, userId: Identifier, productId: Identifier, quantity: Int64? = 1,
    deliveredAt: Instant, revokedAt: Instant? = nil, defect: String? = nil
  ) {
    (self.deliveryId, self.orderId, self.userId) = (deliveryId, orderId, userId)
    (self.productId, self.quantity, self.deliveredAt) = (productId, quantity, deliveredAt)
    (self.revokedAt, self.defect) = (revokedAt, defect)
  }

  public var stands: Bool { revokedAt == nil }

  var subject: Subject { .row(.delivery, deliveryId, orderId: orderId, userId: userId, productId: productId) }
}
