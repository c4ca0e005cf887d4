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

  /// The checks of all receipts, in the byte order of their ids.
  static func checks(where restriction: String = "TRUE") -> String {
    """
    SELECT c.subject_id, \(ProofState.columns) FROM night_audit.receipt_checks c
    WHERE c.subject_kind = 'receipt' AND \(restriction) ORDER BY c.subject_id
    """
  }

  /// A row of `receipts`.
  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    receipt = try SalesRows.receipt(row, asOf: asOf)
    isListed = try row.optionalBool(8) ?? false
  }
}
