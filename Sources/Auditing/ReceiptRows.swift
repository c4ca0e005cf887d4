import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// A receipt as the shop has it, without its check.
struct ReceiptRow {
  var receipt: Receipt
  /// Whether the filters list it.
  var isListed: Bool

  static let columns = """
    r.receipt_id::text, r.order_id::text, r.user_id::text, r.environment::text, r.status::text, \
    r.received_at::timestamptz
    """

  /// All receipts in the byte order of their ids.
  ///
  /// - Parameter condition: what the filters list, on receipts aliased `r`.
  static func receipts(_ sales: SalesRows, condition: String) -> String {
    """
    SELECT \(columns), (\(condition)) AS listed FROM \(sales.schema).receipts r
    ORDER BY r.receipt_id::text COLLATE "C"
    """
  }

  /// The checks of all receipts, in the byte order of their ids.
  static func checks(where restriction: String = "TRUE") -> String {
    """
    SELECT c.subject_id, \(ProofState.columns) FROM night_audit.receipt_checks c
    WHERE c.subject_kind = 'receipt' AND \(restriction) ORDER BY c.subject_id
    """
  }

  /// A row of `receipts`.
  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    let received = try SalesRows.timestamp(row, 5)
    receipt = Receipt(
      receiptId: try row.optionalId(0) ?? "", orderId: try row.optionalId(1), userId: try row.optionalId(2),
      claimedEnvironment: try row.optionalText(3), receivedAt: received.instant ?? asOf, state: .neverChecked)
    receipt.defect = SalesRows.receiptDefect(status: try row.optionalText(4), receivedAt: received)
    isListed = try row.optionalBool(6) ?? false
  }
}
