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
  /// The purchase whose money it is, where a restore gave that again under an id of its own.
  package var restoredId: Identifier?
  /// nil: the only app.
  package var bundleId: String?
  /// The app's configured name, set by `place(in:)`.
  private(set) var app: String?

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
  /// - Parameters:
  ///   - order: the order that owns it; its amount is what was paid. Without one Apple's price is.
  ///   - isFurther: whether the order was paid by another one, so that what this one cost is Apple's price where that is known.
  /// - Returns: nil when no revocation is in force.
  package init?(_ transaction: TransactionRecord, order: Order?, isFurther: Bool = false, disposition: Disposition?) {
    guard let revocation = transaction.revocation else { return nil }
    let milliPercent = revocation.isFull ? 100_000 : revocation.percentage
    let paid = isFurther ? transaction.price ?? order?.amount : order?.amount ?? transaction.price
    self.init(
      transactionId: transaction.transactionId, orderId: order?.orderId, userId: order?.userId,
      productId: order?.productId ?? transaction.productId,
      refunded: paid.flatMap { paid in milliPercent.map { paid.share(milliPercent: $0) } },
      milliPercent: milliPercent, purchasedAt: transaction.purchaseDate, refundedAt: revocation.date,
      reason: revocation.reasonWord, disposition: disposition)
    bundleId = transaction.bundleId ?? order?.bundleId
    if transaction.restoresOther { restoredId = transaction.saleKey.transactionId }
  }
}

extension RefundRow {
  /// Sets what the report groups rows by.
  mutating func place(in dimensions: ReportDimensions) { app = dimensions.app(bundleId) }
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

extension RefundRow: TableRow {
  /// What was refunded as the file has it: never above zero.
  private var negativeAmount: Cell {
    refunded.map { .decimal(-abs(Int128($0.minorUnits)), digits: $0.currency.digits) } ?? .blank
  }

  private var percentage: Cell {
    guard let milliPercent else { return .blank }
    let (percent, rest) = Int128(milliPercent).quotientAndRemainder(dividingBy: 1_000)
    // Whole percents, as nearly all of them are, without decimals.
    return rest == 0 ? .decimal(percent, digits: 0) : .decimal(Int128(milliPercent), digits: 3)
  }

  static let table = ReportTable.refunds

  static let shape = ReportTable.Shape(
    title: "Refunds", formulaName: "RefundsTable", fileName: "refunds.csv",
    meaning: "What Apple took back in the period, in full or in part, whenever the order was.",
    sheetNote: "What Apple took back in the period, whenever the order was, as negative amounts.",
    primaryKey: ["transaction_id"], totalLabelColumn: "transaction_id",
    moneyNote: " Negative: the share of it that Apple gave back.")

  static let columns: [Column<RefundRow>] = [
    Column("transaction_id", .id, 20, "Apple's id of the purchase.") { .id($0.transactionId) },
    Column("order_id", .id, 21, "The shop's id of the order that owns it.") { Cell($0.orderId) },
    Column("user_id", .user, 19, "Who placed that order.") { Cell($0.userId) },
    Column("product_id", .id, 18, "App Store product identifier.") { .id($0.productId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { Cell($0.refunded?.currency.code) },
    Column("amount", .amount, 14, "What was refunded, negative. Empty when nobody knows how much that is.") {
      $0.negativeAmount
    },
    Column("percentage", .percentage, 12, "How much of the purchase was refunded.") { $0.percentage },
    Column("purchased_at", .instant, 20, "Apple's purchase date.") { Cell($0.purchasedAt) },
    Column("refunded_at", .instant, 20, "Apple's revocation date.") { .instant($0.refundedAt) },
    Column("reason", .text, 14, "Why Apple gave the money back, as Apple has it.") { Cell($0.reason) },
    Column("disposition", .disposition, 24, "The one bucket that the order ended in.") {
      Cell($0.disposition?.rawValue)
    },
    .app { $0.app },
  ]
}
