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

  /// Rows of one id in an order of their own, in front the one that counts: which of them that is must not depend on how a
  /// server sorts, and is the one whose payload is judged. The others break the contract.
  static func ordered(_ rows: [ReceiptRow]) -> [ReceiptRow] {
    var ordered = rows.sorted { Receipt.counts($0.receipt, before: $1.receipt) }
    for place in ordered.indices.dropFirst() { ordered[place].receipt.defect = "receipt_id is not unique" }
    return ordered
  }
}

extension ReceiptRow {
  /// A row of `receipts`.
  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    self.init(receipt: try SalesRows.receipt(row, asOf: asOf), isListed: try row.optionalBool(8) ?? false)
  }
}
