import Postgres
import Reconciliation
import Streams

/// An order that waits for a look-up, and what became of it. Two orders that name the same id have the same state.
package struct LookupRow {
  package var orderId: Identifier
  package var subjectId: Identifier
  package var state: ProofState

  /// All look-ups in the byte order of their order ids.
  ///
  /// - Parameter restriction: which of them are read, on `night_audit.lookups` aliased `l`.
  package static func query(where restriction: String = "TRUE") -> String {
    """
    SELECT l.order_id, l.subject_id, \(ProofState.columns) FROM night_audit.lookups l
    JOIN night_audit.receipt_checks c ON c.subject_kind = 'lookup' AND c.subject_id = l.subject_id
    WHERE \(restriction) ORDER BY l.order_id
    """
  }

  package init(_ row: borrowing CopyReader) throws(PostgresError) {
    orderId = try row.id(0)
    subjectId = try row.id(1)
    state = try ProofState(row, from: 2) ?? .neverChecked
  }
}
