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
    if isPlain { try await shop.makePlain(script) } else { try await shop.connected { try $0.executeScript(script) } }
    return shop
  }

  /// Replaces the sales tables by new plain ones, and runs `script`.
  func makePlain(_ script: String) async throws {
    try await connected { connection in
      try connection.executeScript("DROP SCHEMA IF EXISTS sales CASCADE")
      try SalesSchema.create("sales", connection)
      try connection.executeScript(script)
    }
  }

  /// Makes a hot standby of the shop's cluster, which stops with its last reference, and settings that read the sales
  /// there.
  func standby(_ server: String = "") async throws -> (PrivatePostgres, Settings) {
    let standby = try await cluster.startStandby(settings: server)
    try await standby.catchUp(with: cluster)
    var settings = settings
    let database = conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }
    settings.salesURL = standby.conninfo(database: try #require(database.map { String($0.dropFirst(7)) }))
    return (standby, settings)
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

  /// The values that `read` makes of the rows of a stream, as in a night.
  func rows<Row: Sendable>(
    _ query: String, _ settings: Settings? = nil, _ read: @Sendable (borrowing CopyReader) throws -> Row
  ) async throws -> [Row] {
    try await reading(settings) { connection in
      var rows: [Row] = []
      var reader = try connection.copyOut(query)
      while try reader.advance() { rows.append(try read(reader)) }
      return rows
    }
  }

  func orders(_ settings: Settings? = nil, horizon: Horizon? = nil) async throws -> [OrderRow] {
    let sales = try SalesRows(settings ?? self.settings, horizon: horizon)
    return try await rows(sales.orders(), settings) { try sales.order($0, asOf: asOf) }
  }

  func deliveries(horizon: Horizon? = nil) async throws -> [Delivery] {
    let sales = try SalesRows(settings, horizon: horizon)
    return try await rows(sales.deliveries()) { try sales.delivery($0, asOf: asOf) }
  }
}

/// 2026-11-20T03:00:00Z
let asOf = Instant(seconds: 1_795_143_600)

extension OrderRow {
  var defect: String? { if case .bad(let bad) = self { bad.defect } else { nil } }

  var valid: Order? { if case .valid(let order) = self { order } else { nil } }
}

/// A row of a relation, with some of its values replaced by SQL expressions.
private func insert(_ relation: String, _ values: [String: String], _ changes: [String: String]) -> String {
  let sorted = values.merging(changes) { $1 }.sorted { $0.key < $1.key }
  return """
    INSERT INTO sales.\(relation) (\(sorted.map(\.key).joined(separator: ", ")))
    VALUES (\(sorted.map(\.value).joined(separator: ", ")));
    """
}

func insertOrder(_ changes: [String: String] = [:]) -> String {
  let values = [
    "order_id": "'o1'", "user_id": "'u1'", "product_id": "'gems'", "quantity": "1", "amount": "4.99",
    "currency": "'USD'", "status": "'verified'", "created_at": "'2026-11-19T10:00:00Z'",
    "updated_at": "'2026-11-19T10:00:00Z'",
  ]
  return insert("orders", values, changes)
}

func insertDelivery(_ changes: [String: String] = [:]) -> String {
  let values = [
    "delivery_id": "'d1'", "order_id": "'o1'", "user_id": "'u1'", "product_id": "'gems'", "quantity": "1",
    "delivered_at": "'2026-11-19T10:01:00Z'",
  ]
  return insert("deliveries", values, changes)
}
