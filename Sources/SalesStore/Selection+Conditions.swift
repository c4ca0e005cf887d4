import Postgres
import Reconciliation
import Run

extension Selection {
  /// A condition on listed orders, aliased `o`. `onlyBundleId` is the app of orders without a bundle ID.
  package func orderCondition(onlyBundleId: String?) throws(PostgresError) -> String {
    if matchesNoRow { return "FALSE" }
    var conditions: [String] = []
    if let orderId { conditions.append(try SalesRows.equals("o.order_id", orderId.text)) }
    if let userId { conditions.append(try SalesRows.equals("o.user_id", userId.text)) }
    conditions += try conditionsOnProducts(onlyBundleId: onlyBundleId)
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }

  package struct ReceiptScope: Sendable {
    /// At most one row per receipt. An `IN` in an expression would be a linear search per receipt once it exceeds
    /// work_mem.
    package fileprivate(set) var joins = ""
    package fileprivate(set) var condition = "TRUE"

    package init() {}

    /// Joins the ids of orders, and returns the condition that a receipt belongs to one of them.
    fileprivate mutating func join(_ sales: SalesRows, where condition: String, as name: String) -> String {
      joins += """
         LEFT JOIN (SELECT DISTINCT o.order_id::text COLLATE "C" AS id FROM \(sales.schema).orders o
          WHERE \(condition) OFFSET 0) AS \(name) ON \(name).id = r.order_id::text COLLATE "C"
        """
      return "\(name).id IS NOT NULL"
    }
  }

  /// Returns the receipts of listed orders or users.
  package func receiptScope(_ sales: SalesRows, onlyBundleId: String?) throws(PostgresError) -> ReceiptScope {
    var scope = ReceiptScope()
    if matchesNoRow {
      scope.condition = "FALSE"
      return scope
    }
    var conditions: [String] = []
    if let orderId { conditions.append(try SalesRows.equals("r.order_id", orderId.text)) }
    if let userId {
      let isOfUser = scope.join(sales, where: try SalesRows.equals("o.user_id", userId.text), as: "of_user")
      conditions.append("(\(try SalesRows.equals("r.user_id", userId.text)) OR \(isOfUser))")
    }
    let ofOrder = try conditionsOnProducts(onlyBundleId: onlyBundleId)
    if !ofOrder.isEmpty {
      conditions.append(scope.join(sales, where: ofOrder.joined(separator: " AND "), as: "of_product"))
    }
    if !conditions.isEmpty { scope.condition = conditions.joined(separator: " AND ") }
    return scope
  }

  private func conditionsOnProducts(onlyBundleId: String?) throws(PostgresError) -> [String] {
    var conditions: [String] = []
    if let productId { conditions.append(try SalesRows.equals("o.product_id", productId.text)) }
    if let bundleId {
      let isNamed = try SalesRows.equals("o.bundle_id", bundleId)
      let hasNoAppCondition = "coalesce(o.bundle_id::text, '') COLLATE \"C\" = ''"
      conditions.append(onlyBundleId == bundleId ? "(\(hasNoAppCondition) OR \(isNamed))" : isNamed)
    }
    return conditions
  }
}

extension SalesRows {
  /// A condition that a column equals an id byte by byte. Its own collation may accept other spellings, or none.
  package static func equals(_ column: String, _ id: String) throws(PostgresError) -> String {
    "\(column)::text COLLATE \"C\" = \(try PostgresLiteral.text(id))"
  }
}
