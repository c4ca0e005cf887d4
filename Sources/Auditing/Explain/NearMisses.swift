import Postgres
import Reconciliation
import SalesStore

/// What a person may have meant by an order id that does not exist.
enum NearMisses {
  private static let limit = 5

  /// Sentences, at most a handful; empty when nothing is like it.
  static func of(
    _ text: String, shop: borrowing BlockingConnection, own: borrowing BlockingConnection, _ sales: SalesRows
  ) throws(PostgresError) -> [String] {
    var found: [String] = []
    if sales.horizon != nil {
      let later = try shop.execute(
        "SELECT o.created_at FROM \(sales.schema).orders o WHERE o.order_id::text COLLATE \"C\" = $1 LIMIT 1",
        [.text(text)])
      for row in later {
        guard let created = try row.optionalTimestamp(0) else { continue }
        return ["It was created \(Instant(microseconds: created).machineText), after that as-of."]
      }
    }
    // Ids of two or three characters are part of too many others.
    let similar = try shop.execute(
      """
      SELECT o.order_id::text FROM \(sales.schema).orders o
      WHERE lower(o.order_id::text) = lower($1)
        OR length($1) > 3 AND strpos(lower(o.order_id::text), lower($1)) > 0
        OR length(o.order_id::text) > 3 AND strpos(lower($1), lower(o.order_id::text)) > 0
      ORDER BY abs(length(o.order_id::text) - length($1)), o.order_id::text COLLATE "C" LIMIT \(limit)
      """, [.text(text)])
    for row in similar { found.append("There is an order \(try row.text(0)).") }
    let others = [
      (
        "transaction",
        "SELECT o.order_id::text FROM \(sales.schema).orders o WHERE \(SalesRows.namedTransaction) = $1"
      ),
      (
        "receipt", "SELECT r.order_id::text FROM \(sales.schema).receipts r WHERE r.receipt_id::text COLLATE \"C\" = $1"
      ),
      (
        "delivery",
        "SELECT d.order_id::text FROM \(sales.schema).deliveries d WHERE d.delivery_id::text COLLATE \"C\" = $1"
      ),
      ("user", "SELECT o.order_id::text FROM \(sales.schema).orders o WHERE o.user_id::text COLLATE \"C\" = $1"),
    ]
    for (what, query) in others {
      for row in try shop.execute("\(query) ORDER BY 1 LIMIT \(limit)", [.text(text)]) {
        let order = try row.optionalText(0).map { "of order \($0)" } ?? "without an order"
        let sentence = "\(text) is the id of a \(what) \(order)."
        if !found.contains(sentence) { found.append(sentence) }
      }
    }
    // A transaction that no order names was brought by receipts, and these have orders.
    let bringers = try own.execute(
      """
      SELECT DISTINCT subject_id FROM night_audit.receipt_transactions
      WHERE transaction_id = $1 AND subject_kind = 'receipt' ORDER BY 1 LIMIT \(limit)
      """, [.text(text)])
    for row in bringers { found.append("\(text) is the id of a transaction that receipt \(try row.text(0)) brought.") }
    return found
  }
}
