import Postgres
import Reconciliation
import Streams

// The fast path: valid rows, as nearly all are, decoded in place. `SalesRows` decodes the others and names each defect.

extension CopyReader {
  /// A valid text; empty if missing. Nil means that the row needs the full check, here and in the accessors below.
  private func plainText(_ column: Int) throws(PostgresError) -> BorrowedText? {
    guard let bytes = try bytes(column) else { return BorrowedText(UnsafeRawBufferPointer(start: nil, count: 0)) }
    guard bytes.count <= SalesContract.longestId, try isText(column) else { return nil }
    return BorrowedText(bytes)
  }

  // Nil also for a missing text.
  fileprivate func plainId(_ column: Int) throws(PostgresError) -> BorrowedText? {
    guard let text = try plainText(column), !text.bytes.isEmpty else { return nil }
    return text
  }

  fileprivate func optionalPlainId(_ column: Int) throws(PostgresError) -> BorrowedText?? {
    guard let text = try plainText(column) else { return nil }
    return .some(text.bytes.isEmpty ? nil : text)
  }

  fileprivate func optionalTrimmedId(_ column: Int) throws(PostgresError) -> BorrowedText?? {
    guard let text = try plainText(column)?.trimmed else { return nil }
    return .some(text.bytes.isEmpty ? nil : text)
  }

  fileprivate func optionalPlainInstant(_ column: Int) throws(PostgresError) -> Instant?? {
    switch try SalesRows.timestamp(self, column) {
    case .missing: .some(nil)
    case .finite(let instant): .some(instant)
    case .infinite, .beyond: nil
    }
  }
}

extension SalesRows {
  /// As `order(_:asOf:)`; nil if the row may break the contract.
  package func plainOrder(_ row: borrowing CopyReader) throws(PostgresError) -> BorrowedOrder? {
    guard let orderId = try row.plainId(0), let userId = try row.plainId(1), let bundleId = try row.optionalPlainId(2),
      let productId = try row.plainId(3), let quantity = try row.optionalInt64(4).flatMap(Int32.init(exactly:)),
      quantity >= 1, let currency = try row.plainId(6).flatMap({ Currency($0) }), let statusText = try row.plainId(7),
      let status = Vocabularies.orderStatus.word(statusText),
      let stated = try row.optionalTrimmedId(8), let token = try row.optionalTrimmedId(9),
      case .finite(let createdAt) = try Self.timestamp(row, 10), let verifiedAt = try row.optionalPlainInstant(11),
      case .finite(let updatedAt) = try Self.timestamp(row, 12),
      let amount = try row.optionalNumeric(5), let minorUnits = try? amount.scaledInt64(decimals: Int(currency.digits)),
      minorUnits >= 0, isPlain(bundleId)
    else { return nil }
    let transactionId = stated.flatMap { Identifier.canBeTransactionID($0.bytes) ? $0 : nil }
    var order = BorrowedOrder(
      orderId: orderId, userId: userId, bundleId: bundleId, productId: productId, quantity: quantity,
      amount: Money(minorUnits: minorUnits, currency: currency), status: status, transactionId: transactionId,
      appAccountToken: token, createdAt: createdAt,
      verifiedAt: verifiedAt.flatMap { horizon?.isDatedAfterAsOf($0) ?? false ? nil : $0 })
    order.isChangedAfterAsOf = horizon?.hides(updatedAt) ?? false
    if status == .refunded { order.refundBookedBy = updatedAt }
    return order
  }

  /// As `receipt(_:asOf:)`; nil if the row may break the contract.
  package static func plainReceipt(
    _ row: borrowing CopyReader, _ state: BorrowedReceipt.State
  ) throws(PostgresError) -> BorrowedReceipt? {
    guard let receiptId = try row.plainId(0), let orderId = try row.optionalPlainId(1),
      let userId = try row.optionalPlainId(2), let environment = try row.optionalPlainId(3),
      let status = try row.plainId(4), receiptStatuses.contains(where: { status.isSame(as: $0) }),
      case .finite(let receivedAt) = try timestamp(row, 5), try row.optionalPlainInstant(6) != nil, try !row.bool(7)
    else { return nil }
    return BorrowedReceipt(
      receiptId: receiptId, orderId: orderId, userId: userId, claimedEnvironment: environment, receivedAt: receivedAt,
      state: state)
  }

  /// As `delivery(_:asOf:)`; nil if the row may break the contract.
  package func plainDelivery(_ row: borrowing CopyReader) throws(PostgresError) -> BorrowedDelivery? {
    guard let orderId = try row.optionalPlainId(0), let deliveryId = try row.plainId(1),
      let userId = try row.plainId(2), let productId = try row.plainId(3),
      let quantity = try row.optionalInt64(4).flatMap(Int32.init(exactly:)),
      quantity >= 1, case .finite(let deliveredAt) = try Self.timestamp(row, 5),
      let revokedAt = try row.optionalPlainInstant(6)
    else { return nil }
    return BorrowedDelivery(
      deliveryId: deliveryId, orderId: orderId, userId: userId, productId: productId, quantity: quantity,
      deliveredAt: deliveredAt, revokedAt: revokedAt.flatMap { horizon?.hides($0) ?? false ? nil : $0 })
  }

  private func isPlain(_ bundleId: BorrowedText?) -> Bool {
    guard let bundleIds else { return true }
    guard let bundleId else { return bundleIds.count == 1 }
    return bundleIds.contains { bundleId.isSame(as: $0) }
  }
}
