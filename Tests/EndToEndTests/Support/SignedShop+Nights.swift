import Foundation
import Testing

/// Nights counted from `asOf`, each with its report in the folder of its day, for tests of notifications.
extension SignedShop {
  static let start = milliseconds(asOf)
  static let day: Int64 = 86_400_000

  /// A shop whose transactions are gems for 1.99 USD in production, unless they say otherwise.
  convenience init(
    sales: [[String: Any]], apps: [App] = [game], latency: String = "0", sendsNotifications: Bool = true,
    formats: String = "csv"
  ) async throws {
    let gems: [String: Any] = [
      "environment": "Production", "bundleId": "com.example.game", "productId": "gems.100", "type": "Consumable",
      "price": 1_990, "currency": "USD",
    ]
    try await self.init(
      apps: apps, transactions: sales.map { gems.merging($0) { $1 } }, sendsNotifications: sendsNotifications,
      formats: formats, simulator: ["--latency", latency])
  }

  /// Adds a delivered order that states a transaction, both at the given time in milliseconds.
  func sell(_ id: String, naming transactionId: String, at time: Int64, product: String = "gems.100") async throws {
    try await execute(
      """
      INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
        transaction_id, created_at, verified_at, updated_at)
      SELECT '\(id)', 'u1', 'com.example.game', '\(product)', 1, 1.99, 'USD', 'verified', '\(transactionId)', t, t, t
      FROM to_timestamp(\(time / 1_000)) t;
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      VALUES ('d-\(id)', '\(id)', 'u1', '\(product)', 1, to_timestamp(\(time / 1_000)));
      """)
  }

  static func asOf(_ number: Int64) -> String { text(start + number * day) }

  static func text(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds) / 1_000).ISO8601Format()
  }

  /// Sets the App Store's clock and runs a night.
  @discardableResult
  func night(
    _ number: Int64, _ arguments: String..., exits statuses: Set<Int32>? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Program.Result {
    try await setClock(Self.asOf(number))
    return try await nightAudit(
      "run", "--as-of", Self.asOf(number), more: arguments, exits: statuses, sourceLocation: sourceLocation)
  }
}
