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
    return lines
  }
}
