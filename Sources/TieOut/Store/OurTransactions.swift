import AuditStore
import Postgres
import Reconciliation
import Streams

/// Reads our side of the tie-out from the table `transactions`.
enum OurTransactions {
  struct Row {
    var record: TransactionRecord
    /// The revocation that was taken back since.
    var withdrawn: Revocation?
  }

  /// Upgrades may replace a subscription as old as the longest period.
  private static let longestSubscription = Span.days(400)

  /// The query for production transactions that concern these days, by product in byte order.
  static func query(_ days: ReportDays) throws(PostgresError) -> String {
    let start = try PostgresLiteral.timestamp(days.start.microseconds)
    let end = try PostgresLiteral.timestamp(days.end.microseconds)
    let oldest = try PostgresLiteral.timestamp((days.start - longestSubscription).microseconds)
    return TransactionTable.byProduct(
      where: """
        t.environment = 'Production' AND (
          t.purchased_at >= \(start) AND t.purchased_at < \(end) OR t.revoked_at >= \(start) AND t.revoked_at < \(end)
          OR t.revocation_withdrawn_at >= \(start)
          OR t.expires_at IS NULL AND t.original_purchased_at >= \(start) AND t.original_purchased_at < \(end)
          OR t.is_upgraded AND t.purchased_at >= \(oldest) AND t.purchased_at < \(end))
        """)
  }

  static func row(_ row: borrowing CopyReader) throws(PostgresError) -> Row {
    let (record, withdrawn) = try TransactionTable.recordWithWithdrawnRevocation(row)
    return Row(record: record, withdrawn: withdrawn)
  }

  /// Of subscription periods with several IDs one row each, with what all of its rows state.
  static func purchases(_ rows: [Row]) -> [Row] {
    if rows.isEmpty { return [] }
    let folded = TransactionRecord.foldingPurchases(rows.map(\.record))
    return rows.indices.compactMap { place in
      let record = folded[place]
      guard record.transactionId == record.smallestId else { return nil }
      var row = rows[place]
      row.record = record
      let revocations = rows.lazy.filter { record.isOf($0.record.transactionId) }
        .compactMap { $0.withdrawn ?? $0.record.revocation }
      row.withdrawn = record.revocation == nil ? revocations.max { $0.date < $1.date } : nil
      return row
    }
  }

  /// True if we know of units that Apple should count on these days.
  static func hasUnits(in days: ReportDays, on connection: borrowing BlockingConnection) throws(PostgresError) -> Bool {
    try connection.execute(
      """
      SELECT EXISTS (SELECT 1 FROM night_audit.transactions
        WHERE environment = 'Production' AND ownership IS DISTINCT FROM 'FAMILY_SHARED'
          AND (purchased_at >= $1 AND purchased_at < $2 OR revoked_at >= $1 AND revoked_at < $2))
      """, [.timestamp(days.start.microseconds), .timestamp(days.end.microseconds)]
    ).single().bool(0)
  }

  /// All products of production transactions, by bundle ID; empty for transactions without one.
  static func products(on connection: borrowing BlockingConnection) throws(PostgresError) -> [String: Set<Identifier>] {
    let rows = try connection.execute(
      """
      SELECT DISTINCT coalesce(bundle_id, ''), product_id FROM night_audit.transactions WHERE environment = 'Production'
      """)
    var products: [String: Set<Identifier>] = [:]
    for row in rows { products[try row.text(0), default: []].insert(Identifier(try row.text(1))) }
    return products
  }
}
