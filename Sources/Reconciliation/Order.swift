/// What the shop believes about an order. It is never evidence of payment.
package enum OrderStatus: String, Hashable, CaseIterable, Sendable {
  case pending, verified, failed, cancelled, refunded
}

/// One purchase as our shop recorded it, in the shape that the sales schema promises.
package struct Order: Hashable, Sendable {
  package var orderId: Identifier
  /// Who placed the order.
  package var userId: Identifier
  /// nil: the only configured app.
  package var bundleId: String?
  package var productId: Identifier
  /// Units ordered, 1 or more.
  package var quantity: Int32
  /// Total of the order, zero or more.
  package var amount: Money
  package var status: OrderStatus
  /// As the client or the first verification reported it.
  package var transactionId: Identifier?
  /// The UUID given to StoreKit for this user, as text.
  package var appAccountToken: String?
  package var createdAt: Instant
  /// When the shop believed that it was paid.
  package var verifiedAt: Instant?

  package init(
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
package struct BadOrder: Hashable, Sendable {
  package var orderId: Identifier
  package var userId: Identifier
  package var bundleId: String?
  package var productId: Identifier
  package var quantity: Int32
  /// The amount as the database prints it.
  package var amountText: String
  package var currencyText: String
  package var statusText: String
  package var transactionId: Identifier?
  package var createdAt: Instant
  /// What is wrong and what was expected.
  package var defect: String

  package init(
    orderId: Identifier, userId: Identifier, bundleId: String?, productId: Identifier, quantity: Int32,
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
package enum OrderRow: Hashable, Sendable {
  case valid(Order)
  case bad(BadOrder)

  package var orderId: Identifier {
    switch self {
    case .valid(let order): order.orderId
    case .bad(let bad): bad.orderId
    }
  }
  package var userId: Identifier {
    switch self {
    case .valid(let order): order.userId
    case .bad(let bad): bad.userId
    }
  }
  package var productId: Identifier {
    switch self {
    case .valid(let order): order.productId
    case .bad(let bad): bad.productId
    }
  }
  package var bundleId: String? {
    switch self {
    case .valid(let order): order.bundleId
    case .bad(let bad): bad.bundleId
    }
  }
  package var createdAt: Instant {
    switch self {
    case .valid(let order): order.createdAt
    case .bad(let bad): bad.createdAt
    }
  }
}

/// The record that goods or access were given to a user.
package struct Delivery: Hashable, Sendable {
  package var deliveryId: Identifier
  package var orderId: Identifier?
  /// Who got it.
  package var userId: Identifier
  package var productId: Identifier
  /// Units given, 1 or more.
  package var quantity: Int32
  package var deliveredAt: Instant
  /// When the goods were taken back.
  package var revokedAt: Instant?
  /// Set when the row breaks the sales schema's contract; such a delivery counts for nothing else.
  package var defect: String?

  package init(
    deliveryId: Identifier, orderId: Identifier?, userId: Identifier, productId: Identifier, quantity: Int32 = 1,
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
  package var stands: Bool { revokedAt == nil }
}
