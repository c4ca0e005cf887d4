import Reconciliation

/// The tie-out of one product: a pure function of both sides. Products are independent and compared one at a time.
package struct ProductComparison: Sendable {
  package private(set) var rows: [TieOutRow] = []
  /// Units counted by both sides, by the days that Apple's day is after ours.
  package private(set) var lags: [Int: Millionths] = [:]

  private let sides: ProductSides
  private let coverage: DayCoverage

  package init(_ sides: ProductSides, coverage: DayCoverage) {
    self.sides = sides.withRestoredSales
    self.coverage = coverage
    let units = compareUnits()
    compareCountries()
    compareAmounts(beside: units)
  }

  /// Notes unexplained units that orders awaiting confirmation may account for. They stay unexplained. `orders` has
  /// their units by the shop's day of payment.
  package mutating func noteAwaitedOrders(_ orders: [ReportDay: Millionths]) {
    var orders = orders
    for index in rows.indices where rows[index].isUnexplainedSale {
      var open = rows[index].comparison?.unexplained ?? .zero
      for lag in ReportDay.timingLags.reversed() {
        let day = rows[index].day.advanced(by: -lag)
        let units = min(open, orders[day] ?? .zero)
        if units == .zero { continue }
        orders[day, default: .zero] -= units
        open -= units
        rows[index].awaited += units
      }
    }
  }

  // MARK: - Units

  private mutating func compareUnits() -> Group {
    var group = group(apple: { _ in true }, ours: { _ in true }, evidence: { _ in true })
    group.explain { _ in coverage.each }
    var shop: [Int: Millionths] = [:]
    for units in sides.shop where coverage.days.contains(units.day) {
      shop[coverage.index(units.day), default: .zero] += Millionths(units.units)
    }
    append(group, .units) { kind, day in kind == .sale ? shop[day] ?? .zero : nil }
    countLags(group)
    return group
  }

  private mutating func countLags(_ group: Group) {
    for day in coverage.printed.map(coverage.index) where coverage[day] != .missing {
      let sales = group[.sale].days[day]
      let same = min(max(.zero, sales.apple), max(.zero, sales.ours))
      if same > .zero { lags[0, default: .zero] += same }
      for step in sales.steps {
        if let partner = step.partner, step.units > .zero { lags[day - partner, default: .zero] += step.units }
      }
    }
  }

  // MARK: - Countries

  private mutating func compareCountries() {
    var places: Set<Place> = []
    for units in sides.apple { places.insert(Place(country: units.country, currency: units.currency)) }
    for units in sides.ours { places.insert(Place(country: units.country ?? "", currency: units.currency ?? "")) }
    var supplies: [Identifier: [TieOutClass: [Int: Millionths]]] = [:]
    for units in sides.ours where units.country == nil && coverage.days.contains(units.day) {
      let day = coverage.index(units.day)
      supplies[units.currency ?? "", default: [:]][units.kind, default: [:]][day, default: .zero] +=
        Millionths(units.units).magnitude
    }
    // Keys with a storefront draw on units without one, in sorted order.
    for place in places.sorted() {
      var group = group(
        apple: { $0.country == place.country && $0.currency == place.currency },
        ours: { ($0.country ?? "") == place.country && ($0.currency ?? "") == place.currency },
        evidence: {
          ($0.country ?? place.country) == place.country && ($0.currency ?? place.currency) == place.currency
        })
      if place.country.isEmpty {
        group.evidence.hasNoCountry = true
        group.explain { _ in coverage.each }
      } else {
        // Units with a currency but no storefront only match that currency.
        let source = supplies[place.currency] != nil ? place.currency : ""
        group.evidence.withoutCountry = supplies[source] ?? [:]
        group.explain { _ in coverage.each }
        if supplies[source] != nil { supplies[source] = group.evidence.withoutCountry }
      }
      append(group, .country, place.country, place.currency) { _, _ in nil }
    }
  }

  // MARK: - Amounts

  private mutating func compareAmounts(beside counted: Group) {
    // One unit without a price makes the day's sum unknown.
    var unknown: Set<[Int]> = []
    for units in sides.ours where units.price == nil || units.currency == nil {
      if coverage.days.contains(units.day) { unknown.insert([units.kind.index, coverage.index(units.day)]) }
    }
    // If such a unit was counted on another day, that day's sum is known but its difference is not.
    var open = unknown
    for kind in [TieOutClass.sale, .refund] {
      for (day, units) in counted[kind].days.enumerated() {
        let partners = units.steps.compactMap(\.partner)
        if partners.contains(where: { unknown.contains([kind.index, $0]) }) { open.insert([kind.index, day]) }
      }
    }
    var currencies = Set(sides.apple.map(\.currency))
    for units in sides.ours { if let currency = units.currency { currencies.insert(currency) } }
    for units in sides.shop { currencies.insert(units.currency) }
    for currency in currencies.sorted() { compareAmounts(in: currency, unknown: unknown, open: open) }
  }

  private mutating func compareAmounts(in currency: Identifier, unknown: Set<[Int]>, open: Set<[Int]>) {
    var group = group(
      apple: { $0.currency == currency }, ours: { $0.currency == currency && $0.price != nil },
      evidence: { ($0.currency ?? currency) == currency })
    // Where our sum is unknown, Apple's is treated as missing.
    group.explain { kind in
      coverage.each.indices.map { open.contains([kind.index, $0]) ? .missing : coverage.each[$0] }
    }
    // Half of the minor unit, in millionths of the major unit.
    let half = Millionths(count: Int128(Currency(currency).map(Money.millionthsPerMinorUnit) ?? 10_000) / 2)
    var shop: [ReportDay: Millionths] = [:]
    for units in sides.shop where units.currency == currency { shop[units.day, default: .zero] += units.amount }
    for kind in [TieOutClass.sale, .refund] {
      var stacks = PriceStacks(count: coverage.count, halfMinorUnit: half)
      for units in sides.apple where units.currency == currency && units.kind == kind {
        if coverage.days.contains(units.day) {
          stacks.add(apple: units.units, at: units.price, on: coverage.index(units.day))
        }
      }
      for units in sides.ours where units.currency == currency && units.kind == kind {
        if let price = units.price, coverage.days.contains(units.day) {
          stacks.add(ours: units.units, for: price, on: coverage.index(units.day))
        }
      }
      let comparisons = stacks.comparisons(group[kind])
      for day in coverage.compared {
        let index = coverage.index(day)
        let comparison = open.contains([kind.index, index]) ? nil : comparisons[index]
        let booked: Millionths? = kind == .sale ? shop[day] ?? .zero : nil
        let (apple, ours) = stacks.amounts(index)
        guard
          apple != .zero || ours != .zero || booked ?? .zero != .zero || comparison?.explained.isZero == false
        else { continue }
        let isKnown = !unknown.contains([kind.index, index])
        rows.append(
          TieOutRow(
            level: .amount, app: sides.app, productId: sides.productId, day: day, country: "", currency: currency,
            kind: kind, apple: coverage[index] == .missing ? nil : kind == .refund ? -apple : apple,
            ours: isKnown ? (kind == .refund ? -ours : ours) : nil, shop: booked, comparison: comparison))
      }
    }
  }

  // MARK: - Groups

  private func group(
    apple: (AppleUnits) -> Bool, ours: (OurUnits) -> Bool, evidence: (RefundEvidence) -> Bool
  ) -> Group {
    var group = Group(dayCount: coverage.count)
    group.evidence.isUnknownProduct = !sides.isKnown
    var cheapest: [Place: Millionths] = [:]
    for units in sides.apple where units.kind == .sale {
      let place = Place(country: units.country, currency: units.currency)
      cheapest[place] = min(cheapest[place] ?? units.price, units.price)
    }
    for units in sides.apple where coverage.days.contains(units.day) && apple(units) {
      let day = coverage.index(units.day)
      group[units.kind].add(apple: units.units, on: day)
      // Cheaper than every sale there: part of the price was refunded.
      if units.kind == .refund,
        let least = cheapest[Place(country: units.country, currency: units.currency)], units.price < least
      {
        group.evidence.returnsBelowAllPrices[day, default: .zero] += units.units.magnitude
      }
    }
    for units in sides.ours where coverage.days.contains(units.day) && ours(units) {
      let day = coverage.index(units.day)
      group[units.kind].add(ours: Millionths(units.units), on: day)
      if units.mayBeFree { group.evidence.mayBeFree[day, default: .zero] += Millionths(units.units) }
      if units.isUnclaimedRenewal { group.evidence.unclaimedRenewals[day, default: .zero] += Millionths(units.units) }
    }
    for refund in sides.partialRefunds where evidence(refund) {
      group.evidence.partialRefunds[coverage.index(refund.day), default: .zero] += .one
    }
    for upgrade in sides.upgrades where evidence(upgrade) {
      group.evidence.upgrades[coverage.index(upgrade.day), default: .zero] += .one
    }
    return group
  }

  private mutating func append(
    _ group: Group, _ level: TieOutLevel, _ country: Identifier = "", _ currency: Identifier = "",
    shop: (TieOutClass, Int) -> Millionths?
  ) {
    for kind in TieOutClass.allCases {
      for date in coverage.compared {
        let index = coverage.index(date)
        let day = group[kind].days[index]
        let booked = shop(kind, index)
        guard day.apple != .zero || day.ours != .zero || !day.steps.isEmpty || booked ?? .zero != .zero else {
          continue
        }
        var explained = Explained()
        for step in day.steps { explained[step.explanation] += step.units }
        rows.append(
          TieOutRow(
            level: level, app: sides.app, productId: sides.productId, day: date, country: country, currency: currency,
            kind: kind, apple: coverage[index] == .missing ? nil : day.apple, ours: day.ours, shop: booked,
            comparison: .init(explained: explained, unexplained: day.rest)))
      }
    }
  }
}
