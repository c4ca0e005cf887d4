import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import TestSupport
import Testing

/// A database with the plain sales tables, which a test may change.
struct TestShop {
  let cluster: PrivatePostgres
  let conninfo: String

  /// - Parameter script: runs after the plain tables have been made.
  static func make(
    in cluster: PrivatePostgres? = nil, isPlain: Bool = true, _ script: String = "SELECT 1"
  ) async throws -> TestShop {
    let cluster = if let cluster { cluster } else { try await PrivatePostgres.shared() }
    let shop = TestShop(cluster: cluster, conninfo: try await cluster.createDatabase())
    try await shop.connected { connection in
      if isPlain { try SalesSchema.create("sales", connection) }
      try connection.executeScript(script)
    }
    return shop
  }

  /// Runs `body` on a connection of the database's owner.
  func connected<R: Sendable>(_ body: @Sendable (borrowing BlockingConnection) throws -> R) async throws -> R {
    try await withBlockingThread { scope in try body(try scope.connect(conninfo, applicationName: "tests")) }
  }

  var settings: Settings {
    var settings = Settings()
    settings.databaseURL = conninfo
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    return settings
  }

  /// Runs `body` on a connection with the profile of a night.
  func reading<R: Sendable>(
    _ settings: Settings? = nil, _ body: @Sendable (borrowing BlockingConnection) throws -> R
  ) async throws -> R {
    let settings = settings ?? self.settings
    return try await withBlockingThread { scope in
      try body(try SalesStore.connect(settings, scope, applicationName: "tests"))
    }
  }

  /// All orders, read as in a night.
  func orders(_ settings: Settings? = nil, horizon: Horizon? = nil) async throws -> [OrderRow] {
    let sales = try SalesRows(settings ?? self.settings, horizon: horizon)
    return try await reading(settings) { connection in
      var rows: [OrderRow] = []
      var reader = try connection.copyOut(try sales.orders())
      while try reader.advance() { rows.append(try sales.order(reader, asOf: asOf)) }
      return rows
    }
  }

  /// All deliveries, read as in a night.
  func deliveries(horizon: Horizon? = nil) async throws -> [Delivery] {
    let sales = try SalesRows(settings, horizon: horizon)
    return try await reading { connection in
      var rows: [Delivery] = []
      var reader = try connection.copyOut(try sales.deliveries())
      while try reader.advance() { rows.append(try sales.delivery(reader, asOf: asOf)) }
      return rows
    }
  }
}

/// 2026-11-20T03:00:00Z
let asOf = Instant(seconds: 1_795_143_600)

extension OrderRow {
  var defect: String? {
    switch self {
    case .valid: nil
    case .bad(let bad): bad.defect
    }
  }
}

/// One order, with some of its values replaced by SQL expressions.
func insertOrder(_ values: [String: String] = [:]) -> String {
  var columns = [
    "order_id": "'o1'", "user_id": "'u1'", "product_id": "'gems'", "quantity": "1", "amount": "4.99",
    "currency": "'USD'", "status": "'verified'", "created_at": "'2026-11-19T10:00:00Z'",
    "updated_at": "'2026-11-19T10:00:00Z'",
  ]
  columns.merge(values) { _, new in new }
  let sorted = columns.sorted { $0.key < $1.key }
  return """
    INSERT INTO sales.orders (\(sorted.map(\.key).joined(separator: ", ")))
    VALUES (\(sorted.map(\.value).joined(separator: ", ")));
    """
}

/// One delivery, with some of its values replaced by SQL expressions.
func insertDelivery(_ values: [String: String] = [:]) -> String {
  var columns = [
    "delivery_id": "'d1'", "order_id": "'o1'", "user_id": "'u1'", "product_id": "'gems'", "quantity": "1",
    "delivered_at": "'2026-11-19T10:01:00Z'",
  ]
  columns.merge(values) { _, new in new }
  let sorted = columns.sorted { $0.key < $1.key }
  return """
    INSERT INTO sales.deliveries (\(sorted.map(\.key).joined(separator: ", ")))
    VALUES (\(sorted.map(\.value).joined(separator: ", ")));
    """
}
