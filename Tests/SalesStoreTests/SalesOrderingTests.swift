import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import TestSupport
import Testing

/// The collation by which the server sorts IDs by their bytes.
@Suite struct SalesOrderingTests {
  /// Enough orders to make an index scan cheaper than a sort, with IDs whose order depends on the language.
  private static let orders = """
    CREATE COLLATION bytes (provider = libc, locale = 'C.UTF-8');
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
    SELECT (ARRAY['a', 'B', 'ä', ''])[1 + n % 4] || n, 'u', 'gems', 1, 4.99, 'USD', 'verified', t, t
    FROM generate_series(1, 20000) n, LATERAL (SELECT '2026-11-19T10:00:00Z'::timestamptz AS t) w;
    """

  @Test(
    "An index in byte order is used; an index in another order is not",
    arguments: [("bytes", "o.order_id::text"), ("\"und-x-icu\"", "o.order_id::text COLLATE \"C\"")])
  func ordering(_ collation: String, _ key: String) async throws {
    let shop = try await TestShop.make(
      Self.orders + "ALTER TABLE sales.orders ALTER order_id TYPE text COLLATE \(collation); ANALYZE sales.orders")
    let usual = try SalesRows(shop.settings)
    let (ordered, ids, sorts) = try await shop.reading { connection in
      let ordered = try usual.ordered(on: connection)
      let plan = try connection.execute("EXPLAIN \(try ordered.orders())").map { try $0.text(0) }
      var ids: [Identifier] = []
      var reader = try connection.copyOut(try ordered.orders())
      while try reader.advance() { ids.append(try ordered.order(reader, asOf: asOf).orderId) }
      return (ordered, ids, plan.contains { $0.contains("Sort") })
    }
    #expect(ordered.ordering.key(.orderId) == key)
    #expect(ids.count == 20_000 && ids == ids.sorted(), "the order of IDs must be that of their bytes")
    #expect(sorts == key.contains("COLLATE"))
  }

  @Test("A view with additional columns is read and sorted")
  func views() async throws {
    let shop = try await TestShop.make(
      insertOrder() + """
        CREATE SCHEMA views; CREATE VIEW views.receipts AS SELECT * FROM sales.receipts;
        CREATE VIEW views.deliveries AS SELECT * FROM sales.deliveries;
        CREATE VIEW views.orders AS SELECT o.*, length(order_id) AS further FROM sales.orders o;
        """)
    var settings = shop.settings
    settings.salesSchema = "views"
    let usual = try SalesRows(settings)
    let count = try await shop.reading(settings) { connection in
      var reader = try connection.copyOut(try usual.ordered(on: connection).orders())
      var count = 0
      while try reader.advance() { count += 1 }
      return count
    }
    #expect(count == 1)
  }
}
