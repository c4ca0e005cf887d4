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

extension Adjustment {
  static let titles = [
    "Orders reported", "Orders now", "Orders changed", "Amount reported", "Amount now", "Amount changed",
  ]
  static let netTitle = "Net, all outcomes"
}

extension [Adjustment] {
  /// Net amount by currency: the change of settled money, whatever disposition it left.
  var net: [(currency: Currency, units: Int128)] {
    let sums = reduce(into: [Currency: Int128]()) { net, adjustment in
      guard Disposition.inMoneyTotals.contains(adjustment.bucket.disposition) else { return }
      net[adjustment.bucket.currency, default: 0] += adjustment.now.minorUnits - adjustment.reported.minorUnits
    }
    return sums.sorted { $0.key < $1.key }.map { (currency: $0.key, units: $0.value) }
  }
}

extension SummaryFacts {
  /// The sentences above the adjustments; nil without a changed order.
  var adjustmentsNote: String? {
    let known =
      "Facts that arrived after these days were reported. Published reports are not changed. The orders behind a line "
      + "are on the sheet Changes of the first report that shows the adjustment."
    let unreported = sentence(
      unreportedAdjustments, one: "1 more order is of a day that no night reported; see Changes."
    ) { "\($0) more orders are of days that no night reported; see Changes." }
    let sentences = [adjustments.isEmpty ? nil : known, unreported].compactMap(\.self)
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }
}
