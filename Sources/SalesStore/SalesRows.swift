import Postgres
import Reconciliation
import Streams

/// The shop's three relations: how they are read, and how their rows become values or are called bad.
///
/// Every column is cast to the type that the sales schema promises, so that a view over `varchar` or `bigint` reads the same.
package struct SalesRows: Sendable {
  /// The schema's quoted name.
  package let schema: String

  /// Throws `PostgresError` when the name is empty or holds NUL.
  package init(schema: String) throws(PostgresError) { self.schema = try PostgresIdentifier(schema).sql }

  // MARK: - Orders

  /// The columns of `order(_:asOf:)`, for a table aliased `o`.
  package static let orderColumns = """
    o.order_id::text, o.user_id::text, o.bundle_id::text, o.product_id::text, o.quantity::bigint, o.amount::numeric, \
    o.currency::text, o.status::text, o.transaction_id::text, o.app_account_token::text, o.created_at::timestamptz, \
    o.verified_at::timestamptz
    """

  /// The order in the reader's current row.
  ///
  /// - Parameter asOf: stands in for a creation date that is missing or infinite, so that the bad row is still reported.
  package static func order(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) -> OrderRow {
    let orderId = try row.optionalId(0) ?? ""
    let userId = try row.optionalId(1) ?? ""
    let bundleId = try row.optionalText(2)
    let productId = try row.optionalId(3) ?? ""
    let quantity = try row.optionalInt64(4) ?? 0
    let amount = try row.optionalNumeric(5)
    let currencyText = try row.optionalId(6) ?? ""
    let statusText = try row.optionalId(7) ?? ""
    let transactionId = try row.optionalId(8).flatMap { $0.isEmpty ? nil : $0 }
    let created = try timestamp(row, 10)
    let verified = try timestamp(row, 11)
    let currency = Currency(currencyText)
    let status = Vocabularies.orderStatus.word(statusText)
    if let status, let currency, let amount, case .finite(let createdAt) = created, verified != .infinite,
      let minorUnits = try? amount.scaledInt64(decimals: Int(currency.digits)), minorUnits >= 0,
      quantity >= 1, let units = Int32(exactly: quantity), !orderId.isEmpty, !userId.isEmpty, !productId.isEmpty
    {
      var order = Order(
        orderId: orderId, userId: userId, productId: productId, quantity: units,
        amount: Money(minorUnits: minorUnits, currency: currency), status: status, createdAt: createdAt)
      order.bundleId = bundleId
      order.transactionId = transactionId
      order.appAccountToken = try row.optionalText(9).flatMap { $0.isEmpty ? nil : $0 }
      order.verifiedAt = verified.instant
      return .valid(order)
    }
    var defects: [String] = []
    if orderId.isEmpty { defects.append("order_id is missing") }
    if userId.isEmpty { defects.append("user_id is missing") }
    if productId.isEmpty { defects.append("product_id is missing") }
    if quantity < 1 || quantity > Int64(Int32.max) {
      defects.append("quantity \(quantity) is not from 1 to \(Int32.max)")
    }
    if status == nil {
      defects.append(
        "status '\(statusText)' is not one of \(OrderStatus.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    if let currency {
      if let defect = defect(of: amount, in: currency) { defects.append(defect) }
    } else {
      defects.append("currency '\(currencyText)' is no code of ISO 4217")
    }
    if created.instant == nil { defects.append("created_at is missing or infinite") }
    if verified == .infinite { defects.append("verified_at is infinite") }
    return .bad(
      BadOrder(
        orderId: orderId, userId: userId, bundleId: bundleId, productId: productId, quantity: Int32(clamping: quantity),
        amountText: amount?.text ?? "", currencyText: currencyText.text,
        statusText: statusText.text,
        transactionId: transactionId,
        createdAt: created.instant ?? asOf, defect: defects.joined(separator: "; ")))
  }

  private static func defect(of amount: PostgresNumeric?, in currency: Currency) -> String? {
    guard let amount else { return "amount is missing" }
    do throws(PostgresNumeric.ConversionError) {
      let minorUnits = try amount.scaledInt64(decimals: Int(currency.digits))
      return minorUnits < 0 ? "amount \(amount.text) is negative" : nil
    } catch {
      switch error {
      case .tooManyDecimals:
        return "amount \(amount.text) has more than the \(currency.digits) decimals of \(currency)"
      case .outOfRange: return "amount is too large to be money"
      case .notFinite: return "amount \(amount.text) is no number"
      }
    }
  }

  // MARK: - Deliveries

  /// The columns of `delivery(_:asOf:)`, for a table aliased `d`.
  package static let deliveryColumns = """
    d.order_id::text, d.delivery_id::text, d.user_id::text, d.product_id::text, d.quantity::bigint, \
    d.delivered_at::timestamptz, d.revoked_at::timestamptz
    """

  /// The delivery in the reader's current row.
  package static func delivery(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) -> Delivery {
    let quantity = try row.optionalInt64(4) ?? 0
    let delivered = try timestamp(row, 5)
    let revoked = try timestamp(row, 6)
    var delivery = Delivery(
      deliveryId: try row.optionalId(1) ?? "", orderId: try row.optionalId(0), userId: try row.optionalId(2) ?? "",
      productId: try row.optionalId(3) ?? "", quantity: Int32(clamping: quantity),
      deliveredAt: delivered.instant ?? asOf, revokedAt: revoked.instant)
    var defects: [String] = []
    if delivery.deliveryId.isEmpty { defects.append("delivery_id is missing") }
    if delivery.userId.isEmpty { defects.append("user_id is missing") }
    if quantity < 1 || quantity > Int64(Int32.max) {
      defects.append("quantity \(quantity) is not from 1 to \(Int32.max)")
    }
    if delivered.instant == nil { defects.append("delivered_at is missing or infinite") }
    if revoked == .infinite { defects.append("revoked_at is infinite") }
    if !defects.isEmpty { delivery.defect = defects.joined(separator: "; ") }
    return delivery
  }

  // MARK: - Receipts

  /// The words of `receipts.status`.
  private static let receiptStatuses = ["unverified", "verified", "timeout", "rejected"]

  /// What is wrong with a receipt row; nil for a sound one.
  package static func receiptDefect(status: String?, receivedAt: Timestamp) -> String? {
    var defects: [String] = []
    if !receiptStatuses.contains(status ?? "") {
      defects.append("status '\(status ?? "")' is not one of \(receiptStatuses.joined(separator: ", "))")
    }
    if receivedAt.instant == nil { defects.append("received_at is missing or infinite") }
    return defects.isEmpty ? nil : defects.joined(separator: "; ")
  }

  // MARK: - Timestamps

  /// A `timestamptz` as the shop may hold it.
  package enum Timestamp: Hashable, Sendable {
    case missing
    case infinite
    case finite(Instant)

    package var instant: Instant? {
      switch self {
      case .finite(let instant): instant
      case .missing, .infinite: nil
      }
    }
  }

  package static func timestamp(_ row: borrowing CopyReader, _ column: Int) throws(PostgresError) -> Timestamp {
    if try row.isNull(column) { return .missing }
    if try row.isInfinite(column) { return .infinite }
    return .finite(Instant(microseconds: try row.timestamp(column)))
  }
}
