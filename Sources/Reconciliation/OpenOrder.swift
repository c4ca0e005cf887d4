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
  func couldOutrank(_ owner: LinkRank, on payment: TransactionRecord, rules: Rules) -> Bool {
    // An order that states an ID is linked to what it states.
    guard order.orderId != owner.orderId, order.transactionId == nil, order.productId == payment.productId,
      rules.bundleId(of: order) == payment.bundleId
    else { return false }
    let proven = Claimant(order: order, proven: .none, hasGoods: true)
    return LinkRank(proven, payment, .proof, isRefuted: false, rules: rules).precedes(owner, isSamePerson: true)
  }
}
