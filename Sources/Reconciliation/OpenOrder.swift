/// An order for which a receipt was sent that is not answered yet, and that could bring it a payment.
///
/// It may turn out to be linked to a payment that another order of the same person owns for now.
public struct OpenOrder: Hashable, Sendable {
  public var order: Order
  /// Whether it is not known yet what one of its receipts holds.
  public var isUnread: Bool

  public init(_ order: Order, isUnread: Bool) {
    self.order = order
    self.isUnread = isUnread
  }

  /// Whether its receipt, once answered, could outrank an order that owns a payment.
  func couldOutrank(_ owner: Order, on payment: TransactionRecord, rules: Rules) -> Bool {
    // An order that states an ID is linked to what it states.
    guard order.orderId != owner.orderId, order.transactionId == nil, order.productId == payment.productId,
      rules.bundleId(of: order) == payment.bundleId, let sold = payment.saleDate,
      (sold - order.createdAt).magnitude <= rules.matchWindow
    else { return false }
    let (own, others) = (AccountToken.relation(of: owner, to: payment), AccountToken.relation(of: order, to: payment))
    let isStated =
      owner.transactionId.map { $0 == payment.transactionId || $0 == payment.originalTransactionId } ?? false
    return isStated ? others.rawValue < own.rawValue : others.rawValue <= own.rawValue
  }
}
