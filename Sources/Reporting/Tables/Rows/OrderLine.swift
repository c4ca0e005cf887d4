import Reconciliation

package struct OrderLine: TableRow, Hashable {
  package enum Amount: Hashable, Sendable {
    case money(Money)
    /// The amount of a bad row, as the database prints it.
    case text(String, currency: String)
  }

  package var orderId: Identifier
  package var userId: Identifier
  package var productId: Identifier
  /// nil for a bad row without one.
  package var quantity: Int64?
  package var amount: Amount
  package var status: String
  package var disposition: Disposition
  package var payment: String?
  package var paymentReason: PaymentReason?
  package var transactionId: Identifier?
  package var environment: AppleEnvironment?
  package var createdAt: Instant
  package var paidAt: Instant?
  package var deliveredAt: Instant?
  package var refundedAt: Instant?
  package var checkedAt: Instant?
  package var findings: String?
  /// nil for the only app, or for a bad row without one.
  package var bundleId: String?
  /// Country of the App Store; nil if Apple did not report it.
  package var country: Country?
  var app: String?
  /// The day of `createdAt` in the report's time zone, set by `place(in:)`.
  var businessDay: String?

  package init(_ judgement: borrowing Judgement) {
    switch judgement.row {
    case .valid(let order):
      (orderId, userId, productId) = (order.orderId, order.userId, order.productId)
      (quantity, createdAt) = (Int64(order.quantity), order.createdAt)
      (amount, status) = (.money(order.amount), order.status.rawValue)
      bundleId = order.bundleId
    case .bad(let bad):
      (orderId, userId, productId) = (bad.orderId, bad.userId, bad.productId)
      (quantity, createdAt) = (bad.quantity, bad.createdAt)
      (amount, status) = (.text(bad.amountText, currency: bad.currencyText), bad.statusText)
      bundleId = bad.bundleId
    }
    disposition = judgement.disposition
    payment = judgement.verdict?.name
    paymentReason = judgement.verdict?.reason
    transactionId = judgement.transactionId
    environment = judgement.environment
    country = judgement.country
    paidAt = judgement.paidAt
    deliveredAt = judgement.deliveredAt
    refundedAt = judgement.refundedAt
    checkedAt = judgement.checkedAt
    findings = judgement.findings.isEmpty ? nil : judgement.findings.kindsText
  }

  package init(_ sale: SettledSale) {
    self.init(
      orderId: sale.order.orderId.id, userId: sale.order.userId.id, productId: sale.order.productId.id,
      quantity: Int64(sale.order.quantity), amount: .money(sale.order.amount), status: sale.order.status.rawValue,
      disposition: .settled, createdAt: sale.order.createdAt)
    payment = "paid"
    transactionId = sale.transactionId.id
    environment = .production
    (paidAt, deliveredAt, checkedAt) = (sale.paidAt, sale.deliveredAt, sale.checkedAt)
    (bundleId, country) = (sale.order.bundleId?.text, sale.country)
  }

  package init(
    orderId: Identifier, userId: Identifier, productId: Identifier, quantity: Int64?, amount: Amount, status: String,
    disposition: Disposition, createdAt: Instant
  ) {
    (self.orderId, self.userId, self.productId) = (orderId, userId, productId)
    (self.quantity, self.amount, self.status) = (quantity, amount, status)
    (self.disposition, self.createdAt) = (disposition, createdAt)
  }

  /// Sets app and business day.
  mutating func place(in dimensions: inout ReportDimensions) {
    app = dimensions.app(bundleId)
    businessDay = dimensions.businessDay(of: createdAt)
  }

  private var amountCell: Cell {
    switch amount {
    case .money(let money): Cell(money)
    case .text(let text, _): Cell(figure: text)
    }
  }

  private var currency: String {
    switch amount {
    case .money(let money): money.currency.code
    case .text(_, let currency): currency
    }
  }

  static let table = ReportTable.orders

  static let shape = ReportTable.Shape(
    title: "Orders", formulaName: "OrdersTable", fileName: "orders.csv",
    meaning: "Every order created in the period, with its outcome.",
    sheetNote: "Every order of the period.", primaryKey: ["order_id"], keysMayFail: true, pagesWide: 2)

  static let columns: [Column<OrderLine>] = [
    Column("order_id", .id, 21, "The shop's id of the order.") { .id($0.orderId) },
    Column("user_id", .user, 21, "Who placed it.") { .id($0.userId) },
    Column("product_id", .id, 18, "App Store product identifier.") { .id($0.productId) },
    Column("quantity", .number, 10, "Units ordered.") { Cell($0.quantity) },
    Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency) },
    Column("amount", .amount, 14, "Total of the order as the shop recorded it.") { $0.amountCell },
    Column("status", .text, 11, "What the shop believes.") { .text($0.status) },
    Column("disposition", .disposition, 24, "The outcome of the order; the sheet About explains each.") {
      .text($0.disposition.rawValue)
    },
    Column(
      "payment", .spelt(["paid", "reversed", "unpaid", "unconfirmed"]), 13,
      "The verdict on payment: paid, reversed (refunded by Apple), unpaid or unconfirmed."
    ) { Cell($0.payment) },
    Column("payment_reason", .spelt(), 18, "Why it is unpaid or unconfirmed.") { Cell($0.paymentReason?.rawValue) },
    Column("transaction_id", .id, 20, "Apple's id of the purchase that pays it, or that the order states.") {
      Cell($0.transactionId)
    },
    Column(
      "environment", .text, 13, "Apple's environment of the payment: Production, Sandbox, Xcode or LocalTesting."
    ) { Cell($0.environment?.rawValue) },
    Column("created_at", .instant, 20, "When the shop recorded the order.") { .instant($0.createdAt) },
    Column("paid_at", .instant, 20, "Apple's purchase date.") { Cell($0.paidAt) },
    Column("delivered_at", .instant, 20, "The latest delivery that was not taken back.") { Cell($0.deliveredAt) },
    Column("refunded_at", .instant, 20, "Apple's revocation date.") { Cell($0.refundedAt) },
    Column("checked_at", .instant, 20, "As-of of the run that asked Apple.") { Cell($0.checkedAt) },
    Column("findings", .spelt(), 40, "Kinds of the order's findings, separated by a space.") { Cell($0.findings) },
    .app { $0.app },
    .country { $0.country },
    .businessDay("Day of created_at in the report's time zone.") { $0.businessDay },
  ]
}

extension CSVText {
  /// Writes the cells of `OrderLine.columns` of a settled order from its bytes; nine of ten rows.
  mutating func put(_ sale: SettledSale, app: String?, day businessDay: String) {
    text(sale.order.orderId)
    text(sale.order.userId)
    text(sale.order.productId)
    decimal(Int128(sale.order.quantity), digits: 0)
    code(of: sale.order.amount.currency)
    decimal(Int128(sale.order.amount.minorUnits), digits: sale.order.amount.currency.digits)
    word("verified")
    word("settled")
    word("paid")
    blank()
    text(sale.transactionId)
    word("Production")
    instant(sale.order.createdAt)
    instant(sale.paidAt)
    instant(sale.deliveredAt)
    blank()
    instant(sale.checkedAt)
    blank()
    if let app { text(app) } else { blank() }
    if let country = sale.country { withUnsafeBytes(of: country.letters.bigEndian) { text($0) } } else { blank() }
    day(businessDay)
  }
}

extension [Finding] {
  /// Each kind once, in the order of the findings, separated by spaces.
  var kindsText: String {
    var words = ""
    var last: FindingKind?
    for finding in self where finding.kind != last {
      if last != nil { words += " " }
      words += finding.kind.rawValue
      last = finding.kind
    }
    return words
  }
}
