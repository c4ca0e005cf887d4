/// The shop's status of an order. It is never evidence of payment.
public enum OrderStatus: String, Hashable, CaseIterable, Sendable {
  case pending, verified, failed, cancelled, refunded
}

extension Vocabularies {
  public static let orderStatus = Vocabulary<OrderStatus>()
}

/// One purchase as the shop recorded it.
public typealias Order = OrderFields<Identifier, String>

/// A valid order in the bytes of its row or record.
public typealias BorrowedOrder = OrderFields<BorrowedText, BorrowedText>

/// The fields of an order. A new column is a property here and its line in `codeColumns(with:)`, from which the contract
/// of the sales schema, the query of the rows, their decoding and the records on disk follow.
public struct OrderFields<ID: FieldText, Text: FieldText>: Equatable {
  public var orderId: ID
  public var userId: ID
  /// nil: the only configured app.
  public var bundleId: Text?
  public var productId: ID
  public var quantity: Int32
  public var amount: Money
  public var status: OrderStatus
  /// As reported by the client or the first verification.
  public var transactionId: ID?
  public var appAccountToken: Text?
  public var createdAt: Instant
  /// When the shop believed that the order was paid.
  public var verifiedAt: Instant?
  /// True if the row was changed after the as-of, so that its content then is unknown.
  public var isChangedAfterAsOf = false
  /// The last change of a row with status `refunded`; nil: another status, or unknown.
  public var refundBookedBy: Instant?

  public init(
    orderId: ID, userId: ID, productId: ID, quantity: Int32 = 1, amount: Money, status: OrderStatus, createdAt: Instant
  ) {
    (self.orderId, self.userId, self.productId, self.quantity) = (orderId, userId, productId, quantity)
    (self.amount, self.status, self.createdAt) = (amount, status, createdAt)
  }
}

extension OrderFields: FieldCoded {
  public static var blank: OrderFields {
    OrderFields(
      orderId: .blank, userId: .blank, productId: .blank, amount: .blank, status: .pending, createdAt: .blank)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try codeColumns(with: &coder)
    try coder.code(&isChangedAfterAsOf)
    try coder.code(&refundBookedBy)
  }

  /// Codes the columns of the shop, except the date of the last change, which decides the two fields above.
  public mutating func codeColumns<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId, "order_id")
    try coder.code(&userId, "user_id")
    try coder.code(&bundleId, "bundle_id")
    try coder.code(&productId, "product_id")
    try coder.code(&quantity, "quantity")
    coder.name("amount")
    try coder.code(amount: &amount, currency: "currency")
    coder.name("status")
    try coder.code(spelling: &status, of: Vocabularies.orderStatus)
    coder.name("transaction_id")
    try coder.code(trimmed: &transactionId)
    coder.name("app_account_token")
    try coder.code(trimmed: &appAccountToken)
    try coder.code(&createdAt, "created_at")
    try coder.code(&verifiedAt, "verified_at")
  }
}

extension OrderFields: Hashable where ID: Hashable, Text: Hashable {}
extension OrderFields: Sendable where ID: Sendable, Text: Sendable {}

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

extension BadOrder: FieldCoded {
  public static var blank: BadOrder {
    BadOrder(
      orderId: .blank, userId: .blank, bundleId: nil, productId: .blank, quantity: nil, amountText: "",
      currencyText: "", statusText: "", transactionId: nil, createdAt: .blank, defect: "")
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId)
    try coder.code(&userId)
    try coder.code(&bundleId)
    try coder.code(&productId)
    try coder.code(&quantity)
    try coder.code(&amountText)
    try coder.code(&currencyText)
    try coder.code(&statusText)
    try coder.code(&transactionId)
    try coder.code(&createdAt)
    try coder.code(&defect)
    try coder.code(&isUndated)
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

extension OrderRow: FieldCoded {
  public static var blank: OrderRow { .bad(.blank) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var valid: Order? = if case .valid(let order) = self { order } else { nil }
    try coder.code(&valid)
    if let valid {
      self = .valid(valid)
    } else {
      var bad = if case .bad(let bad) = self { bad } else { BadOrder.blank }
      try coder.code(&bad)
      self = .bad(bad)
    }
  }
}
