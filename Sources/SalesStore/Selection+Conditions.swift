import Postgres
import Reconciliation
import Run

/// The filters as conditions on the shop's relations.
extension Selection {
  /// A condition on orders, aliased `o`, that are listed. `TRUE` when nothing is filtered.
  ///
  /// - Parameter onlyBundleId: the app of orders that name none, when there is just one.
  package func orderCondition(onlyBundleId: String?) throws(PostgresError) -> String {
    var conditions: [String] = []
    if let orderId { conditions.append("o.order_id::text = \(try PostgresLiteral.text(orderId.text))") }
    if let userId { conditions.append("o.user_id::text = \(try PostgresLiteral.text(userId.text))") }
    if let productId { conditions.append("o.product_id::text = \(try PostgresLiteral.text(productId.text))") }
    if let bundleId {
      let literal = try PostgresLiteral.text(bundleId)
      conditions.append(
        onlyBundleId == bundleId
          ? "(o.bundle_id IS NULL OR o.bundle_id::text = \(literal))" : "o.bundle_id::text = \(literal)")
    }
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }

  /// A condition on receipts, aliased `r`, that belong to listed orders or users. `TRUE` when nothing is filtered.
  ///
  /// - Parameters:
  ///   - sales: where the orders are.
  ///   - onlyBundleId: the app of orders that name none, when there is just one.
  package func receiptCondition(_ sales: SalesRows, onlyBundleId: String?) throws(PostgresError) -> String {
    var conditions: [String] = []
    if let orderId { conditions.append("r.order_id::text = \(try PostgresLiteral.text(orderId.text))") }
    var ofOrder: [String] = []
    if let userId {
      let literal = try PostgresLiteral.text(userId.text)
      conditions.append(
        """
        (r.user_id::text = \(literal) OR r.order_id IN \
        (SELECT u.order_id FROM \(sales.schema).orders u WHERE u.user_id::text = \(literal)))
        """)
    }
    if let productId { ofOrder.append("o.product_id::text = \(try PostgresLiteral.text(productId.text))") }
    if let bundleId {
      let literal = try PostgresLiteral.text(bundleId)
      ofOrder.append(
        onlyBundleId == bundleId
          ? "(o.bundle_id IS NULL OR o.bundle_id::text = \(literal))" : "o.bundle_id::text = \(literal)")
    }
    if !ofOrder.isEmpty {
      conditions.append(
        "r.order_id IN (SELECT o.order_id FROM \(sales.schema).orders o WHERE \(ofOrder.joined(separator: " AND ")))")
    }
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }
}
