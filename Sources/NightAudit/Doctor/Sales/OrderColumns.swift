import Postgres
import Reconciliation
import SalesStore
import Settings
import Streams

/// Counts values of single columns of orders that show a wrong mapping, although each row keeps the contract.
struct OrderColumns {
  /// Orders after it are in the future.
  private let latest: Instant
  private var units = Self.smallerUnits.map { unit in (unit: unit, tally: Tally()) }
  private var future = Tally()
  private var refunded = Tally()
  private var ofOtherStores = Tally()

  init(latest: Instant) { self.latest = latest }

  /// Currencies in which Apple's usual prices end in 99 or 49 hundredths.
  private static let currenciesWithCents = Set(
    (["USD", "EUR", "GBP", "CAD", "AUD", "NZD"] as [Identifier]).compactMap { Currency($0) })

  private struct SmallerUnit {
    var name: String
    var divisor: Int64
  }

  /// Units in which shops store amounts. A price of 4.99 is 499, 4990 or 4990000.
  private static let smallerUnits = [
    SmallerUnit(name: "cents", divisor: 100), SmallerUnit(name: "thousandths", divisor: 1_000),
    SmallerUnit(name: "millionths (micros)", divisor: 1_000_000),
  ]

  /// - Parameter row: the order's row, because an order has no transaction ID that Apple cannot give.
  mutating func add<ID: FieldText, Text: FieldText>(
    _ order: OrderFields<ID, Text>, _ row: borrowing CopyReader
  ) throws {
    ofOtherStores.count(try row.optionalKey(8)?.bytes.starts(with: "GPA.".utf8) ?? false, "order \(order.orderId.id)")
    refunded.count(order.status == .refunded, "order \(order.orderId.id)")
    future.count(order.createdAt > latest, "order \(order.orderId.id) created \(order.createdAt.text)")
    let amount = order.amount
    guard amount.minorUnits > 0, Self.currenciesWithCents.contains(amount.currency) else { return }
    for index in units.indices {
      let price = amount.minorUnits.quotientAndRemainder(dividingBy: units[index].unit.divisor)
      units[index].tally.count(
        price.remainder == 0 && [99, 49].contains(price.quotient % 100),
        "order \(order.orderId.id): \(amount.decimalText) \(amount.currency)")
    }
  }

  func diagnoses(_ settings: Settings) -> [Diagnosis] {
    var found: [Diagnosis] = []
    func name(_ column: String) -> String { "\(settings.salesSchema).orders.\(column)" }
    for (unit, amounts) in units where amounts.all >= Tally.fewest && amounts.odd * 2 > amounts.all {
      found.append(
        Diagnosis(
          subject: name("amount"), held: true,
          because: """
            looks like \(unit.name): \(amounts.odd) of \(amounts.all) amounts are whole numbers such as \(499 * unit.divisor / 100)
            """,
          kind: .amountMismatch, remedy: "write amount / \(unit.divisor).0 in the view", examples: amounts.examples))
    }
    if refunded.holdsNight(settings.holdShare) {
      found.append(
        Diagnosis(
          subject: name("status"), held: true, because: "\(refunded.odd) of \(refunded.all) orders are refunded",
          kind: .refundOnlyHere, remedy: "check which state of the shop is mapped to refunded",
          examples: refunded.examples))
    }
    if future.odd >= Tally.fewest {
      found.append(
        Diagnosis(
          subject: name("created_at"), held: future.holdsNight(settings.holdShare),
          because: "\(future.odd) of \(future.all) orders are in the future, so that no night reads them",
          kind: .orphanPayment, remedy: "show the time of the order, in its own time zone, in the view",
          examples: future.examples))
    }
    if ofOtherStores.odd > 0 {
      found.append(
        Diagnosis(
          subject: name("transaction_id"), held: false,
          because: "\(ofOtherStores.odd) orders have transaction IDs of Google Play (GPA.…), which Apple does not know",
          remedy: "leave other stores' orders out of the view: WHERE store = 'apple'",
          examples: ofOtherStores.examples))
    }
    return found
  }
}
