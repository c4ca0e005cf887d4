import Postgres
import Reconciliation
import Streams

/// An order that waits for a look-up, with its state. Orders that state the same ID share the state.
package struct LookupRow {
  package var orderId: Identifier
  package var subjectId: Identifier
  package var state: ProofState

  /// The query for look-ups (alias `l`) in the byte order of order IDs.
  package static func query(
    hiding isHidden: (_ date: String) throws(PostgresError) -> String, where restriction: String = "TRUE"
  ) throws(PostgresError) -> String {
    """
    SELECT l.order_id, l.subject_id, \(try ProofState.columns(hiding: isHidden)) FROM night_audit.lookups l
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
