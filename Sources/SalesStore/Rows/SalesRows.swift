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

  /// The columns of an order, its id first, and the date of its last change last.
  package static let order = SalesContract.orders.columns.map { SalesColumn($0) }

  static let updated = order.count - 1

  package static let orderColumns = SalesColumn.list(order, of: "o")

  /// The transaction ID that an order states, as `order(_:asOf:)` reads it, for a table aliased `o`. NULL for text that
  /// cannot be an ID of Apple's, as `Identifier.canBeTransactionID` has it.
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
    var order = Order.blank
    var (defects, bad) = try withUnsafePointer(to: row) { (row) throws(PostgresError) in
      var reader = CheckedRow(row, asOf: asOf, bundleIds: bundleIds)
      try order.codeColumns(with: &reader)
      var bad = BadOrder(
        orderId: order.orderId, userId: order.userId, bundleId: order.bundleId, productId: order.productId,
        quantity: reader.quantity, amountText: reader.amountText, currencyText: reader.currencyText,
        statusText: reader.statusText, transactionId: order.transactionId, createdAt: order.createdAt, defect: "")
      bad.isUndated = reader.isUndated
      return (reader.defects, bad)
    }
    let updated = try Self.timestamp(row, Self.updated)
    defects.note(updated.defect("updated_at", isRequired: true))
    if defects.text == nil, let updatedAt = updated.instant {
      Self.complete(&order, updatedAt: updatedAt, horizon)
      return .valid(order)
    }
    bad.defect = defects.text ?? ""
    return .bad(bad)
  }

  /// Completes an order by what the report's as-of and the last change decide.
  static func complete<ID: FieldText, Text: FieldText>(
    _ order: inout OrderFields<ID, Text>, updatedAt: Instant, _ horizon: Horizon?
  ) {
    // Text that cannot be an ID counts as none.
    if let id = order.transactionId, !id.withBytes(Identifier.canBeTransactionID) { order.transactionId = nil }
    if let date = order.verifiedAt, horizon?.isDatedAfterAsOf(date) ?? false { order.verifiedAt = nil }
    order.isChangedAfterAsOf = horizon?.hides(updatedAt) ?? false
    if order.status == .refunded { order.refundBookedBy = updatedAt }
  }

  static func defect(ofBundle bundle: SalesText, among bundleIds: [String]?) -> String? {
    if let defect = bundle.defect("bundle_id", isRequired: false) { return defect }
    guard let id = bundle.present?.text else {
      return (bundleIds ?? [""]).count == 1 ? nil : "bundle_id is missing, and several apps are configured"
    }
    return bundleIds?.contains(id) ?? true ? nil : "bundle_id '\(id)' belongs to no configured app"
  }

  static func defect(ofQuantity quantity: Int64?) -> String? {
    guard let quantity else { return "quantity is missing" }
    return (1...Int64(Int32.max)).contains(quantity) ? nil : "quantity \(quantity) is not from 1 to \(Int32.max)"
  }

  static func defect(_ text: SalesText, _ column: String, among words: [String]) -> String {
    text.defect(column, isRequired: true)
      ?? "\(column) '\(text.shown)' is not one of \(words.joined(separator: ", "))"
  }

  static func defect(of amount: PostgresNumeric?, in currency: Currency) -> String? {
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
  static func written(_ amount: PostgresNumeric, in currency: Currency?) -> String {
    guard amount.isFinite else { return amount.text }
    let parts = amount.text.split(separator: ".")
    var decimals = parts.count == 2 ? parts[1] : ""
    let digits = Int(currency?.digits ?? 2)
    while decimals.count > digits, decimals.last == "0" { decimals.removeLast() }
    let padded = decimals + String(repeating: "0", count: max(0, digits - decimals.count))
    return padded.isEmpty ? String(parts[0]) : "\(parts[0]).\(padded)"
  }

  // MARK: - Deliveries

  package static let delivery =
    [SalesColumn("order_id", .presentText)]
    + SalesContract.columns(SalesContract.delivery).dropFirst().map { SalesColumn($0) }

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

  /// A query of all delivery ids, unsorted.
  package var deliveryIds: String { get throws(PostgresError) { try identifiedDeliveries("d.delivery_id::text") } }

  package static func deliveryId(_ row: borrowing CopyReader) throws(PostgresError) -> Identifier {
    try row.salesText(0).shown
  }

  /// A query of some columns of the deliveries with an id, unsorted.
  package func identifiedDeliveries(_ columns: String = deliveryColumns) throws(PostgresError) -> String {
    """
    SELECT \(columns) FROM \(schema).deliveries d
    WHERE d.delivery_id::text COLLATE "C" <> '' AND \(try isKnown("d.delivered_at"))
    """
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
    var delivery = Delivery.blank
    (delivery.defect, delivery.isUndated) = try withUnsafePointer(to: row) { (row) throws(PostgresError) in
      var reader = CheckedRow(row, asOf: asOf, bundleIds: nil)
      try delivery.codeColumns(with: &reader)
      return (reader.defects.text, reader.isUndated)
    }
    if let date = delivery.revokedAt, hides(date) { delivery.revokedAt = nil }
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

  /// The condition on a receipt `r` that `receipt(_:asOf:)` finds no defect in it, text that is not UTF-8 apart. The
  /// conditions keep the planner's estimate, which a condition on each length would make much smaller.
  package static let isValidReceipt = """
    r.receipt_id::text COLLATE "C" <> '' AND r.payload IS NOT NULL
      AND greatest(octet_length(r.receipt_id::text), octet_length(r.order_id::text), octet_length(r.user_id::text),
        octet_length(r.environment::text)) <= \(SalesContract.longestId)
      AND r.status::text COLLATE "C" IN (\(receiptStatuses.map { "'\($0.text)'" }.joined(separator: ", ")))
      AND \(isShown("r.received_at")) AND (r.checked_at IS NULL OR \(isShown("r.checked_at")))
    """

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
