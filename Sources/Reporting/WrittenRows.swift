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
  private var journal: [JournalKey: (debit: Int128, credit: Int128)] = [:]

  private struct JournalKey: Hashable, Comparable {
    var day: String
    var currency: Currency

    static func < (left: JournalKey, right: JournalKey) -> Bool {
      (left.day, left.currency) < (right.day, right.currency)
    }
  }

  mutating func add(_ line: JournalLine) {
    let key = JournalKey(day: line.entry.postedFor, currency: line.entry.posting.amount.currency)
    var sums = journal[key] ?? (0, 0)
    if line.line.isDebit {
      sums.debit += Int128(line.line.minorUnits)
    } else {
      sums.credit += Int128(line.line.minorUnits)
    }
    journal[key] = sums
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
    for (key, sums) in journal.sorted(by: { $0.key < $1.key }) {
      lines.append(
        ControlTotal(
          name: "journal \(key.day) \(key.currency): debits = credits",
          left: Money.decimalText(sums.debit, digits: key.currency.digits),
          right: Money.decimalText(sums.credit, digits: key.currency.digits)))
    }
    return lines
  }
}
