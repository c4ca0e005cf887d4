import Foundation
import Postgres
import Reconciliation
import SalesStore
import Streams

/// The cuts of the ID ranges of each kind. Results do not depend on them, only time and memory.
struct AuditPartition: Hashable {
  var receipts = Cuts.none
  var orders = Cuts.none
  var transactions = Cuts.none

  var readers: Int { max(receipts.count, orders.count, transactions.count) }

  private static let ordersPerReader = 25_000

  /// The default: one reader for each processor, at most 8, fewer for few orders.
  private static func defaultReaderCount(orders: Int) -> Int {
    min(ProcessInfo.processInfo.activeProcessorCount, 8, max(1, orders / ordersPerReader))
  }
}

extension AuditPartition {
  /// Cuts by the planner's statistics, in at most `readers` parts; one part if there are no statistics.
  init(
    _ sales: SalesRows, readers: Int?, shop: borrowing BlockingConnection, own: borrowing BlockingConnection
  ) throws(PostgresError) {
    if readers == 1 { return }
    let ids = try PlannersSample("\(sales.schema).orders", "order_id", on: shop)
    let count = readers ?? Self.defaultReaderCount(orders: ids.rows)
    if count <= 1 { return }
    orders = Cuts(quantilesOf: ids.ids, count: count)
    receipts = Cuts(
      quantilesOf: try PlannersSample("\(sales.schema).receipts", "receipt_id", on: shop).ids, count: count)
    transactions = Cuts(
      quantilesOf: try PlannersSample("night_audit.transactions", "transaction_id", on: own).ids, count: count)
  }
}

/// The planner's histogram of a relation's IDs (`pg_stats`).
private struct PlannersSample {
  var ids: [Identifier] = []
  var rows = 0

  /// Longer IDs are not used as cuts. An ID too long to be valid is shown shortened, and must stay in its row's part.
  private static let longestCut = 100

  /// Reads the statistics of the column or, for a view, of the key of its largest table. Any cut is correct.
  init(_ relation: String, _ column: String, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let found = try connection.execute(
      """
      WITH RECURSIVE behind AS (
        SELECT c.oid, c.relkind, 0 AS depth FROM pg_class c WHERE c.oid = to_regclass($1)
        UNION
        SELECT t.oid, t.relkind, v.depth + 1 FROM behind v JOIN pg_rewrite r ON r.ev_class = v.oid
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_class t ON t.oid = d.refobjid AND t.oid <> v.oid
        WHERE v.relkind = 'v' AND v.depth < 8)
      SELECT s.histogram_bounds::text::text[], greatest(c.reltuples, 0)::bigint
      FROM behind b JOIN pg_class c USING (oid) JOIN pg_namespace n ON n.oid = c.relnamespace
      JOIN pg_attribute a ON a.attrelid = c.oid
      JOIN pg_stats s ON (s.schemaname, s.tablename, s.attname) = (n.nspname, c.relname, a.attname)
      WHERE s.histogram_bounds IS NOT NULL AND (b.depth = 0 AND a.attname = $2 OR b.depth > 0 AND EXISTS (
          SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
            AND i.indkey[0] = a.attnum))
        AND EXISTS (SELECT 1 FROM pg_database WHERE datname = current_database() AND encoding = 6)
      ORDER BY b.depth = 0 DESC, c.reltuples DESC LIMIT 1
      """, [.text(relation), .text(column)])
    for row in found {
      ids = try row.textArray(0).compactMap { $0 }.filter { $0.utf8.count <= Self.longestCut }.map { Identifier($0) }
      rows = Int(try row.int64(1))
    }
  }
}
