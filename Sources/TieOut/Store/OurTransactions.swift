import AuditStore
import Postgres
import Reconciliation
import Streams

/// Reads our side of the tie-out from the table `transactions`.
enum OurTransactions {
  struct Row {
    var bundleId: String?
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
    // A reversed revocation is only in the evidence. Apple's last fact about it counts, as in the fold.
    return """
      SELECT t.product_id, t.transaction_id, t.bundle_id, t.original_transaction_id, t.quantity, t.purchased_at,
        t.original_purchased_at, t.expires_at, t.revocation_withdrawn_at, t.price_milliunits, t.currency, t.ownership,
        t.is_renewal, t.has_offer, t.is_upgraded, t.storefront,
        t.revoked_at, t.revocation_percentage, t.revocation_type, t.revocation_of_some_items,
        w.revoked_at, w.revocation_percentage, w.revocation_type, w.revocation_of_some_items,
        t.web_order_line_item_id, t.revocation_told_at, t.signed_at
      FROM night_audit.transactions t
      LEFT JOIN LATERAL (
        SELECT e.revoked_at, e.revocation_percentage, e.revocation_type, e.revocation_of_some_items
        FROM night_audit.evidence e
        WHERE t.revocation_withdrawn_at IS NOT NULL AND e.revoked_at IS NOT NULL
          AND e.transaction_id = t.transaction_id AND e.environment = t.environment
        ORDER BY e.signed_at DESC, e.revoked_at DESC, e.revocation_percentage, e.revocation_type,
          e.revocation_of_some_items DESC NULLS LAST
        LIMIT 1) w ON true
      WHERE t.environment = 'Production' AND (
        t.purchased_at >= \(start) AND t.purchased_at < \(end) OR t.revoked_at >= \(start) AND t.revoked_at < \(end)
        OR t.revocation_withdrawn_at >= \(start)
        OR t.expires_at IS NULL AND t.original_purchased_at >= \(start) AND t.original_purchased_at < \(end)
        OR t.is_upgraded AND t.purchased_at >= \(oldest) AND t.purchased_at < \(end))
      ORDER BY t.product_id, t.transaction_id
      """
  }

  static func row(_ row: borrowing CopyReader) throws(PostgresError) -> Row {
    var contents = TransactionRecord.Contents(
      environment: .production, transactionId: try row.id(1), productId: try row.id(0))
    contents.originalTransactionId = try row.optionalId(3)
    contents.quantity = try row.optionalInt32(4)
    contents.purchaseDate = try row.optionalInstant(5)
    contents.originalPurchaseDate = try row.optionalInstant(6)
    contents.expiresDate = try row.optionalInstant(7)
    contents.revocationWithdrawnDate = try row.optionalInstant(8)
    contents.priceMilliunits = try row.optionalInt64(9)
    contents.currency = try row.optionalText(10)
    contents.ownership = try row.word(11, of: Vocabularies.ownership)
    contents.isRenewal = try row.optionalBool(12)
    contents.hasOffer = try row.optionalBool(13)
    contents.isUpgraded = try row.optionalBool(14)
    contents.revocation = try revocation(row, from: 16)
    contents.webOrderLineItemId = try row.optionalId(24)
    contents.revocationStatedDate = try row.optionalInstant(25)
    contents.signedDate = Instant(microseconds: try row.timestamp(26))
    contents.details.storefront = try row.optionalText(15)
    return Row(
      bundleId: try row.optionalText(2), record: TransactionRecord(contents),
      withdrawn: try revocation(row, from: 20))
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

  /// The revocation in four columns in a row; nil: none.
  private static func revocation(
    _ row: borrowing CopyReader, from first: Int
  ) throws(PostgresError) -> Revocation? {
    guard let date = try row.optionalInstant(first) else { return nil }
    return Revocation(
      date: date, percentage: try row.optionalInt32(first + 1), type: try row.optionalText(first + 2),
      coversSomeItemsOnly: try row.optionalBool(first + 3) ?? false)
  }

  /// True if we know of units that Apple should count on these days.
  static func hasUnits(
    in days: ReportDays, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Bool {
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
