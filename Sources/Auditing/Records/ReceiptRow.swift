import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

struct ReceiptRow {
  var receipt: Receipt
  var isListed: Bool

  /// The column of `checks` with the order in the last complete night.
  static let formerOrder = 19

  fileprivate static let repeatedDefect = "receipt_id is not unique"

  static func checks(
    hiding isHidden: (_ date: String) throws(PostgresError) -> String, where restriction: String = "TRUE"
  ) throws(PostgresError) -> String {
    """
    SELECT c.subject_id, \(try ProofState.columns(hiding: isHidden)), \(FormerOrder.inLastNight("c"))
    FROM night_audit.receipt_checks c
    WHERE c.subject_kind = 'receipt' AND \(restriction) ORDER BY c.subject_id
    """
  }

  /// Sorts rows with the same ID, independent of the server. The first row counts, and its payload is judged.
  static func ordered(_ rows: [ReceiptRow]) -> [ReceiptRow] {
    var ordered = rows.sorted { Receipt.counts($0.receipt, before: $1.receipt) }
    for place in ordered.indices.dropFirst() {
      ordered[place].receipt.defect = ordered[place].receipt.defect.map { "\($0); \(repeatedDefect)" } ?? repeatedDefect
    }
    return ordered
  }
}

extension ReceiptRow {
  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    self.init(receipt: try SalesRows.receipt(row, asOf: asOf), isListed: try row.optionalBool(8) ?? false)
  }
}

extension Receipt {
  /// True for a further row of its ID. Only the row that counts has the check, with its answers and transactions.
  var isRepeated: Bool { defect?.hasSuffix(ReceiptRow.repeatedDefect) ?? false }
}
