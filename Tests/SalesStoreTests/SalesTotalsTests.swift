import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10)))
struct SalesTotalsTests {
  /// The totals by the server, and those of the rows read.
  private func sides(_ shop: TestShop, horizon: Horizon? = nil) async throws -> (SalesTotals, SalesTotals) {
    let sales = try SalesRows(shop.settings, horizon: horizon)
    let left = try await shop.reading { connection in
      let counted = try SalesTotals(sales, on: connection)
      // A reader in another process passes the server's totals on as binary records.
      var records = try connection.execute("SELECT record_send(q) FROM (\(SalesTotals.query(sales))) AS q")
        .map { try $0.bytes(0) }.makeIterator()
      var rows = CopyReader { () throws(PostgresError) in records.next() }
      let handedOn = try SalesTotals(rows: &rows)
      #expect(handedOn.differences(from: counted) == [])
      return counted
    }
    var right = SalesTotals()
    for row in try await shop.orders(horizon: horizon) { right.add(row) }
    return (left, right)
  }

  @Test("the server's totals equal those of the rows read, also of bad rows")
  func agreement() async throws {
    let amounts = [
      "4.99", "0", "-3", "1e30", "'NaN'", "'Infinity'", "0.1234567", "4.990000000", "1000000000000000", "0.000001",
    ]
    let currencies = ["'USD'", "'JPY'", "'KWD'", "'odd'", "''", "repeat('x', 2000)"]
    var script = "ALTER TABLE sales.orders ALTER amount DROP NOT NULL, ALTER currency DROP NOT NULL;"
    for (row, amount) in (amounts + ["NULL"]).enumerated() {
      for (column, currency) in (currencies + ["NULL"]).enumerated() {
        script += insertOrder(["order_id": "'\(row)-\(column)'", "amount": amount, "currency": currency])
      }
    }
    script += insertOrder(["order_id": "'late'", "created_at": "'2026-12-01'"])
    let shop = try await TestShop.make(script)
    let (left, right) = try await sides(shop)
    #expect(left.differences(from: right) == [] && left == right && left.orders == 78)
    let (known, read) = try await sides(shop, horizon: Horizon(asOf: asOf, clock: asOf, isPastAudit: true))
    #expect(known == read && known.orders == 77)
  }

  @Test("the totals agree for currencies that are not UTF-8")
  func unreadable() async throws {
    let shop = try await TestShop.make(
      in: try await PrivatePostgres.start(encoding: "SQL_ASCII"),
      insertOrder(["currency": #"E'\xff\xfe'"#])
        + insertOrder(["order_id": "'o2'", "currency": #"repeat(E'\xe9', 2000)"#]))
    let (left, right) = try await sides(shop)
    #expect(left.differences(from: right) == [] && left.orders == 2)
  }

  @Test("a view that hides rows from the stream only is reported as a difference")
  func hidingView() async throws {
    let shop = try await TestShop.make(
      insertOrder() + insertOrder(["order_id": "'o2'", "amount": "0.01"])
        + """
        ALTER TABLE sales.orders RENAME TO kept;
        CREATE VIEW sales.orders AS SELECT * FROM sales.kept WHERE order_id <> 'o2' OR current_query() LIKE '%count(%'
        """)
    let (left, right) = try await sides(shop)
    #expect(left.differences(from: right) == ["USD: the database counts 2 orders of 5, 1 of 4.99 were read"])
  }

  @Test("the totals agree for integer amounts")
  func integers() async throws {
    let shop = try await TestShop.make(
      "ALTER TABLE sales.orders ALTER amount TYPE bigint;" + insertOrder(["amount": "499", "currency": "'JPY'"]))
    let (left, right) = try await sides(shop)
    #expect(left == right)
  }
}
