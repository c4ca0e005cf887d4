import AuditStore
import Postgres
import Reconciliation

/// Orders of one product and app whose transaction nobody has told of: Apple was not asked yet, had no answer, or its
/// receipt did not list it.
///
/// Apple may count their units. That is no payment that nobody here knows, and a question without an answer accuses nobody.
struct WaitingOrders {
  /// As many are looked at; a shop that waits for more has other troubles than one product's week.
  private static let mostOrders = 100_000
  private static let batch = 10_000

  private var orders: [(orderId: Identifier, transactionId: Identifier?, bundleId: String?, units: ShopUnits)] = []

  /// Adds an order that names no transaction, or one that is not among those of its product.
  ///
  /// - Parameter bundleId: the app that the order is for.
  mutating func add(_ orderId: Identifier, transactionId: Identifier?, bundleId: String?, _ units: ShopUnits) {
    guard orders.count < Self.mostOrders else { return }
    orders.append((orderId, transactionId, bundleId, units))
  }

  /// What Apple can be asked about the transaction that an order names.
  private static func question(_ transactionId: Identifier?, of bundleId: String?) -> String? {
    guard let transactionId, let bundleId else { return nil }
    return CheckSubject.lookup(transactionId.text, of: bundleId).id.text
  }

  /// The units of those that do wait, by the shop's day of payment. What names a transaction that is known after all, or
  /// was proven to be none, does not; neither does what has neither a name nor a proof without an answer.
  func units(on connection: borrowing BlockingConnection) throws(PostgresError) -> [ReportDay: Millionths] {
    var units: [ReportDay: Millionths] = [:]
    var first = 0
    while first < orders.count {
      let batch = orders[first..<min(first + Self.batch, orders.count)]
      let rows = try connection.execute(
        """
        SELECT n.place FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
          AS n (order_id, transaction_id, question, place)
        WHERE NOT EXISTS (SELECT FROM night_audit.transactions t WHERE t.transaction_id = n.transaction_id
            AND t.environment IN ('Production', 'Sandbox', 'Xcode', 'LocalTesting'))
          AND NOT EXISTS (SELECT FROM night_audit.receipt_checks c
            WHERE c.order_id = n.order_id AND c.subject_kind = 'receipt' AND c.outcome = 'rejected')
          AND NOT EXISTS (SELECT FROM night_audit.lookups l JOIN night_audit.receipt_checks c
            ON c.subject_kind = 'lookup' AND c.subject_id = l.subject_id
            WHERE l.order_id = n.order_id AND l.subject_id = n.question AND c.outcome IN ('rejected', 'not_found'))
          AND (n.transaction_id IS NOT NULL OR EXISTS (SELECT FROM night_audit.receipt_checks c
            WHERE c.order_id = n.order_id AND c.subject_kind = 'receipt'
              AND c.outcome IN ('pending', 'unanswered', 'review')))
        """,
        [
          .textArray(batch.map { $0.orderId.text }), .textArray(batch.map { $0.transactionId?.text }),
          .textArray(batch.map { Self.question($0.transactionId, of: $0.bundleId) }),
        ])
      for row in rows {
        let order = orders[first + Int(try row.int64(0)) - 1]
        units[order.units.day, default: .zero] += Millionths(order.units.units)
      }
      first += Self.batch
    }
    return units
  }
}
