import Foundation
import Postgres

/// The collation in which the server sorts ids in byte order: "C", or the column's own if that compares bytes and the
/// planner can use an index. Only speed depends on it.
package struct SalesOrdering: Hashable, Sendable {
  private var columns: Set<Column> = []
  /// Columns that may be NULL. Such rows sort first as the empty id, and no index helps.
  private var nullableIDColumns: Set<Column> = [.orderId, .receiptId]
  /// True if deliveries may have an empty order id. They sort last like those without an order, and no index helps.
  private var mayHaveEmptyOrderID = true
  /// True if delivery ids are unique, so that readers can sort the deliveries of one order.
  var hasUniqueDeliveryIDs = false

  package enum Column: String, CaseIterable, Sendable {
    case orderId = "o.order_id"
    case receiptId = "r.receipt_id"
    case deliveredOrderId = "d.order_id"

    fileprivate var relation: String {
      switch self {
      case .orderId: "orders"
      case .receiptId: "receipts"
      case .deliveredOrderId: "deliveries"
      }
    }
  }

  package init() {}

  /// Chooses by the planner's cost estimates, with the settings of the streams on `connection`.
  package init(_ sales: SalesRows, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let found = try connection.execute(
      """
      SELECT EXISTS (SELECT 1 FROM \(sales.schema).orders o WHERE o.order_id IS NULL),
        EXISTS (SELECT 1 FROM \(sales.schema).receipts r WHERE r.receipt_id IS NULL),
        EXISTS (SELECT 1 FROM \(sales.schema).deliveries d
          WHERE d.order_id::text = '' AND d.order_id::text COLLATE "C" = '')
      """
    ).single()
    if try !found.bool(0) { nullableIDColumns.remove(.orderId) }
    if try !found.bool(1) { nullableIDColumns.remove(.receiptId) }
    mayHaveEmptyOrderID = try found.bool(2)
    for column in Column.allCases where try Self.comparesBytes(column, sales, connection) {
      var (own, sorted) = (sales, sales)
      (own.ordering, sorted.ordering) = (self, self)
      (own.ordering.columns, sorted.ordering.columns) = ([column], [])
      let (cheaper, usual) = (
        try Self.cost(own.stream(of: column), connection), try Self.cost(sorted.stream(of: column), connection)
      )
      // The costs differ only if an index serves one of the two: a sort costs the same in either collation.
      if let cheaper, let usual, cheaper < usual { columns.insert(column) }
    }
    hasUniqueDeliveryIDs = try sales.forbidsRepeatedDeliveries(connection)
  }

  /// The expression by which a stream is sorted and cut.
  package func key(_ column: Column) -> String {
    let id = "\(column.rawValue)::text" + (columns.contains(column) ? "" : " COLLATE \"C\"")
    return switch column {
    case .orderId, .receiptId: nullableIDColumns.contains(column) ? "coalesce(\(id), '')" : id
    case .deliveredOrderId: mayHaveEmptyOrderID ? "nullif(\(id), '')" : id
    }
  }

  // Byte order is that of C, of glibc's C.UTF-8, which compares code points, and of the builtin provider.
  private static func comparesBytes(
    _ column: Column, _ sales: SalesRows, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Bool {
    let name = column.rawValue.drop { $0 != "." }.dropFirst()
    // As JSON, because the catalogue's columns depend on the server's version.
    return try connection.execute(
      """
      SELECT EXISTS (
        SELECT 1 FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
        CROSS JOIN LATERAL (SELECT to_jsonb(d) AS database FROM pg_database d WHERE d.datname = current_database()) d
        CROSS JOIN LATERAL (SELECT CASE WHEN c.collname = 'default' AND c.collnamespace = 'pg_catalog'::regnamespace
            THEN jsonb_build_array(coalesce(d.database ->> 'datlocprovider', 'c'), d.database ->> 'datcollate',
              coalesce(d.database ->> 'datlocale', d.database ->> 'daticulocale'))
            ELSE jsonb_build_array(c.collprovider, c.collcollate, coalesce(to_jsonb(c) ->> 'colllocale', '')) END
          AS words) w
        WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND a.atttypid IN ('text'::regtype, 'varchar'::regtype)
          AND c.collisdeterministic AND (d.database ->> 'encoding')::int = 6
          AND (words ->> 0 = 'b' OR words ->> 0 = 'c' AND words ->> 1 IN ('C', 'POSIX', 'C.UTF-8', 'C.utf8')))
      """, [.text("\(sales.schema).\(column.relation)"), .text(String(name))]
    ).single().bool(0)
  }

  private static func cost(
    _ query: String, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Double? {
    let plan = try connection.execute("EXPLAIN (FORMAT JSON) \(query)").single().text(0)
    let parsed = try? JSONSerialization.jsonObject(with: Data(plan.utf8)) as? [[String: Any]]
    return (parsed?.first?["Plan"] as? [String: Any])?["Total Cost"] as? Double
  }
}

extension SalesRows {
  /// Returns these rows with the ordering of the lowest cost.
  package func ordered(on connection: borrowing BlockingConnection) throws(PostgresError) -> SalesRows {
    var ordered = self
    ordered.ordering = try SalesOrdering(self, on: connection)
    return ordered
  }

  fileprivate func stream(of column: SalesOrdering.Column) throws(PostgresError) -> String {
    switch column {
    case .orderId: try orders()
    case .receiptId: try receipts()
    case .deliveredOrderId: try deliveries()
    }
  }
}
