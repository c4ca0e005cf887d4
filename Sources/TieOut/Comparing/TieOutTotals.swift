import Reconciliation

/// What the rows of a tie-out come to.
package struct TieOutTotals: Sendable {
  /// Level `units` of a day.
  package struct Day: Hashable, Sendable {
    package var apple = Millionths.zero
    package var unexplained = Millionths.zero

    package init() {}
  }

  /// A product in a week that Apple counted more of than anybody here knows.
  package struct Week: Hashable, Sendable {
    package var app: String
    package var productId: Identifier
    package var monday: ReportDay
    package var units: Millionths
    /// Whether no order and no transaction ever had the product.
    package var isUnknownProduct: Bool
    /// What they cost, where all of them were sold in one currency; nil where of some nobody can tell.
    package var amount: Millionths?
    package var currency: Identifier?
  }

  package private(set) var apple = Millionths.zero
  package private(set) var ours = Millionths.zero
  package private(set) var explained = Explained()
  /// Net: what Apple counts too little is taken off.
  package private(set) var unexplained = Millionths.zero
  /// Of the unexplained: units of orders whose payment nobody has confirmed so far.
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
    /// Whether some of what Apple counts may be of orders that wait: then nobody knows what the rest cost.
    var isAwaiting = false
    var amounts: [Identifier: Millionths] = [:]
    /// The days of the units and those of the amounts. They are the same ones, unless of a day no price of ours is told.
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
      // What Apple counts too little on one day does not pay for what nobody knows of on another.
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

  /// The weeks, by their Mondays, in which a sale counts whose other side may be on one of these days.
  package static func weeks(around days: Set<ReportDay>) -> Set<ReportDay> {
    Set(days.flatMap { day in Group.timingLags.map { day.advanced(by: $0).monday } })
  }

  /// By app, product and week.
  package var weeks: [Week] {
    weekSums.filter { $0.value.units > .zero }.map { key, sum in
      let isTold = sum.unitDays == sum.amountDays && !sum.isAwaiting
      let single = isTold && sum.amounts.count == 1 ? sum.amounts.first : nil
      return Week(
        app: key.app, productId: key.productId, monday: key.monday, units: sum.units, isUnknownProduct: sum.isUnknown,
        amount: single?.value, currency: single?.key)
    }.sorted { ($0.app, $0.productId, $0.monday) < ($1.app, $1.productId, $1.monday) }
  }
}

extension ReportZone {
  /// The Monday of the first week of which all orders are known that Apple may count in it, where orders are known from an
  /// instant on, for weeks are told whole.
  package func firstWeek(since instant: Instant) -> ReportDay {
    // Of the instant's own day a part is missing, and Apple counts up to some days after we do.
    let day = day(of: instant).advanced(by: 1 + Group.timingLags.upperBound)
    return day.monday == day ? day : day.monday.advanced(by: 7)
  }
}
