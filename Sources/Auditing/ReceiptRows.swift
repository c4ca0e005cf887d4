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

  /// Receipts in the byte order of their ids.
  ///
  /// - Parameters:
  ///   - condition: what the filters list, on receipts aliased `r`.
  ///   - restriction: which of them are read.
  static func receipts(
    _ sales: SalesRows, condition: String, where restriction: String = "TRUE"
  ) throws(PostgresError) -> String {
    """
    SELECT \(SalesRows.receiptColumns), (\(condition)) AS listed FROM \(sales.schema).receipts r
    WHERE \(try sales.isKnown("r.received_at")) AND \(restriction) ORDER BY r.receipt_id::text COLLATE "C"
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
    receipt = try SalesRows.receipt(row, asOf: asOf)
    isListed = try row.optionalBool(8) ?? false
  }
}
