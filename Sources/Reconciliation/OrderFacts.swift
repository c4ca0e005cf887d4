/// Everything that is known about one order: what we recorded, what Apple said, what the user got.
package struct OrderFacts: Sendable {
  package var order: Order
  package var deliveries: [Delivery]
  /// The receipts sent for this order.
  package var receipts: [Receipt]
  /// The look-up of the named transaction id, where the order has no receipt.
  package var lookup: ProofState?
  /// Transactions that its receipts, or the look-up, brought.
  package var brought: [TransactionRecord]
  /// What claiming has come to, with every other order taken into account.
  package var claims: OrderClaims
  /// Another user for whom the shop has the account token that Apple's transaction carries.
  package var accountTokenUser: Identifier?

  package init(
    order: Order, deliveries: [Delivery] = [], receipts: [Receipt] = [], lookup: ProofState? = nil,
    brought: [TransactionRecord] = [], claims: OrderClaims = OrderClaims(), accountTokenUser: Identifier? = nil
  ) {
    self.order = order
    // Rows come in any order; what is said about them may not depend on it.
    self.deliveries = deliveries.count > 1 ? deliveries.sorted { $0.deliveryId < $1.deliveryId } : deliveries
    self.receipts = receipts.count > 1 ? receipts.sorted { $0.receiptId < $1.receiptId } : receipts
    self.lookup = lookup
    self.brought = brought.count > 1 ? brought.sorted { $0.key < $1.key } : brought
    self.claims = claims
    self.accountTokenUser = accountTokenUser
  }

  /// The same facts as a claimant sees them.
  package var claimant: Claimant {
    Claimant(order: order, brought: brought, signedIds: signedIds, isOpen: hasOpenProofs)
  }

  /// Ids inside signed payloads, when each proof that is not false holds exactly one: a receipt that lists many, or that
  /// nobody could read yet, may hold the named one.
  package var signedIds: [Identifier] {
    if receipts.isEmpty { return [] }
    let proofs = soundReceipts.filter { $0.state.outcome != .rejected }
    let ids = proofs.compactMap(\.state.signedTransactionId)
    return ids.count == proofs.count ? ids : []
  }

  /// Whether a receipt is unanswered that could still bring a payment.
  var hasOpenProofs: Bool { receipts.contains { $0.defect == nil && $0.state.mayBringPayment } }

  /// Receipts that keep the sales schema's contract.
  var soundReceipts: [Receipt] { receipts.isEmpty ? [] : receipts.filter { $0.defect == nil } }

  /// Deliveries that keep the sales schema's contract.
  var soundDeliveries: [Delivery] {
    deliveries.contains { $0.defect != nil } ? deliveries.filter { $0.defect == nil } : deliveries
  }

  /// Deliveries that were not taken back.
  var standingDeliveries: [Delivery] {
    let sound = soundDeliveries
    return sound.allSatisfy { $0.stands } ? sound : sound.filter { $0.stands }
  }

  /// The transaction whose price, quantity and token may be compared with the order's: the one that it owns, or the named
  /// one that another order owns.
  package var comparable: TransactionRecord? {
    claims.owned.first ?? claims.lost.first { $0.transaction.transactionId == order.transactionId }?.transaction
  }

  /// Whether that transaction carries an account token and the order none.
  package var lacksTokenOfTransaction: Bool {
    guard order.appAccountToken == nil, case .says(.some) = comparable?.appAccountToken else { return false }
    return true
  }
}
