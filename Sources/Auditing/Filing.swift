import Postgres
import Reconciliation
import Streams

/// A change to how a transaction is filed: written back by a run, so that the next one finds it under the order that owns
/// it, and in its place among those that nobody claims.
struct Filing {
  let key: TransactionKey
  /// nil: where it is.
  var owner: Identifier?
  /// nil: as it is.
  var isUnclaimed: Bool?

  init(key: TransactionKey, owner: Identifier? = nil, isUnclaimed: Bool? = nil) {
    self.key = key
    self.owner = owner
    self.isUnclaimed = isUnclaimed
  }

  private static let batchSize = 50_000

  /// Brings the stored transactions up to all changes, and what their receipts are known to have brought.
  ///
  /// - Parameter filings: by the bytes of the transactions' ids.
  static func writeBack(_ filings: SpillSorter, on ledger: borrowing BlockingConnection) throws {
    var batch: [TransactionKey: Filing] = [:]
    while let record = try filings.next() {
      var reader = RecordReader(record.content)
      let filing = try Filing(from: &reader)
      var merged = batch[filing.key] ?? filing
      merged.owner = filing.owner ?? merged.owner
      merged.isUnclaimed = filing.isUnclaimed ?? merged.isUnclaimed
      batch[filing.key] = merged
      if batch.count >= batchSize {
        try write(batch, on: ledger)
        batch = [:]
      }
    }
    if !batch.isEmpty { try write(batch, on: ledger) }
  }

  private static func write(
    _ filings: [TransactionKey: Filing], on ledger: borrowing BlockingConnection
  ) throws(PostgresError) {
    let sorted = filings.values.sorted { $0.key < $1.key }
    try ledger.execute(
      """
      UPDATE night_audit.transactions t
      SET order_id = coalesce(filed.order_id, t.order_id), is_unclaimed = coalesce(filed.is_unclaimed, t.is_unclaimed)
      FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS filed (transaction_id, environment, order_id, is_unclaimed)
      WHERE t.transaction_id = filed.transaction_id AND t.environment = filed.environment
        AND (t.order_id, t.is_unclaimed) IS DISTINCT FROM
          (coalesce(filed.order_id, t.order_id), coalesce(filed.is_unclaimed, t.is_unclaimed))
      """,
      [
        .textArray(sorted.map(\.key.transactionId.text)), .textArray(sorted.map(\.key.environment.rawValue)),
        .textArray(sorted.map { $0.owner?.text }), .boolArray(sorted.map(\.isUnclaimed)),
      ])
    try ledger.execute(
      """
      UPDATE night_audit.receipt_transactions l SET is_detour = t.order_id IS DISTINCT FROM l.order_id
      FROM night_audit.transactions t
      WHERE t.transaction_id = l.transaction_id AND t.environment = l.environment
        AND t.transaction_id = ANY ($1) AND l.is_detour IS DISTINCT FROM (t.order_id IS DISTINCT FROM l.order_id)
      """, [.textArray(sorted.map(\.key.transactionId.text))])
  }
}
