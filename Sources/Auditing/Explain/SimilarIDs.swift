import Postgres
import Reconciliation
import SalesStore

/// Suggestions for an order ID that does not exist.
enum SimilarIDs {
  private static let limit = 5

  static func of(_ text: String, _ orders: OrderReader) throws(PostgresError) -> [String] {
    let (stores, sales) = (orders.stores, orders.sales)
    var found: [String] = []
    if sales.horizon != nil {
      let later = try stores.sales.execute(
        "SELECT o.created_at FROM \(sales.schema).orders o WHERE o.order_id::text COLLATE \"C\" = $1 LIMIT 1",
        [.text(text)])
      for row in later {
        guard let created = try row.optionalTimestamp(0) else { continue }
        return ["It was created \(Instant(microseconds: created).machineText), after that as-of."]
      }
    }
    // Shorter IDs would match too many others.
    let similar = try stores.sales.execute(
      """
      SELECT q.id FROM (
        SELECT o.order_id::text COLLATE "C" AS id, lower(o.order_id::text COLLATE "C") AS plain, lower($1 COLLATE "C") AS meant
        FROM \(sales.schema).orders o) AS q
      WHERE q.plain = q.meant OR length($1) > 3 AND strpos(q.plain, q.meant) > 0
        OR length(q.id) > 3 AND strpos(q.meant, q.plain) > 0
      ORDER BY abs(length(q.id) - length($1)), q.id LIMIT \(limit)
      """, [.text(text)])
    for row in similar { found.append("There is an order \(try row.shownText(0) ?? "").") }
    let others = [
      ("transaction", "orders", SalesRows.namedTransaction),
      ("receipt", "receipts", #"o.receipt_id::text COLLATE "C""#),
      ("delivery", "deliveries", #"o.delivery_id::text COLLATE "C""#),
      ("user", "orders", #"o.user_id::text COLLATE "C""#),
    ]
    for (what, relation, id) in others {
      let query = """
        SELECT o.order_id::text COLLATE "C" FROM \(sales.schema).\(relation) o WHERE \(id) = $1 ORDER BY 1 LIMIT \(limit)
        """
      for row in try stores.sales.execute(query, [.text(text)]) {
        let order = try row.shownText(0).map { "of order \($0)" } ?? "without an order"
        let sentence = "\(text) is the ID of a \(what) \(order)."
        if !found.contains(sentence) { found.append(sentence) }
      }
    }
    // If no order states the ID as its transaction, receipts may contain it.
    let sourceReceipts = try stores.own.execute(
      """
      SELECT DISTINCT subject_id FROM night_audit.receipt_transactions
      WHERE transaction_id = $1 AND subject_kind = 'receipt' ORDER BY 1 LIMIT \(limit)
      """, [.text(text)])
    for row in sourceReceipts {
      found.append("\(text) is the ID of a transaction that receipt \(try row.text(0)) contains.")
    }
    return found
  }
}
