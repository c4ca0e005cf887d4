import Foundation
import Postgres

/// How the server is asked for the byte order of the shop's ids: by the collation "C", for which it mostly has to sort, or
/// by the column's own where that compares byte by byte and the planner finds reading an index cheaper than sorting.
///
/// Nothing but time depends on it.
package struct SalesOrdering: Hashable, Sendable {
  /// Columns that keep their own collation.
  private var columns: Set<Column> = []
  /// What may have no id: such rows come first then, where the empty id belongs, and no index helps.
  private var mayLackId: Set<Column> = [.orderId, .receiptId]
  /// Whether an order's id may be empty in a delivery: those come last then, as all that name no order, and no index helps.
  private var mayNameNoOrder = true
  /// Whether no two deliveries have one id, so that who reads those of an order brings them into an order of their own.
  var tellsDeliveriesApart = false

  /// What streams are ordered by.
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

  /// Whatever the server knows: the collation "C".
  package init() {}

  /// As the planner counts the cost of each way.
  ///
  /// - Parameter connection: plans as the streams will be planned.
  ///
  /// Throws `PostgresError`.
  package init(_ sales: SalesRows, on connection: borrowing BlockingConnection) throws(PostgresError) {
    let found = try connection.execute(
      """
      SELECT EXISTS (SELECT 1 FROM \(sales.schema).orders o WHERE o.order_id IS NULL),
        EXISTS (SELECT 1 FROM \(sales.schema).receipts r WHERE r.receipt_id IS NULL),
        EXISTS (SELECT 1 FROM \(sales.schema).deliveries d
          WHERE d.order_id::text = '' AND d.order_id::text COLLATE "C" = '')
      """
    ).single()
    if try !found.bool(0) { mayLackId.remove(.orderId) }
    if try !found.bool(1) { mayLackId.remove(.receiptId) }
    mayNameNoOrder = try found.bool(2)
    for column in Column.allCases where try Self.comparesBytes(column, sales, connection) {
      var (own, sorted) = (sales, sales)
      (own.ordering, sorted.ordering) = (self, self)
      (own.ordering.columns, sorted.ordering.columns) = ([column], [])
      let (cheaper, usual) = (
        try Self.cost(own.stream(of: column), connection), try Self.cost(sorted.stream(of: column), connection)
      )
      // They differ where the index serves only one of the two: to sort costs the same by either, as far as planners know.
      if let cheaper, let usual, cheaper < usual { columns.insert(column) }
    }
    tellsDeliveriesApart = try sales.forbidsRepeatedDeliveries(connection)
  }

  /// What a stream is ordered by, and where it is cut.
  package func key(_ column: Column) -> String {
    let id = "\(column.rawValue)::text" + (columns.contains(column) ? "" : " COLLATE \"C\"")
    return switch column {
    case .orderId, .receiptId: mayLackId.contains(column) ? "coalesce(\(id), '')" : id
    case .deliveredOrderId: mayNameNoOrder ? "nullif(\(id), '')" : id
    }
  }

  /// Whether a text column's own collation is the order of its bytes: glibc's C.UTF-8 goes by code points, as bytes of UTF-8
  /// do, and so does the provider that the server itself is.
  private static func comparesBytes(
    _ column: Column, _ sales: SalesRows, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Bool {
    let name = column.rawValue.drop { $0 != "." }.dropFirst()
    // As JSON, because which columns there are depends on the server's version.
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

  /// The planner's cost of a query; nil where its answer holds none.
  private static func cost(
    _ query: String, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Double? {
    let plan = try connection.execute("EXPLAIN (FORMAT JSON) \(query)").single().text(0)
    let parsed = try? JSONSerialization.jsonObject(with: Data(plan.utf8)) as? [[String: Any]]
    return (parsed?.first?["Plan"] as? [String: Any])?["Total Cost"] as? Double
  }
}

extension SalesRows {
  /// The same rows, in the order that costs the server least.
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
