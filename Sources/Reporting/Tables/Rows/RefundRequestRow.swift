import Reconciliation

/// An open refund request of a customer, with the facts that Apple asks the shop for.
package struct RefundRequestRow: Hashable, Sendable {
  package var transactionId: Identifier
  package var orderId: Identifier?
  /// The user of that order; without an order the user whose receipt or token leads to the transaction.
  package var userId: Identifier?
  package var productId: Identifier
  /// The amount paid; nil where no record states it.
  package var paid: Money?
  package var request: RefundRequest
  /// The goods of the order; nil without one.
  package var goods: DeliveredGoods?
  /// Earlier refunds of the same person; nil where the person is unknown.
  package var refundsBefore: Int?
  /// nil: the only app.
  package var bundleId: String?
  /// The app's configured name, set by `place(in:)`.
  private(set) var app: String?

  /// The units of an order that its user has.
  package struct DeliveredGoods: Hashable, Sendable {
    package var status: DeliveryStatus
    package var delivered: Int64
    package var ordered: Int64

    package init(status: DeliveryStatus, delivered: Int64, ordered: Int64) {
      (self.status, self.delivered, self.ordered) = (status, delivered, ordered)
    }

    package init(_ facts: OrderFacts) {
      self.init(status: facts.deliveryStatus, delivered: facts.deliveredUnits, ordered: Int64(facts.order.quantity))
    }
  }

  package init(
    transactionId: Identifier, orderId: Identifier? = nil, userId: Identifier? = nil, productId: Identifier,
    paid: Money?, request: RefundRequest, goods: DeliveredGoods? = nil, refundsBefore: Int? = nil,
    bundleId: String? = nil
  ) {
    (self.transactionId, self.orderId, self.userId) = (transactionId, orderId, userId)
    (self.productId, self.paid, self.request, self.goods) = (productId, paid, request, goods)
    (self.refundsBefore, self.bundleId) = (refundsBefore, bundleId)
  }

  /// The row of a transaction that has an open request, else nil.
  package init?(_ transaction: TransactionRecord, facts: OrderFacts?, isFurther: Bool = false, userId: Identifier?) {
    guard let request = transaction.openRefundRequest else { return nil }
    let order = facts?.order
    self.init(
      transactionId: transaction.transactionId, orderId: order?.orderId, userId: order?.userId ?? userId,
      productId: order?.productId ?? transaction.productId, paid: transaction.paid(order, isFurther: isFurther),
      request: request, goods: facts.map(DeliveredGoods.init), bundleId: transaction.bundleId ?? order?.bundleId)
  }

  mutating func place(in dimensions: ReportDimensions) { app = dimensions.app(bundleId) }
}

extension RefundRequestRow: TableRow {
  static let table = ReportTable.refundRequests

  static let shape = ReportTable.Shape(
    title: "Refund requests", formulaName: "RefundRequestsTable", fileName: "refund-requests.csv",
    meaning: "Open refund requests of customers, with the facts that Apple asks for.",
    sheetNote: "Apple has not decided these requests. Answer before the deadline (Send Consumption Information).",
    primaryKey: ["transaction_id"], totalLabelColumn: "transaction_id",
    emptyNote: "No refund request is open. Apple reports requests only for apps with a Server API key.")

  static let columns: [Column<RefundRequestRow>] = [
    Column("transaction_id", .id, 20, "Apple's transaction ID.") { .id($0.transactionId) },
    Column("order_id", .id, 21, "The order that owns the transaction.") { Cell($0.orderId) },
    Column("user_id", .user, 21, "The user of that order, or of the receipt that contains the transaction.") {
      Cell($0.userId)
    },
    Column("product_id", .id, 18, "App Store product identifier.") { .id($0.productId) },
    Column("currency", .currency, 10, "ISO 4217 code.") { Cell($0.paid?.currency.code) },
    Column("amount", .amount, 14, "The amount paid. Empty when no record states it.") { Cell($0.paid) },
    Column("requested_at", .instant, 20, "When Apple signed the request.") { .instant($0.request.date) },
    Column("deadline", .instant, 20, "The last moment for an answer to Apple: 12 hours after the request.") {
      .instant($0.request.deadline)
    },
    Column("reason", .spelt(), 26, "The customer's reason (Apple: consumptionRequestReason).") {
      Cell($0.request.reason)
    },
    Column(
      "delivery_status", .spelt(DeliveryStatus.allCases.map(\.rawValue)), 22,
      "Apple's deliveryStatus: whether the user has all units ordered. Empty without an order."
    ) { Cell($0.goods?.status.rawValue) },
    Column("units_delivered", .number, 17, "Units that the user has. Empty without an order.") {
      Cell($0.goods?.delivered)
    },
    Column("units_ordered", .number, 15, "Units of the order. Empty without an order.") {
      Cell($0.goods?.ordered)
    },
    Column("refunds_before", .number, 16, "Earlier refunds of the same person. Empty when the person is unknown.") {
      Cell($0.refundsBefore)
    },
    .app { $0.app },
  ]
}
