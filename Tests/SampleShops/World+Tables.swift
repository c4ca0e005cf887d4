import Foundation
import Reconciliation

package struct ShopTable {
  package let name: String
  let columns: [String]
  let rows: [[String?]]

  /// The format of Postgres' `COPY ... (FORMAT csv, HEADER)`: NULL is an unquoted empty cell.
  package var csv: String {
    let lines = rows.map { row in row.map { $0.map(Self.quoted) ?? "" }.joined(separator: ",") }
    return ([columns.joined(separator: ",")] + lines).joined(separator: "\n") + "\n"
  }

  package var sql: String {
    let names = columns.joined(separator: ", ")
    return rows.map { row in
      let values = row.map { cell in cell.map { "'\($0.replacing("'", with: "''"))'" } ?? "NULL" }
      return "INSERT INTO sales.\(name) (\(names)) VALUES (\(values.joined(separator: ", ")));"
    }.joined(separator: "\n")
  }

  private static func quoted(_ cell: String) -> String {
    let isPlain = !cell.isEmpty && cell.utf8.allSatisfy { !special.contains($0) }
    return isPlain ? cell : "\"" + cell.replacing("\"", with: "\"\"") + "\""
  }

  private static let special = Set("\",\r\n\\".utf8)
}

extension World {
  /// Offset of later rows from the as-of. Less than the tolerated clock skew, so their dates are not in the future.
  package static let moment = Span.minutes(2)

  /// The rows of the shop's tables. Invalid rows are invalid in ways that tables allow.
  package func tables(
    payloads: [Identifier: String]? = nil, name: (Identifier) -> String = { $0.text }
  ) -> [ShopTable] {
    let orders = (self.orders + later.orders.map { .valid($0) }).map { row -> [String?] in
      switch row {
      case .valid(let order):
        [
          name(order.orderId), name(order.userId), order.bundleId, order.productId.text, "\(order.quantity)",
          order.amount.decimalText, order.amount.currency.code, order.status.rawValue, order.transactionId.map(name),
          order.appAccountToken, order.createdAt.preciseText, order.verifiedAt?.preciseText,
          (order.isChangedAfterAsOf ? rules.asOf + Self.moment : order.verifiedAt ?? order.createdAt).preciseText,
        ]
      case .bad(let bad):
        [
          name(bad.orderId), name(bad.userId), bad.bundleId, bad.productId.text, bad.quantity.map { "\($0)" },
          bad.amountText, bad.currencyText, bad.statusText, nil, nil, bad.createdAt.preciseText, nil,
          bad.createdAt.preciseText,
        ]
      }
    }
    let receipts = self.receipts.map { receipt -> [String?] in
      let (status, isChecked): (String, Bool) =
        switch receipt.state.outcome {
        case .pending: ("unverified", false)
        case .unanswered: ("timeout", true)
        case .verified, .rejected, .review, .notFound: ("verified", true)
        }
      return [
        name(receipt.receiptId), receipt.orderId.map(name), receipt.userId.map(name),
        payloads.map { $0[receipt.receiptId] } ?? "payload", receipt.claimedEnvironment,
        receipt.defect == nil ? status : "broken", isChecked ? (receipt.receivedAt + .seconds(2)).preciseText : nil,
        receipt.receivedAt.preciseText,
      ]
    }
    let deliveries = (self.deliveries + later.deliveries).map { delivery -> [String?] in
      [
        name(delivery.deliveryId), delivery.orderId.map(name), name(delivery.userId), delivery.productId.text,
        delivery.defect == nil ? delivery.quantity.map { "\($0)" } : "0", delivery.deliveredAt.preciseText,
        (delivery.revokedAt ?? later.revocations[delivery.deliveryId])?.preciseText,
      ]
    }
    return [
      ShopTable(
        name: "orders",
        columns: [
          "order_id", "user_id", "bundle_id", "product_id", "quantity", "amount", "currency", "status",
          "transaction_id", "app_account_token", "created_at", "verified_at", "updated_at",
        ], rows: orders),
      ShopTable(
        name: "receipts",
        columns: [
          "receipt_id", "order_id", "user_id", "payload", "environment", "status", "checked_at", "received_at",
        ], rows: receipts),
      ShopTable(
        name: "deliveries",
        columns: [
          "delivery_id", "order_id", "user_id", "product_id", "quantity", "delivered_at", "revoked_at",
        ], rows: deliveries),
    ]
  }

  package func salesRows(
    payloads: [Identifier: String]? = nil, name: (Identifier) -> String = { $0.text }
  ) -> String {
    tables(payloads: payloads, name: name).map(\.sql).joined(separator: "\n")
  }

  package var catalogueRows: String {
    let columns = ["product_id", "type", "name", "sold_from", "sold_until"]
    let rows = Set(products ?? []).map { product in
      [
        product.productId.text, (product.type ?? .consumable).rawValue, nil, product.soldFrom?.preciseText,
        product.soldUntil?.preciseText,
      ]
    }
    return """
      CREATE TABLE sales.products (product_id text, type text, name text, sold_from timestamptz, sold_until timestamptz);
      \(ShopTable(name: "products", columns: columns, rows: rows).sql)
      """
  }
}

extension Instant {
  /// For example `2026-11-19T22:14:03.250000Z`.
  package var preciseText: String {
    let fraction = String(microseconds - seconds * 1_000_000)
    let second = Date(timeIntervalSince1970: Double(seconds)).ISO8601Format().dropLast()
    return "\(second).\(String(repeating: "0", count: 6 - fraction.count))\(fraction)Z"
  }
}
