import Reconciliation

/// A purchase whose refund, in full or in part, was first reported in the period.
package struct RefundRow: Hashable, Sendable {
  package var transactionId: Identifier
  /// nil if no order owns the purchase.
  package var orderId: Identifier?
  package var userId: Identifier?
  package var productId: Identifier
  /// The refunded amount, written as a negative one; nil if unknown.
  package var refunded: Money?
  /// Thousandths of a percent, 100,000 for a full refund; nil if Apple does not report it.
  package var milliPercent: Int32?
  package var purchasedAt: Instant?
  package var refundedAt: Instant
  /// Apple's `revocationReason` as a word.
  package var reason: String?
  /// nil without an order.
  package var disposition: Disposition?
  /// nil: the only app.
  package var bundleId: String?
  /// Of the App Store; nil when Apple has not stated it.
  package var country: Country?
  private(set) var app: String?

  package init(
    transactionId: Identifier, orderId: Identifier? = nil, userId: Identifier? = nil, productId: Identifier,
    refunded: Money?, milliPercent: Int32?, purchasedAt: Instant?, refundedAt: Instant, reason: String? = nil,
    disposition: Disposition? = nil
  ) {
    (self.transactionId, self.orderId, self.userId, self.productId) = (transactionId, orderId, userId, productId)
    (self.refunded, self.milliPercent, self.purchasedAt) = (refunded, milliPercent, purchasedAt)
    (self.refundedAt, self.reason, self.disposition) = (refundedAt, reason, disposition)
  }

  /// The row of a revoked transaction; nil if no revocation is in force.
  /// - Parameters:
  ///   - order: its owner, whose amount was paid; without one Apple's price counts.
  ///   - isFurther: true if other transactions paid the order, so that Apple's price is preferred.
  package init?(_ transaction: TransactionRecord, order: Order?, isFurther: Bool = false, disposition: Disposition?) {
    guard let revocation = transaction.revocation else { return nil }
    let milliPercent = revocation.isFull ? 100_000 : revocation.percentage
    let paid = transaction.paid(order, isFurther: isFurther)
    self.init(
      transactionId: transaction.shownId(stated: order?.transactionId), orderId: order?.orderId, userId: order?.userId,
      productId: order?.productId ?? transaction.productId,
      refunded: paid.flatMap { paid in milliPercent.map { paid.share(milliPercent: $0) } },
      milliPercent: milliPercent, purchasedAt: transaction.purchaseDate, refundedAt: revocation.date,
      reason: revocation.revocationReasonText, disposition: disposition)
    (bundleId, country) = (transaction.bundleId ?? order?.bundleId, transaction.country)
  }
}

extension RefundRow {
  mutating func place(in dimensions: ReportDimensions) { app = dimensions.app(bundleId) }
}

extension TransactionRecord {
  /// The amount paid: Apple's price of a further charge of the order, else the order's amount where there is one, of
  /// as many units as Apple states.
  func paid(_ order: Order?, isFurther: Bool) -> Money? {
    guard let order, !isFurther || price == nil else { return price }
    return share(of: order)
  }
}

extension Revocation {
  /// Apple's `revocationReason` as a word (`JWSTransactionDecodedPayload`); an unknown code as its number.
  var revocationReasonText: String? {
    switch reason {
    case .none: nil
    case .some(0): "other"
    case .some(1): "app_issue"
    case .some(let code): String(code)
    }
  }
}

extension RefundRow: TableRow {
  /// The refunded amount in the file; never above zero.
  var negativeAmount: Money? {
    refunded.map { Money(minorUnits: -Int64(clamping: $0.minorUnits.magnitude), currency: $0.currency) }
  }

  private var percentage: Cell {
    guard let milliPercent else { return .blank }
    let (percent, rest) = Int128(milliPercent).quotientAndRemainder(dividingBy: 1_000)
    // Whole percents, the usual case, have no decimals.
    return rest == 0 ? .decimal(percent, digits: 0) : .decimal(Int128(milliPercent), digits: 3)
  }

  static let table = ReportTable.refunds

  static let shape = ReportTable.Shape(
    title: "Refunds", formulaName: "RefundsTable", fileName: "refunds.csv",
    meaning: "Apple's refunds first reported in the period, full and partial, whatever the date of the order.",
    sheetNote: "Apple's refunds first reported in the period as negative amounts, whatever the date of the order.",
    primaryKey: ["transaction_id"], totalLabelColumn: "transaction_id",
    emptyNote: "No refund was first reported in the period.",
    moneyNote: " Negative: the share of it that Apple refunded.")

  static let columns: [Column<RefundRow>] = [
    Column("transaction_id", .id, 20, "Apple's id of the purchase.") { .id($0.transactionId) },
    Column("order_id", .id, 21, "The shop's id of the order that owns it.") { Cell($0.orderId) },
    Column("user_id", .user, 21, "Who placed that order.") { Cell($0.userId) },
    Column("product_id", .id, 18, "App Store product identifier.") { .id($0.productId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { Cell($0.refunded?.currency.code) },
    Column("amount", .amount, 14, "The refunded amount, negative. Empty when it is not known.") {
      Cell($0.negativeAmount)
    },
    Column("percentage", .percentage, 12, "The refunded share of the purchase.") { $0.percentage },
    Column("purchased_at", .instant, 20, "Apple's purchase date.") { Cell($0.purchasedAt) },
    Column("refunded_at", .instant, 20, "Apple's revocation date.") { .instant($0.refundedAt) },
    Column("reason", .spelt(), 14, "Apple's reason for the refund.") { Cell($0.reason) },
    Column("disposition", .disposition, 24, "The outcome of the order.") { Cell($0.disposition?.rawValue) },
    .app { $0.app },
  ]
}
