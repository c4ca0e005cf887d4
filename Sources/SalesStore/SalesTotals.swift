import Postgres
import Reconciliation

/// How many orders there are in each currency and what they add up to: once as the server adds them up, once as they were
/// read. A view that shows other rows to one of the two is found out, and nothing is published.
package struct SalesTotals: Equatable, Sendable {
  /// One currency, or what stands in its place.
  private struct Line: Equatable, Sendable {
    var orders = 0
    /// In millionths of a major unit.
    var amount: Int128 = 0

    mutating func add(_ millionths: Int128) {
      orders += 1
      amount += millionths.magnitude <= UInt128(SalesTotals.limit) * 1_000_000 ? millionths : 0
    }
  }

  /// Rows that break the contract, and what others have added up.
  private var others: [String: Line] = [:]
  /// Orders that keep the contract, as they were read.
  private var read = ByCurrency<Line>()

  private var lines: [String: Line] {
    read.sorted.reduce(into: others) {
      $0[$1.currency.code, default: Line()].orders += $1.value.orders
      $0[$1.currency.code, default: Line()].amount += $1.value.amount
    }
  }

  /// No currency has more digits; an amount with more decimals is no money, and counts as an order only.
  package static let decimals = 6
  /// An amount beyond this is no money either. In major units.
  package static let limit: Int64 = 1_000_000_000_000_000

  package init() {}

  package static func == (left: SalesTotals, right: SalesTotals) -> Bool { left.lines == right.lines }

  /// As the server adds them up, in the snapshot of `connection`. Throws `PostgresError`.
  ///
  /// - Parameter conditions: of orders, as `SalesRows.orders(where:)` has them.
  package init(
    _ sales: SalesRows, where conditions: String..., on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    var rows = try connection.copyOut(try Self.query(sales, where: conditions))
    try self.init(rows: &rows)
  }

  /// From rows of `query`, whoever got them. Throws `PostgresError`.
  package init(rows: inout CopyReader) throws(PostgresError) {
    while try rows.advance() {
      let key = try rows.salesText(0).shown.text
      others[key, default: Line()].orders += Int(try rows.int64(1))
      others[key, default: Line()].amount += try rows.optionalNumeric(2).flatMap(Self.millionths) ?? 0
    }
  }

  /// The sums as the server adds them up: currency, orders, amount.
  package static func query(_ sales: SalesRows, where conditions: [String] = []) throws(PostgresError) -> String {
    """
    SELECT o.currency::text COLLATE "C", count(*), sum(o.amount::numeric) FILTER (
      WHERE abs(o.amount::numeric) <= \(limit) AND scale(trim_scale(o.amount::numeric)) <= \(decimals))
    FROM \(try sales.knownOrders(where: conditions)) GROUP BY 1
    """
  }

  /// Adds an order as it was read.
  package mutating func add(_ row: OrderRow) {
    switch row {
    case .valid(let order): add(order.amount)
    case .bad(let order):
      others[order.currencyText, default: Line()].add(Self.millionths(order.amountText) ?? 0)
    }
  }

  /// As of the row.
  package mutating func add(_ order: PlainOrder) { add(order.amount) }

  private mutating func add(_ amount: Money) {
    let factor = Money.powersOfTen[Self.decimals - Int(amount.currency.digits)]
    read[amount.currency, default: Line()].add(Int128(amount.minorUnits) * Int128(factor))
  }

  /// Orders and their amount, in millionths of a major unit, by what stands in the place of the currency.
  package var byCurrency: [(currency: String, orders: Int, millionths: Int128)] {
    lines.sorted { $0.key < $1.key }.map { ($0.key, $0.value.orders, $0.value.amount) }
  }

  /// Amounts in the minor unit of each currency, rounded down.
  package var money: MoneyByCurrency {
    var money: [Currency: Int128] = [:]
    for line in byCurrency {
      guard let currency = Currency(code: line.currency) else { continue }
      money[currency] = line.millionths / Int128(Money.powersOfTen[Self.decimals - Int(currency.digits)])
    }
    return MoneyByCurrency(money)
  }

  /// Adds orders of one currency.
  package mutating func add(orders: Int, millionths: Int128, of currency: String) {
    others[currency, default: Line()].orders += orders
    others[currency, default: Line()].amount += millionths
  }

  /// Adds the orders that other totals were made of.
  package mutating func join(_ other: SalesTotals) {
    for (currency, line) in other.lines { add(orders: line.orders, millionths: line.amount, of: currency) }
  }

  private static func millionths(_ amount: PostgresNumeric) -> Int128? { try? amount.scaledInt128(decimals: decimals) }

  /// Of an amount as the database prints it; nil for what is no number or has more decimals.
  private static func millionths(_ text: String) -> Int128? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let fraction = (parts.count > 1 ? String(parts[1]) : "").reversed().drop { $0 == "0" }.reversed()
    guard fraction.count <= decimals, let whole = parts.first else { return nil }
    return Int128(whole + String(fraction) + String(repeating: "0", count: decimals - fraction.count))
  }

  /// All orders, whatever their currency.
  package var orders: Int { lines.values.reduce(0) { $0 + $1.orders } }

  /// Where the two sides differ, in words; empty when they agree. The receiver is what the server added up.
  package func differences(from read: SalesTotals) -> [String] {
    let (counted, read) = (lines, read.lines)
    return Set(counted.keys).union(read.keys).sorted().compactMap { currency in
      let (left, right) = (counted[currency] ?? Line(), read[currency] ?? Line())
      if left == right { return nil }
      return """
        \(currency.isEmpty ? "no currency" : currency): the database counts \(left.orders) orders of \
        \(Self.text(left.amount)), \(right.orders) of \(Self.text(right.amount)) were read
        """
    }
  }

  private static func text(_ millionths: Int128) -> String {
    var text = Money.decimalText(millionths, digits: UInt8(decimals))
    while text.hasSuffix("0") { text.removeLast() }
    return text.hasSuffix(".") ? String(text.dropLast()) : text
  }
}
