import Reconciliation

package struct TieOutTotals: Sendable {
  package struct Day: Hashable, Sendable {
    package var apple = Millionths.zero
    package var unexplained = Millionths.zero

    package init() {}
  }

  /// Units of a product that Apple counted in one week and no order or transaction explains.
  package struct Week: Hashable, Sendable {
    package var app: String
    package var productId: Identifier
    package var monday: ReportDay
    package var units: Millionths
    package var isUnknownProduct: Bool
    /// nil if the price of some unit is unknown, or currencies differ.
    package var amount: Millionths?
    package var currency: Identifier?
  }

  package private(set) var apple = Millionths.zero
  package private(set) var ours = Millionths.zero
  package private(set) var explained = Explained()
  /// Net: days on which Apple counts less are subtracted.
  package private(set) var unexplained = Millionths.zero
  /// Unexplained units of orders whose payment is not confirmed yet.
  package private(set) var awaited = Millionths.zero
  package private(set) var days: [ReportDay: Day] = [:]

  private struct WeekKey: Hashable {
    var app: String
    var productId: Identifier
    var monday: ReportDay
  }
  private struct WeekSum {
    var units = Millionths.zero
    var isUnknown = false
    /// True if some units may belong to unconfirmed orders: then the amount of the others is unknown.
    var isAwaiting = false
    var amounts: [Identifier: Millionths] = [:]
    /// Equal unless one of our prices is missing on a day.
    var unitDays: Set<ReportDay> = []
    var amountDays: Set<ReportDay> = []
  }
  private var weekSums: [WeekKey: WeekSum] = [:]

  package init() {}

  package mutating func add(_ row: TieOutRow) {
    guard let comparison = row.comparison else { return }
    let unreported = unreported(comparison) - row.awaited
    let key = WeekKey(app: row.app, productId: row.productId, monday: row.day.monday)
    switch row.level {
    case .units:
      apple += row.apple ?? .zero
      ours += row.ours ?? .zero
      explained += comparison.explained
      unexplained += comparison.unexplained
      if comparison.explained[.otherScope] == .zero {
        days[row.day, default: Day()].apple += row.apple ?? .zero
        days[row.day, default: Day()].unexplained += comparison.unexplained
      }
      // Not netted, because a shortfall on one day does not explain an excess on another.
      awaited += row.awaited
      if row.awaited > .zero { weekSums[key, default: WeekSum()].isAwaiting = true }
      guard row.kind == .sale, unreported > .zero else { return }
      weekSums[key, default: WeekSum()].units += unreported
      weekSums[key]?.unitDays.insert(row.day)
      if comparison.explained[.unknownProduct] > .zero { weekSums[key]?.isUnknown = true }
    case .amount:
      guard row.kind == .sale, unreported > .zero else { return }
      weekSums[key, default: WeekSum()].amounts[row.currency, default: .zero] += unreported
      weekSums[key]?.amountDays.insert(row.day)
    case .country: return
    }
  }

  private func unreported(_ comparison: TieOutRow.Comparison) -> Millionths {
    max(.zero, comparison.unexplained) + max(.zero, comparison.explained[.unknownProduct])
  }

  /// Mondays of weeks with sales whose other side may be on one of these days.
  package static func weeks(around days: Set<ReportDay>) -> Set<ReportDay> {
    Set(days.flatMap { day in ReportDay.timingLags.map { day.advanced(by: $0).monday } })
  }

  package var weeks: [Week] {
    weekSums.filter { $0.value.units > .zero }.map { key, sum in
      let isKnown = sum.unitDays == sum.amountDays && !sum.isAwaiting
      let single = isKnown && sum.amounts.count == 1 ? sum.amounts.first : nil
      return Week(
        app: key.app, productId: key.productId, monday: key.monday, units: sum.units, isUnknownProduct: sum.isUnknown,
        amount: single?.value, currency: single?.key)
    }.sorted { ($0.app, $0.productId, $0.monday) < ($1.app, $1.productId, $1.monday) }
  }
}
