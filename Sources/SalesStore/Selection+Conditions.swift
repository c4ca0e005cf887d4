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
    if let orderId { conditions.append(try SalesRows.equals("o.order_id", orderId.text)) }
    if let userId { conditions.append(try SalesRows.equals("o.user_id", userId.text)) }
    conditions += try conditionsOnProducts(onlyBundleId: onlyBundleId)
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }

  /// A condition on receipts, aliased `r`, that belong to listed orders or users. `TRUE` when nothing is filtered.
  ///
  /// - Parameters:
  ///   - sales: where the orders are.
  ///   - onlyBundleId: the app of orders that name none, when there is just one.
  package func receiptCondition(_ sales: SalesRows, onlyBundleId: String?) throws(PostgresError) -> String {
    func isOfOrder(_ condition: String) -> String {
      "r.order_id::text COLLATE \"C\" IN (\(sales.orderIds(where: condition)))"
    }
    var conditions: [String] = []
    if let orderId { conditions.append(try SalesRows.equals("r.order_id", orderId.text)) }
    if let userId {
      let isOfUser = isOfOrder(try SalesRows.equals("o.user_id", userId.text))
      conditions.append("(\(try SalesRows.equals("r.user_id", userId.text)) OR \(isOfUser))")
    }
    let ofOrder = try conditionsOnProducts(onlyBundleId: onlyBundleId)
    if !ofOrder.isEmpty { conditions.append(isOfOrder(ofOrder.joined(separator: " AND "))) }
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }

  private func conditionsOnProducts(onlyBundleId: String?) throws(PostgresError) -> [String] {
    var conditions: [String] = []
    if let productId { conditions.append(try SalesRows.equals("o.product_id", productId.text)) }
    if let bundleId {
      let isNamed = try SalesRows.equals("o.bundle_id", bundleId)
      let isAnyones = "coalesce(o.bundle_id::text, '') COLLATE \"C\" = ''"
      conditions.append(onlyBundleId == bundleId ? "(\(isAnyones) OR \(isNamed))" : isNamed)
    }
    return conditions
  }
}

extension SalesRows {
  /// The ids of some orders, aliased `o`, to look ids up in. Read by itself: a cluster whose orders and receipts lie on
  /// different hosts joins them only so.
  package func orderIds(where condition: String) -> String {
    "SELECT q.id FROM (SELECT o.order_id::text AS id FROM \(schema).orders o WHERE \(condition) OFFSET 0) AS q"
  }

  /// A comparison of a column of the shop's with an id, byte by byte. Under the column's own collation other spellings may
  /// be equal, or the comparison be refused.
  package static func equals(_ column: String, _ id: String) throws(PostgresError) -> String {
    "\(column)::text COLLATE \"C\" = \(try PostgresLiteral.text(id))"
  }
}
