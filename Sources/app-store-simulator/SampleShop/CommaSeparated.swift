/// CSV as Postgres's `COPY ... (FORMAT csv, HEADER)` reads it: an absent value is an unquoted empty cell.
struct CommaSeparated {
  private(set) var text: String

  init(columns: [String]) { text = columns.joined(separator: ",") + "\n" }

  mutating func add(_ cells: [String?]) {
    text += cells.map { $0.map(Self.quoted) ?? "" }.joined(separator: ",") + "\n"
  }

  private static func quoted(_ cell: String) -> String {
    let isPlain = !cell.isEmpty && cell.utf8.allSatisfy { !special.contains($0) }
    return isPlain ? cell : "\"" + cell.replacing("\"", with: "\"\"") + "\""
  }

  private static let special = Set("\",\r\n\\".utf8)
}

extension CommaSeparated {
  /// Rows by id: the order of making is nobody's business.
  ///
  /// - Parameter bundleId: of orders that name none, where a shop has several apps.
  static func orders(_ rows: [OrderRow], bundleId: String?) -> String {
    var file = CommaSeparated(columns: [
      "order_id", "user_id", "bundle_id", "product_id", "quantity", "amount", "currency", "status", "transaction_id",
      "app_account_token", "created_at", "verified_at", "updated_at",
    ])
    for row in rows.sorted(by: { $0.orderId < $1.orderId }) {
      file.add([
        row.orderId, row.userId, row.bundleId ?? bundleId, row.productId, "\(row.quantity)", row.amount, row.currency,
        row.status,
        row.transactionId, row.accountToken, Timeline.text(row.createdAt), row.verifiedAt.map(Timeline.text),
        Timeline.text(row.updatedAt),
      ])
    }
    return file.text
  }

  static func receipts(_ rows: [ReceiptRow]) -> String {
    var file = CommaSeparated(columns: [
      "receipt_id", "order_id", "user_id", "payload", "environment", "status", "checked_at", "received_at",
    ])
    for row in rows.sorted(by: { $0.receiptId < $1.receiptId }) {
      file.add([
        row.receiptId, row.orderId, row.userId, row.payload, row.environment, row.status,
        row.checkedAt.map(Timeline.text), Timeline.text(row.receivedAt),
      ])
    }
    return file.text
  }

  static func deliveries(_ rows: [DeliveryRow]) -> String {
    var file = CommaSeparated(columns: [
      "delivery_id", "order_id", "user_id", "product_id", "quantity", "delivered_at", "revoked_at",
    ])
    for row in rows.sorted(by: { $0.deliveryId < $1.deliveryId }) {
      file.add([
        row.deliveryId, row.orderId, row.userId, row.productId, "\(row.quantity)", Timeline.text(row.deliveredAt),
        row.revokedAt.map(Timeline.text),
      ])
    }
    return file.text
  }
}
