/// The record that goods or access were given to a user.
public typealias Delivery = DeliveryFields<Identifier, String>

/// A valid delivery in the bytes of its row or record.
public typealias BorrowedDelivery = DeliveryFields<BorrowedText, BorrowedText>

public struct DeliveryFields<ID: FieldText, Text: FieldText>: Equatable {
  public var deliveryId: ID
  public var orderId: ID?
  public var userId: ID
  public var productId: ID
  /// Units, 1 or more. With a ``defect``, as stored; nil: NULL.
  public var quantity: Int64?
  public var deliveredAt: Instant
  public var revokedAt: Instant?
  /// True if the row has no usable date, which is a defect. Another date stands in for ``deliveredAt``.
  public var isUndated = false
  /// Set if the row breaks the sales contract. Such a delivery counts for nothing else.
  public var defect: Text?

  public init(
    deliveryId: ID, orderId: ID?, userId: ID, productId: ID, quantity: Int64? = 1, deliveredAt: Instant,
    revokedAt: Instant? = nil, defect: Text? = nil
  ) {
    (self.deliveryId, self.orderId, self.userId) = (deliveryId, orderId, userId)
    (self.productId, self.quantity, self.deliveredAt) = (productId, quantity, deliveredAt)
    (self.revokedAt, self.defect) = (revokedAt, defect)
  }

  public var stands: Bool { revokedAt == nil }
}

extension DeliveryFields: FieldCoded {
  public static var blank: DeliveryFields {
    DeliveryFields(deliveryId: .blank, orderId: nil, userId: .blank, productId: .blank, deliveredAt: .blank)
  }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try codeColumns(with: &coder)
    try coder.code(&defect)
    if defect != nil { try coder.code(&isUndated) }
  }

  /// Codes the columns of the shop.
  public mutating func codeColumns<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&orderId, "order_id")
    try coder.code(&deliveryId, "delivery_id")
    try coder.code(&userId, "user_id")
    try coder.code(&productId, "product_id")
    try coder.code(&quantity, "quantity")
    try coder.code(&deliveredAt, "delivered_at")
    try coder.code(&revokedAt, "revoked_at")
  }
}

extension DeliveryFields: Hashable where ID: Hashable, Text: Hashable {}
extension DeliveryFields: Sendable where ID: Sendable, Text: Sendable {}
