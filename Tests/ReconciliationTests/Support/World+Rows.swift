import Reconciliation

extension World {
  /// The rows of the shop's tables, as statements. Those that break the contract do so as rows of tables can.
  ///
  /// - Parameters:
  ///   - payloads: what clients sent, by receipt id; nil: nobody reads it.
  ///   - appleId: what Apple calls a transaction that an order names.
  func salesRows(
    payloads: [Identifier: String]? = nil, appleId: (Identifier) -> String = { $0.text }
  ) -> String {
    var statements = orders.map { row in
      switch row {
      case .valid(let order):
        Self.insert(
          "orders", .text(order.orderId), .text(order.userId), .text(order.bundleId), .text(order.productId),
          .number(order.quantity), "\(order.amount.decimalText)", .text(order.amount.currency.code),
          .text(order.status.rawValue), .text(order.transactionId.map(appleId)), .text(order.appAccountToken),
          .time(order.createdAt), .time(order.verifiedAt), .time(order.createdAt))
      case .bad(let bad):
        Self.insert(
          "orders", .text(bad.orderId), .text(bad.userId), .text(bad.bundleId), .text(bad.productId),
          .number(bad.quantity), "\(bad.amountText)", .text(bad.currencyText), .text(bad.statusText), "NULL", "NULL",
          .time(bad.createdAt), "NULL", .time(bad.createdAt))
      }
    }
    statements += deliveries.map { delivery in
      Self.insert(
        "deliveries", .text(delivery.deliveryId), .text(delivery.orderId), .text(delivery.userId),
        .text(delivery.productId), .number(delivery.defect == nil ? delivery.quantity : 0), .time(delivery.deliveredAt),
        .time(delivery.revokedAt))
    }
    statements += receipts.map { receipt in
      Self.insert(
        "receipts", .text(receipt.receiptId), .text(receipt.orderId), .text(receipt.userId),
        .text(payloads.map { $0[receipt.receiptId] } ?? "payload"), .text(receipt.claimedEnvironment),
        .text(receipt.defect == nil ? "unverified" : "broken"), "NULL", .time(receipt.receivedAt))
    }
    return statements.joined(separator: "\n")
  }

  /// What the shop sells, as a table of its own.
  var catalogueRows: String {
    let table =
      "CREATE TABLE sales.products (product_id text, type text, name text, sold_from timestamptz, sold_until timestamptz);"
    let rows = Set(products ?? []).map { product in
      Self.insert(
        "products", .text(product.productId), .text(product.type?.rawValue ?? "Consumable"), "NULL",
        .time(product.soldFrom), .time(product.soldUntil))
    }
    return ([table] + rows).joined(separator: "\n")
  }

  private static func insert(_ table: String, _ values: Literal...) -> String {
    "INSERT INTO sales.\(table) VALUES (\(values.map(\.sql).joined(separator: ", ")));"
  }
}

/// A value in a statement.
private struct Literal: ExpressibleByStringInterpolation {
  let sql: String

  init(stringLiteral sql: String) { self.sql = sql }

  static func text(_ text: String?) -> Literal {
    text.map { "'\($0.replacing("'", with: "''"))'" } ?? "NULL"
  }

  static func text(_ id: Identifier?) -> Literal { text(id?.text) }

  static func number(_ number: Int32) -> Literal { "\(number)" }

  static func time(_ instant: Instant?) -> Literal {
    instant.map { "timestamptz 'epoch' + \($0.microseconds) * interval '1 microsecond'" } ?? "NULL"
  }
}
