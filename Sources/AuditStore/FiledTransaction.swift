import Postgres
import Reconciliation
import Streams

/// A transaction and the order that it is filed under.
package struct FiledTransaction {
  package var orderId: Identifier?
  package var record: TransactionRecord
  /// What the last run decided.
  package var isUnclaimed: Bool

  package init(_ row: borrowing CopyReader) throws(PostgresError) {
    orderId = try row.optionalId(0)
    record = try TransactionTable.record(row)
    isUnclaimed = try row.bool(TransactionTable.unclaimedColumn)
  }
}
