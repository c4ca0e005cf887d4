import Reconciliation

struct AdjustmentLine: Codable {
  struct Sum: Codable {
    let orders: Int
    let amount: String

    init(_ sum: DayTotals.Sum, digits: UInt8) {
      orders = sum.orders
      amount = Money.decimalText(sum.minorUnits, digits: digits)
    }
  }

  let day: String
  let currency: String
  let disposition: String
  let reported: Sum
  let now: Sum

  init(_ adjustment: Adjustment) {
    let currency = adjustment.bucket.currency
    day = adjustment.day
    self.currency = currency.code
    disposition = adjustment.bucket.disposition.rawValue
    reported = Sum(adjustment.reported, digits: currency.digits)
    now = Sum(adjustment.now, digits: currency.digits)
  }
}
