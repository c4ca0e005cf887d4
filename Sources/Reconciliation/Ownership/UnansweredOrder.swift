/// An order whose unanswered receipt could reveal a payment that another order owns for now.
public struct UnansweredOrder: Hashable, Sendable {
  public var order: Order
  public var isUnread: Bool

  public init(_ order: Order, isUnread: Bool) {
    self.order = order
    self.isUnread = isUnread
  }

  /// True if the order would precede the owner of a payment with a verified proof.
  func couldOutrank(_ owner: LinkRank, on payment: TransactionRecord, rules: Rules) -> Bool {
    // A proof links an order to a purchase, whatever ID the order states.
    guard order.orderId != owner.orderId, payment.isPurchase(of: order.productId),
      rules.bundleId(of: order) == payment.bundleId
    else { return false }
    let proven = Claimant(order: order, proven: .none, hasGoods: true)
    return LinkRank(proven, payment, .proof, rules: rules).precedes(owner, isSamePerson: true)
  }
}
