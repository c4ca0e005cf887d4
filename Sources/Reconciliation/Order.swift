/// What the shop believes about an order. It is never evidence of payment.
public enum OrderStatus: String, Hashable, CaseIterable, Sendable {
  case pending, verified, failed, cancelled, refunded
}

/// One purchase as our shop recorded it, in the shape that the sales schema promises.
public struct Order: Hashable, Sendable {
  public var orderId: Identifier
  /// Who placed the order.
  public var userId: Identifier
  /// nil: the only configured app.
  public var bundleId: String?
  public var productId: Identifier
  /// Units ordered, 1 or more.
  public var quantity: Int32
  /// Total of the order, zero or more.
  public var amount: Money
  public var status: OrderStatus
  /// As the client or the first verification reported it.
  public var transactionId: Identifier?
  /// The UUID given to StoreKit for this user, as text.
  public var appAccountToken: String?
  public var createdAt: Instant
  /// When the shop believed that it was paid.
  public var verifiedAt: Instant?
  /// Whether the row was changed after the as-of: what it said then is not known.
  public var isChangedLater = false
  /// Of an order that the shop calls refunded, when the row was last changed: it said so by then. nil of all others, and where
  /// that is not told.
  public var refundBookedBy: Instant?

  public init(
    orderId: Identifier, userId: Identifier, productId: Identifier, quantity: Int32 = 1, amount: Money,
    status: OrderStatus, createdAt: Instant
  ) {
    self.orderId = orderId
    self.userId = userId
    self.productId = productId
    self.quantity = quantity
    self.amount = amount
    self.status = status
    self.createdAt = createdAt
  }
}

/// A row of the sales schema that breaks its contract: reported with its id and what is wrong, and counted for nothing.
public struct BadOrder: Hashable, Sendable {
  public var orderId: Identifier
  public var userId: Identifier
  public var bundleId: String?
  public var productId: Identifier
  /// As the database has it; nil where it has none.
  public var quantity: Int64?
  /// The amount as the database prints it.
  public var amountText: String
  public var currencyText: String
  public var statusText: String
  public var transactionId: Identifier?
  public var createdAt: Instant
  /// Whether the row has no date that can be used, so that another one stands in for it.
  public var isUndated = false
  /// What is wrong and what was expected.
  public var defect: String

  public init(
    orderId: Identifier, userId: Identifier, bundleId: String?, productId: Identifier, quantity: Int64?,
    amountText: String, currencyText: String, statusText: String, transactionId: Identifier?, createdAt: Instant,
    defect: String
  ) {
    self.orderId = orderId
    self.userId = userId
    self.bundleId = bundleId
    self.productId = productId
    self.quantity = quantity
    self.amountText = amountText
    self.currencyText = currencyText
    self.statusText = statusText
    self.transactionId = transactionId
    self.createdAt = createdAt
    self.defect = defect
  }
}

/// An order row after parsing at the edge.
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
  /// Who got it.
  public var userId: Identifier
  public var productId: Identifier
  /// Units given, 1 or more. Where ``defect`` is set, as the database has it; nil where it has none.
  public var quantity: Int64?
  public var deliveredAt: Instant
  /// When the goods were taken back.
  public var revokedAt: Instant?
  /// Whether the row has no date that can be used, which is a defect, so that another one stands in for ``deliveredAt``.
  public var isUndated = false
  /// Set when the row breaks the sales schema's contract; such a delivery counts for nothing else.
  public var defect: String?

  public init(
    deliveryId: Identifier, orderId: Identifier?, userId: Identifier, productId: Identifier, quantity: Int64? = 1,
    deliveredAt: Instant, revokedAt: Instant? = nil, defect: String? = nil
  ) {
    self.deliveryId = deliveryId
    self.orderId = orderId
    self.userId = userId
    self.productId = productId
    self.quantity = quantity
    self.deliveredAt = deliveredAt
    self.revokedAt = revokedAt
    self.defect = defect
  }

  /// Whether the goods are still with the user.
  public var stands: Bool { revokedAt == nil }

  /// What a finding on the row itself stands on.
  var subject: Subject { .row(.delivery, deliveryId, orderId: orderId, userId: userId, productId: productId) }
}
