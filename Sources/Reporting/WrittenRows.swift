import Reconciliation

/// Sums of the written rows, computed apart from `Totals`: the right side of the control totals.
struct WrittenRows {
  var orders = 0
  /// Column `ordered` of `users.csv`, in minor units.
  var users: [Currency: Int128] = [:]
  /// Column `ordered` of `products.csv`, in minor units.
  var products: [Currency: Int128] = [:]
  /// Amount times orders of `amounts.csv`, in minor units.
  var amounts: [Currency: Int128] = [:]

  /// Refunded amounts, negative.
  var refunded = MoneyByCurrency()

  /// Adjusted orders by business day.
  var adjustedOrders: [String: Int] = [:]

  private(set) var refundRates: (products: [RefundRate], users: [RefundRate]) = ([], [])

  mutating func add(product name: String, _ currency: Currency, _ sums: Totals.Line) {
    products[currency, default: 0] += sums.ordered
    RefundRate.add(RefundRate(name, currency, sums), to: &refundRates.products)
  }

  mutating func add(user name: String, _ currency: Currency, _ sums: Totals.Line) {
    users[currency, default: 0] += sums.ordered
    RefundRate.add(RefundRate(name, currency, sums), to: &refundRates.users)
  }

  /// Debits and credits of `journal.csv` by day and currency, in minor units.
  private var journal: [String: [Currency: (debit: Int128, credit: Int128)]] = [:]

  mutating func add(_ line: JournalLine) {
    let (day, currency) = (line.entry.postedFor, line.entry.posting.amount.currency)
    let units = Int128(line.line.minorUnits)
    var sums = journal[day]?[currency] ?? (0, 0)
    if line.line.isDebit { sums.debit += units } else { sums.credit += units }
    journal[day, default: [:]][currency] = sums
  }

  func control(_ totals: Totals) -> [ControlTotal] {
    var lines = [
      ControlTotal(name: "orders read = rows of orders.csv", left: String(totals.ordersRead), right: String(orders))
    ]
    let ordered = totals.ordered.minorUnits
    for currency in Set(ordered.keys).union(users.keys).union(amounts.keys).union(products.keys).sorted() {
      func line(_ file: String, _ sum: Int128?) -> ControlTotal {
        ControlTotal(
          name: "ordered \(currency) = rows of \(file)",
          left: Money.decimalText(ordered[currency] ?? 0, digits: currency.digits),
          right: Money.decimalText(sum ?? 0, digits: currency.digits))
      }
      lines.append(line("users.csv", users[currency]))
      lines.append(line("products.csv", products[currency]))
      lines.append(line("amounts.csv", amounts[currency]))
    }
    for (day, sums) in journal.sorted(by: { $0.key < $1.key }) {
      lines += sums.sorted { $0.key < $1.key }.map { currency, sums in
        ControlTotal(
          name: "journal \(day) \(currency): debits = credits",
          left: Money.decimalText(sums.debit, digits: currency.digits),
          right: Money.decimalText(sums.credit, digits: currency.digits))
      }
    }
    return lines
  }
}
