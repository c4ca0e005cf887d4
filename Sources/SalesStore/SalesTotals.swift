import Postgres
import Reconciliation

/// The number and amount of orders per currency, from the server or from the rows read. If the two differ, nothing is
/// published.
package struct SalesTotals: Equatable, Sendable {
  private struct Line: Equatable, Sendable {
    var orders = 0
    var amount: Int128 = 0

    mutating func add(_ millionths: Int128) {
      orders += 1
      amount += millionths.magnitude <= UInt128(SalesTotals.limit) * 1_000_000 ? millionths : 0
    }
  }

  /// Bad rows, keyed by their currency text, and added totals.
  private var others: [String: Line] = [:]
  private var read = ByCurrency<Line>()

  private var lines: [String: Line] {
    read.sorted.reduce(into: others) {
      $0[$1.currency.code, default: Line()].orders += $1.value.orders
      $0[$1.currency.code, default: Line()].amount += $1.value.amount
    }
  }

  /// No currency has more digits. An order with more decimals is counted without its amount.
  package static let decimals = 6
  /// In major units. An order of a larger amount is counted without it.
  package static let limit: Int64 = 1_000_000_000_000_000

  package init() {}

  package static func == (left: SalesTotals, right: SalesTotals) -> Bool { left.lines == right.lines }

  /// Computes the totals on the server, in the snapshot of `connection`.
  package init(
    _ sales: SalesRows, where conditions: String..., on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    var rows = try connection.copyOut(try Self.query(sales, where: conditions))
    try self.init(rows: &rows)
  }

  package init(rows: inout CopyReader) throws(PostgresError) {
    while try rows.advance() {
      let key = try rows.salesText(0).shown.text
      others[key, default: Line()].orders += Int(try rows.int64(1))
      others[key, default: Line()].amount += try rows.optionalNumeric(2).flatMap(Self.millionths) ?? 0
    }
  }

  package static func query(_ sales: SalesRows, where conditions: [String] = []) throws(PostgresError) -> String {
    """
    SELECT o.currency::text COLLATE "C", count(*), sum(o.amount::numeric) FILTER (
      WHERE abs(o.amount::numeric) <= \(limit) AND scale(trim_scale(o.amount::numeric)) <= \(decimals))
    FROM \(try sales.knownOrders(where: conditions)) GROUP BY 1
    """
  }

  package mutating func add(_ row: OrderRow) {
    switch row {
    case .valid(let order): add(order.amount)
    case .bad(let order):
      others[order.currencyText, default: Line()].add(Self.millionths(order.amountText) ?? 0)
    }
  }

  package mutating func add(_ order: BorrowedOrder) { add(order.amount) }

  private mutating func add(_ amount: Money) {
    let factor = Money.powersOfTen[Self.decimals - Int(amount.currency.digits)]
    read[amount.currency, default: Line()].add(Int128(amount.minorUnits) * Int128(factor))
  }

  /// Orders and amounts in millionths of a major unit, by currency or the text in its place.
  package var byCurrency: [(currency: String, orders: Int, millionths: Int128)] {
    lines.sorted { $0.key < $1.key }.map { ($0.key, $0.value.orders, $0.value.amount) }
  }

  package var money: MoneyByCurrency {
    var money: [Currency: Int128] = [:]
    for line in byCurrency {
      guard let currency = Currency(code: line.currency) else { continue }
      money[currency] = line.millionths / Int128(Money.powersOfTen[Self.decimals - Int(currency.digits)])
    }
    return MoneyByCurrency(money)
  }

  package var ordersByCurrency: [Currency: Int] {
    byCurrency.reduce(into: [:]) { orders, line in
      if let currency = Currency(code: line.currency) { orders[currency] = line.orders }
    }
  }

  package mutating func add(orders: Int, millionths: Int128, of currency: String) {
    others[currency, default: Line()].orders += orders
    others[currency, default: Line()].amount += millionths
  }

  package mutating func join(_ other: SalesTotals) {
    for (currency, line) in other.lines { add(orders: line.orders, millionths: line.amount, of: currency) }
  }

  private static func millionths(_ amount: PostgresNumeric) -> Int128? { try? amount.scaledInt128(decimals: decimals) }

  // Nil for text that is no number or has too many decimals.
  private static func millionths(_ text: String) -> Int128? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = (parts.count > 1 ? String(parts[1]) : "").reversed().drop { $0 == "0" }.reversed()
    guard fraction.count <= decimals, let whole = parts.first else { return nil }
    return Int128(whole + String(fraction) + String(repeating: "0", count: decimals - fraction.count))
  }

  package var orders: Int { lines.values.reduce(0) { $0 + $1.orders } }

  /// Describes the differences between the server's totals (the receiver) and those read.
  package func differences(from read: SalesTotals) -> [String] {
    let (counted, read) = (lines, read.lines)
    return Set(counted.keys).union(read.keys).sorted().compactMap { currency in
      let (left, right) = (counted[currency] ?? Line(), read[currency] ?? Line())
      if left == right { return nil }
      return """
        \(currency.isEmpty ? "no currency" : currency): the database counts \(left.orders) orders of \
        \(Millionths(count: left.amount)), \(right.orders) of \(Millionths(count: right.amount)) were read
        """
    }
  }
}
