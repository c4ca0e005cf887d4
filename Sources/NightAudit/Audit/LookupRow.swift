import Postgres
import Reconciliation

/// An order that waits for a look-up, and what became of it. Two orders that name the same id have the same state.
struct LookupRow {
  var orderId: Identifier
  var subjectId: Identifier
  var state: ProofState

  /// All look-ups in the byte order of their order ids.
  ///
  /// - Parameter restriction: which of them are read, on `night_audit.lookups` aliased `l`.
  static func query(where restriction: String = "TRUE") -> String {
    """
    SELECT l.order_id, l.subject_id, \(ProofState.columns) FROM night_audit.lookups l
    JOIN night_audit.receipt_checks c ON c.subject_kind = 'lookup' AND c.subject_id = l.subject_id
    WHERE \(restriction) ORDER BY l.order_id
    """
  }

  init(_ row: borrowing CopyReader) throws(PostgresError) {
    orderId = try row.id(0)
    subjectId = try row.id(1)
    state = try ProofState(row, from: 2) ?? .neverChecked
  }
}
