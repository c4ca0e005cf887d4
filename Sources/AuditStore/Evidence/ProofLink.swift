import Postgres
import Reconciliation
import Streams

/// A transaction that a proof contains, under the ID for merging.
package struct ProofLink {
  /// The receipt, or the order that waits for a look-up.
  package var id: Identifier
  package var key: TransactionKey

  package static func ofReceipts(where restriction: String = "TRUE") -> String {
    """
    SELECT l.subject_id, l.environment, l.transaction_id FROM night_audit.receipt_transactions l
    WHERE l.subject_kind = 'receipt' AND \(restriction) ORDER BY l.subject_id, l.transaction_id, l.environment
    """
  }

  package static func ofLookups(where restriction: String = "TRUE") -> String {
    """
    SELECT w.order_id, l.environment, l.transaction_id FROM night_audit.lookups w
    JOIN night_audit.receipt_transactions l ON l.subject_kind = 'lookup' AND l.subject_id = w.subject_id
    WHERE \(restriction) ORDER BY w.order_id, l.transaction_id, l.environment
    """
  }

  package init(_ row: borrowing CopyReader) throws(PostgresError) {
    id = try row.id(0)
    key = TransactionKey(
      environment: try row.word(1, of: Vocabularies.environment) ?? .localTesting, transactionId: try row.id(2))
  }
}
