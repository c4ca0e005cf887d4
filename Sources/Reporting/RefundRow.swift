import Reconciliation

/// A purchase that Apple took back, in full or in part, dated in the period.
package struct RefundRow: Hashable, Sendable {
  /// Apple's id of the purchase.
  package var transactionId: Identifier
  /// The order that owns it; nil without one.
  package var orderId: Identifier?
  /// Who placed that order.
  package var userId: Identifier?
  /// App Store product identifier.
  package var productId: Identifier
  /// What was refunded; written as a negative amount. nil when nobody knows how much that is.
  package var refunded: Money?
  /// Thousandths of a percent, 100,000 for all of it; nil when Apple does not say.
  package var milliPercent: Int32?
  /// Apple's purchase date.
  package var purchasedAt: Instant?
  /// Apple's revocation date.
  package var refundedAt: Instant
  /// Why, as Apple has it.
  package var reason: String?
  /// What became of the order; nil without one.
  package var disposition: Disposition?

  /// A row of known values.
  package init(
    transactionId: Identifier, orderId: Identifier? = nil, userId: Identifier? = nil, productId: Identifier,
    refunded: Money?, milliPercent: Int32?, purchasedAt: Instant?, refundedAt: Instant, reason: String? = nil,
    disposition: Disposition? = nil
  ) {
    self.transactionId = transactionId
    self.orderId = orderId
    self.userId = userId
    self.productId = productId
    self.refunded = refunded
    self.milliPercent = milliPercent
    self.purchasedAt = purchasedAt
    self.refundedAt = refundedAt
    self.reason = reason
    self.disposition = disposition
  }

  /// The row of a revoked transaction.
  ///
  /// - Parameter order: the order that owns it; its amount is what was paid. Without one Apple's price is.
  /// - Returns: nil when no revocation is in force.
  package init?(_ transaction: TransactionRecord, order: Order?, disposition: Disposition?) {
    guard let revocation = transaction.revocation else { return nil }
    let milliPercent = revocation.isFull ? 100_000 : revocation.percentage
    let paid = order?.amount ?? transaction.price
    self.init(
      transactionId: transaction.transactionId, orderId: order?.orderId, userId: order?.userId,
      productId: order?.productId ?? transaction.productId,
      refunded: paid.flatMap { paid in milliPercent.map { paid.share(milliPercent: $0) } },
      milliPercent: milliPercent, purchasedAt: transaction.purchaseDate, refundedAt: revocation.date,
      reason: revocation.reasonWord, disposition: disposition)
  }
}

extension Revocation {
  /// Apple's `revocationReason` as a word (Apple: `JWSTransactionDecodedPayload`); a newer code as its number.
  var reasonWord: String? {
    switch reason {
    case .none: nil
    case .some(0): "other"
    case .some(1): "app_issue"
    case .some(let code): String(code)
    }
  }
}
