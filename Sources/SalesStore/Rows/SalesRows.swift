import Postgres
import Reconciliation
import Run
import Settings
import Streams

/// Queries of the shop's three relations, and the decoding of their rows to values or bad rows. Every column is cast to
/// its type in the sales schema, so that views over `varchar` or `bigint` work.
package struct SalesRows: Sendable {
  package let schema: String
  /// The configured apps. An order of another app, or of none where there are several, is a bad row. nil: any app.
  let bundleIds: [String]?
  /// Rows, revocations and verifications after the horizon are ignored; nil reads everything.
  package let horizon: Horizon?
  package var ordering = SalesOrdering()

  package init(schema: String, bundleIds: [String]? = nil, horizon: Horizon? = nil) throws(PostgresError) {
    self.schema = try PostgresIdentifier(schema).sql
    self.bundleIds = bundleIds
    self.horizon = horizon
  }

  package init(_ settings: Settings, horizon: Horizon? = nil) throws(PostgresError) {
    try self.init(schema: settings.salesSchema, bundleIds: settings.apps.map(\.bundleId), horizon: horizon)
  }

  /// A condition that excludes rows after the horizon. Rows with a missing or unreportable date are read, and reported.
  package func isKnown(_ column: String) throws(PostgresError) -> String {
    guard let horizon else { return "TRUE" }
    let asOf = try PostgresLiteral.timestamp(horizon.asOf.microseconds)
    let until = try PostgresLiteral.timestamp(horizon.hidesRowsUntil.microseconds)
    return "(\(column) > \(asOf) AND \(column) <= \(until)) IS NOT TRUE"
  }

  /// A condition that a date is after the horizon; NULL for a NULL date.
  package func isHidden(_ date: String) throws(PostgresError) -> String {
    guard let horizon else { return "FALSE" }
    let isLater = "\(date) > \(try PostgresLiteral.timestamp(horizon.asOf.microseconds))"
    if horizon.isPastAudit { return isLater }
    return "\(isLater) AND \(date) <= \(try PostgresLiteral.timestamp(horizon.clock.microseconds))"
  }

  package func hides(_ date: Instant) -> Bool { horizon?.hides(date) ?? false }

  /// The FROM clause of a relation's rows within the horizon.
  /// - Parameter conditions: alternatives, of which no row may fulfil two; each can use its own index.
  private func known(
    _ relation: String, as alias: String, by date: String, joining joins: String = "", where conditions: [String]
  ) throws(PostgresError) -> String {
    let from = "\(schema).\(relation) \(alias) \(joins)"
    let isKnown = try isKnown("\(alias).\(date)")
    if conditions.count == 1 { return "\(from) WHERE \(isKnown) AND (\(conditions[0]))" }
    let parts = conditions.map { "SELECT \(alias).* FROM \(from) WHERE \(isKnown) AND (\($0))" }
    return "(\(parts.joined(separator: " UNION ALL "))) \(alias)"
  }

  // MARK: - Orders

  /// The columns of an order, its id first.
  package static let order = [
    SalesColumn("order_id"), SalesColumn("user_id"), SalesColumn("bundle_id"), SalesColumn("product_id"),
    SalesColumn("quantity", .bigint), SalesColumn("amount", .numeric), SalesColumn("currency"), SalesColumn("status"),
    SalesColumn("transaction_id"), SalesColumn("app_account_token"), SalesColumn("created_at", .timestamptz),
    SalesColumn("verified_at", .timestamptz), SalesColumn("updated_at", .timestamptz),
  ]

  package static let orderColumns = SalesColumn.list(order, of: "o")

  /// The transaction ID that an order states, as `order(_:asOf:)` reads it, for a table aliased `o`.
  ///
  /// NULL for text that cannot be an ID of Apple's, as `Identifier.canBeTransactionID` has it.
  package static let statedTransaction = """
    CASE WHEN \(namedTransaction) ~ '^[A-Za-z0-9_-]{1,64}$' AND \(namedTransaction) ~ '[1-9]' THEN \(namedTransaction) END
    """

  /// The text in that column, without the white space at its ends, and compared byte by byte: there is an index on it.
  package static let namedTransaction = #"btrim(o.transaction_id::text COLLATE "C", E' \t\n\x0B\f\r')"#

  /// A query in byte order of ids, rows without an id first. No row may fulfil two of the conditions on `o`.
  package func orders(where conditions: String...) throws(PostgresError) -> String {
    "SELECT \(Self.orderColumns) FROM \(try knownOrders(where: conditions)) ORDER BY \(ordering.key(.orderId))"
  }

  func knownOrders(where conditions: [String]) throws(PostgresError) -> String {
    try known("orders", as: "o", by: "created_at", where: conditions.isEmpty ? ["TRUE"] : conditions)
  }

  /// - Parameter asOf: replaces an invalid creation date, so that the bad row is still reported.
  package func order(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) -> OrderRow {
    try Self.order(row, asOf: asOf, bundleIds: bundleIds, horizon: horizon)
  }

  /// As the method, for any app if `bundleIds` is nil. A verification after the horizon is ignored.
  package static func order(
    _ row: borrowing CopyReader, asOf: Instant, bundleIds: [String]? = nil, horizon: Horizon? = nil
  ) throws(PostgresError) -> OrderRow {
    let orderId = try row.salesText(0)
    let userId = try row.salesText(1)
    let bundleId = try row.salesText(2)
    let productId = try row.salesText(3)
    let quantity = try row.optionalInt64(4)
    let amount = try row.optionalNumeric(5)
    let currencyText = try row.salesText(6)
    let statusText = try row.salesText(7)
    let transactionId = try row.salesText(8).trimmed
    let token = try row.salesText(9).trimmed
    let created = try Self.timestamp(row, 10)
    let verified = try Self.timestamp(row, 11)
    let updated = try Self.timestamp(row, 12)
    let currency = Currency(currencyText.shown)
    let status = statusText.shown.withUTF8 { Vocabularies.orderStatus.word(BorrowedText($0)) }
    var defects = Defects()
    defects.note(orderId.defect("order_id", isRequired: true))
    defects.note(userId.defect("user_id", isRequired: true))
    defects.note(defect(ofBundle: bundleId, among: bundleIds))
    defects.note(productId.defect("product_id", isRequired: true))
    defects.note(Self.defect(ofQuantity: quantity))
    if status == nil { defects.note(Self.defect(statusText, "status", among: OrderStatus.allCases.map(\.rawValue))) }
    if let currency {
      defects.note(Self.defect(of: amount, in: currency))
    } else {
      let unknown = "currency '\(currencyText.shown)' is not a code of ISO 4217"
      defects.note(currencyText.defect("currency", isRequired: true) ?? unknown)
      if amount == nil { defects.note("amount is missing") }
    }
    defects.note(transactionId.defect("transaction_id", isRequired: false))
    defects.note(token.defect("app_account_token", isRequired: false))
    defects.note(created.defect("created_at", isRequired: true))
    defects.note(verified.defect("verified_at", isRequired: false))
    defects.note(updated.defect("updated_at", isRequired: true))
    if defects.text == nil, let status, let currency, case .finite(let createdAt) = created,
      let minorUnits = try? amount?.scaledInt64(decimals: Int(currency.digits)),
      let units = quantity.flatMap(Int32.init(exactly:))
    {
      var order = Order(
        orderId: orderId.shown, userId: userId.shown, productId: productId.shown, quantity: units,
        amount: Money(minorUnits: minorUnits, currency: currency), status: status, createdAt: createdAt)
      order.bundleId = bundleId.present?.text
      order.transactionId = transactionId.present.flatMap { $0.canBeTransactionID ? $0 : nil }
      order.appAccountToken = token.present?.text
      order.isChangedAfterAsOf = updated.instant.map { horizon?.hides($0) ?? false } ?? false
      if status == .refunded { order.refundBookedBy = updated.instant }
      order.verifiedAt = verified.instant.flatMap { horizon?.isDatedAfterAsOf($0) ?? false ? nil : $0 }
      return .valid(order)
    }
    var bad = BadOrder(
      orderId: orderId.shown, userId: userId.shown, bundleId: bundleId.present?.text, productId: productId.shown,
      quantity: quantity, amountText: amount.map { Self.written($0, in: currency) } ?? "",
      currencyText: currencyText.shown.text, statusText: statusText.shown.text, transactionId: transactionId.present,
      createdAt: created.instant ?? asOf, defect: defects.text ?? "")
    bad.isUndated = created.instant == nil
    return .bad(bad)
  }

  private static func defect(ofBundle bundle: SalesText, among bundleIds: [String]?) -> String? {
    if let defect = bundle.defect("bundle_id", isRequired: false) { return defect }
    guard let id = bundle.present?.text else {
      return (bundleIds ?? [""]).count == 1 ? nil : "bundle_id is missing, and several apps are configured"
    }
    return bundleIds?.contains(id) ?? true ? nil : "bundle_id '\(id)' belongs to no configured app"
  }

  private static func defect(ofQuantity quantity: Int64?) -> String? {
    guard let quantity else { return "quantity is missing" }
    return (1...Int64(Int32.max)).contains(quantity) ? nil : "quantity \(quantity) is not from 1 to \(Int32.max)"
  }

  private static func defect(_ text: SalesText, _ column: String, among words: [String]) -> String {
    text.defect(column, isRequired: true)
      ?? "\(column) '\(text.shown)' is not one of \(words.joined(separator: ", "))"
  }

  private static func defect(of amount: PostgresNumeric?, in currency: Currency) -> String? {
    guard let amount else { return "amount is missing" }
    do throws(PostgresNumeric.ConversionError) {
      let minorUnits = try amount.scaledInt64(decimals: Int(currency.digits))
      return minorUnits < 0 ? "amount \(written(amount, in: currency)) is negative" : nil
    } catch {
      switch error {
      case .tooManyDecimals:
        let written = written(amount, in: currency).prefix(60)
        return "amount \(written) has more than the \(currency.digits) decimals of \(currency)"
      case .outOfRange: return "amount is too large to be money"
      case .notFinite: return "amount \(amount.text) is not a number"
      }
    }
  }

  // Trailing zeros are dropped, because a server preserves them but a data lake does not.
  private static func written(_ amount: PostgresNumeric, in currency: Currency?) -> String {
    guard amount.isFinite else { return amount.text }
    let parts = amount.text.split(separator: ".")
    var decimals = parts.count == 2 ? parts[1] : ""
    let digits = Int(currency?.digits ?? 2)
    while decimals.count > digits, decimals.last == "0" { decimals.removeLast() }
    let padded = decimals + String(repeating: "0", count: max(0, digits - decimals.count))
    return padded.isEmpty ? String(parts[0]) : "\(parts[0]).\(padded)"
  }

  // MARK: - Deliveries

  package static let delivery = [
    SalesColumn("order_id", .presentText), SalesColumn("delivery_id"), SalesColumn("user_id"),
    SalesColumn("product_id"), SalesColumn("quantity", .bigint), SalesColumn("delivered_at", .timestamptz),
    SalesColumn("revoked_at", .timestamptz),
  ]

  package static let deliveryColumns = SalesColumn.list(delivery, of: "d")

  /// A query in byte order of order ids, rows without an order last. If ids may repeat, the deliveries of one order are
  /// sorted by all columns, so that the first is always the same.
  package func deliveries(where conditions: String...) throws(PostgresError) -> String {
    let rows = try known(
      "deliveries", as: "d", by: "delivered_at", where: conditions.isEmpty ? ["TRUE"] : conditions)
    return "SELECT \(Self.deliveryColumns) FROM \(rows) ORDER BY \(deliveryOrder)"
  }

  package var deliveryOrder: String {
    if ordering.hasUniqueDeliveryIDs { return ordering.key(.deliveredOrderId) }
    return """
      \(ordering.key(.deliveredOrderId)), d.delivery_id::text COLLATE "C", d.delivered_at, d.revoked_at, d.quantity, \
      d.user_id::text COLLATE "C", d.product_id::text COLLATE "C"
      """
  }

  /// A query of all delivery ids with their order ids, unsorted.
  package var deliveryIds: String {
    get throws(PostgresError) {
      """
      SELECT d.delivery_id::text, d.order_id::text FROM \(schema).deliveries d
      WHERE d.delivery_id::text COLLATE "C" <> '' AND \(try isKnown("d.delivered_at"))
      """
    }
  }

  package static func deliveryIds(
    _ row: borrowing CopyReader
  ) throws(PostgresError) -> (deliveryId: Identifier, orderId: Identifier?) {
    (try row.salesText(0).shown, try row.salesText(1).present)
  }

  /// True if the relation is a table with a unique index on the delivery id. A view may repeat rows.
  package func forbidsRepeatedDeliveries(_ connection: borrowing BlockingConnection) throws(PostgresError) -> Bool {
    try connection.execute(
      """
      SELECT EXISTS (
        SELECT 1 FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE c.oid = to_regclass($1) AND (c.relkind = 'p' OR c.relkind = 'r' AND NOT c.relhassubclass)
          AND a.attname = 'delivery_id' AND i.indnkeyatts = 1 AND i.indisunique AND i.indisvalid AND i.indimmediate
          AND i.indpred IS NULL)
      """, [.text("\(schema).deliveries")]
    ).single().bool(0)
  }

  /// - Parameter asOf: replaces an invalid date, so that the bad row is still reported.
  package func delivery(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) -> Delivery {
    try Self.delivery(row, asOf: asOf, horizon: horizon)
  }

  /// As the method. A revocation after the horizon is ignored.
  package static func delivery(
    _ row: borrowing CopyReader, asOf: Instant, horizon: Horizon? = nil
  ) throws(PostgresError) -> Delivery {
    let orderId = try row.salesText(0)
    let deliveryId = try row.salesText(1)
    let userId = try row.salesText(2)
    let productId = try row.salesText(3)
    let quantity = try row.optionalInt64(4)
    let delivered = try Self.timestamp(row, 5)
    var revoked = try Self.timestamp(row, 6)
    if let horizon, let instant = revoked.instant, horizon.hides(instant) { revoked = .missing }
    var defects = Defects()
    defects.note(orderId.defect("order_id", isRequired: false))
    defects.note(deliveryId.defect("delivery_id", isRequired: true))
    defects.note(userId.defect("user_id", isRequired: true))
    defects.note(productId.defect("product_id", isRequired: true))
    defects.note(Self.defect(ofQuantity: quantity))
    defects.note(delivered.defect("delivered_at", isRequired: true))
    defects.note(revoked.defect("revoked_at", isRequired: false))
    var delivery = Delivery(
      deliveryId: deliveryId.shown, orderId: orderId.present, userId: userId.shown, productId: productId.shown,
      quantity: quantity, deliveredAt: delivered.instant ?? asOf, revokedAt: revoked.instant,
      defect: defects.text)
    delivery.isUndated = delivered.instant == nil
    return delivery
  }

  // MARK: - Receipts

  static let receiptStatuses: [Identifier] = ["unverified", "verified", "timeout", "rejected"]

  /// The columns of a receipt, its id first, without the payload, which no report needs.
  package static let receipt = [
    SalesColumn("receipt_id"), SalesColumn("order_id"), SalesColumn("user_id"), SalesColumn("environment"),
    SalesColumn("status"), SalesColumn("received_at", .timestamptz), SalesColumn("checked_at", .timestamptz),
    SalesColumn("payload", .absence),
  ]

  package static let receiptColumns = SalesColumn.list(receipt, of: "r")

  /// The precedence among valid rows of one receipt id; must agree with `Receipt.counts(_:before:)`.
  package static let receiptPrecedence = """
    nullif(r.order_id::text COLLATE "C", '') IS NULL, r.received_at, r.order_id::text COLLATE "C", \
    coalesce(r.user_id::text COLLATE "C", ''), coalesce(r.environment::text COLLATE "C", '')
    """

  /// A query in byte order of ids, rows without an id first. No row may fulfil two of the conditions on `r`.
  /// - Parameter scope: adds a column that is true if the receipt is listed.
  package func receipts(
    where conditions: String..., listedIn scope: Selection.ReceiptScope = Selection.ReceiptScope()
  ) throws(PostgresError) -> String {
    // A single condition is joined directly; several become a subquery that is joined afterwards.
    let isOne = conditions.count <= 1
    let rows = try known(
      "receipts", as: "r", by: "received_at", joining: isOne ? scope.joins : "",
      where: conditions.isEmpty ? ["TRUE"] : conditions)
    return """
      SELECT \(Self.receiptColumns), (\(scope.condition)) AS further FROM \(rows) \(isOne ? "" : scope.joins)
      ORDER BY \(ordering.key(.receiptId))
      """
  }

  /// - Parameter asOf: replaces an invalid date, so that the bad row is still reported.
  package static func receipt(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) -> Receipt {
    let receiptId = try row.salesText(0)
    let orderId = try row.salesText(1)
    let userId = try row.salesText(2)
    let environment = try row.salesText(3)
    let status = try row.salesText(4)
    let received = try Self.timestamp(row, 5)
    let checked = try Self.timestamp(row, 6)
    var defects = Defects()
    defects.note(receiptId.defect("receipt_id", isRequired: true))
    defects.note(orderId.defect("order_id", isRequired: false))
    defects.note(userId.defect("user_id", isRequired: false))
    defects.note(environment.defect("environment", isRequired: false))
    if !Self.receiptStatuses.contains(status.shown) {
      defects.note(Self.defect(status, "status", among: Self.receiptStatuses.map(\.text)))
    }
    defects.note(received.defect("received_at", isRequired: true))
    defects.note(checked.defect("checked_at", isRequired: false))
    if try row.bool(7) { defects.note("payload is missing") }
    var receipt = Receipt(
      receiptId: receiptId.shown, orderId: orderId.present, userId: userId.present,
      claimedEnvironment: environment.present?.text, receivedAt: received.instant ?? asOf, state: .neverChecked,
      defect: defects.text)
    receipt.isUndated = received.instant == nil
    return receipt
  }
}

extension Receipt {
  /// True if a row takes precedence over another of its id. Valid rows are first, then as in
  /// `SalesRows.receiptPrecedence`.
  package static func counts(_ row: Receipt, before other: Receipt) -> Bool {
    func rank(_ receipt: Receipt) -> Int { (receipt.defect == nil ? 0 : 2) + (receipt.orderId == nil ? 1 : 0) }
    func texts(_ receipt: Receipt) -> (Identifier, Identifier, Identifier, Identifier) {
      (
        receipt.orderId ?? "", receipt.userId ?? "", Identifier(receipt.claimedEnvironment ?? ""),
        Identifier(receipt.defect ?? "")
      )
    }
    let (one, two) = (rank(row), rank(other))
    if one != two { return one < two }
    return row.receivedAt == other.receivedAt ? texts(row) < texts(other) : row.receivedAt < other.receivedAt
  }
}

// The defects of a row; needs no allocation for a valid one.
private struct Defects {
  private(set) var text: String?

  mutating func note(_ defect: String?) {
    guard let defect else { return }
    text = text.map { "\($0); \(defect)" } ?? defect
  }
}
