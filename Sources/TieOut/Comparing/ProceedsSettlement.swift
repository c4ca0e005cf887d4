import Reconciliation

package struct SettlementSides: Sendable {
  package struct Sold: Hashable, Sendable {
    package var day: ReportDay
    /// Negative for returns.
    package var units: Millionths
    package var share: Millionths
    /// The customer amount of the units.
    package var gross = Gross.inOtherCurrency
  }

  /// The customer amount of sold units as far as a sales report states it in the currency of the proceeds.
  package enum Gross: Hashable, Sendable {
    /// Customers paid in another currency than Apple pays.
    case inOtherCurrency
    /// The price includes a tax that no report states.
    case withTax(Millionths)
    /// Apple's price has no tax in it.
    case withoutTax(Millionths)

    /// Storefronts whose prices are without tax: Apple adds sales tax to them.
    private static let untaxed: Set<Identifier> = ["US"]

    package init(_ amount: Millionths, country: Identifier) {
      self = Gross.untaxed.contains(country) ? .withoutTax(amount) : .withTax(amount)
    }
  }

  package struct Settled: Hashable, Sendable {
    package var period: FiscalPeriod
    package var transactionDay: ReportDay
    package var units: Millionths
    package var share: Millionths
    /// Units times share, as calculated by Apple.
    package var extended: Millionths
  }

  package var currency: Identifier
  package var sold: [Sold] = []
  package var settled: [Settled] = []
}

/// Matches sales reports with finance reports, by fiscal period and currency. Proceeds and shares are Apple's own
/// values.
package struct ProceedsSettlement: Sendable {
  /// Days after which an unsettled sale counts as never collected. A period of 35 days, and 33 until Apple pays.
  package static let waitLimit = 68
  /// In days. A sale is settled in its own period or in one that ends this many days later.
  static let longestPeriod = 35
  /// Apple does not document that days in finance and sales reports are the same Pacific day.
  static let dayDifference = 1

  package struct Key: Hashable, Comparable, Sendable {
    package var period: FiscalPeriod
    package var currency: Identifier

    package static func < (left: Key, right: Key) -> Bool {
      (left.period, left.currency) < (right.period, right.currency)
    }
  }

  package struct Line: Hashable, Sendable {
    package var salesProceeds = Millionths.zero
    package var openAtEnd = Millionths.zero
    package var settledFromBefore = Millionths.zero
    package var neverCollected = Millionths.zero
    package var settled = Millionths.zero
    /// The customer amounts that Apple states in this currency.
    package var gross = Millionths.zero
    /// Indicates that all of `gross` is stated.
    package var isGrossKnown = true
    /// Indicates that the tax in all of `gross` is known. It is nothing then: no report states any other tax.
    package var isTaxKnown = true

    /// `gross` less tax less proceeds. Meaningful only if `isGrossKnown` and `isTaxKnown`.
    package var commission: Millionths { gross - salesProceeds }

    fileprivate mutating func add(_ gross: SettlementSides.Gross) {
      switch gross {
      case .inOtherCurrency: (isGrossKnown, isTaxKnown) = (false, false)
      case .withTax(let amount):
        self.gross += amount
        isTaxKnown = false
      case .withoutTax(let amount): self.gross += amount
      }
    }

    /// `salesProceeds` - `openAtEnd` + `settledFromBefore` - `neverCollected` = `settled` + this.
    package var difference: Millionths { salesProceeds - openAtEnd + settledFromBefore - neverCollected - settled }
  }

  package private(set) var lines: [Key: Line] = [:]
  /// Units settled with a day before or after that of the sales report.
  package private(set) var movedUnits = Millionths.zero
  private let today: ReportDay
  private let whole: Set<FiscalPeriod>

  /// - Parameter whole: periods with finance reports of every vendor.
  package init(today: ReportDay, whole: Set<FiscalPeriod>) { (self.today, self.whole) = (today, whole) }

  /// Adds one product in one country and currency; sales and returns separately.
  package mutating func add(_ sides: SettlementSides) {
    var sold = sides.sold.sorted { ($0.day, $0.share) < ($1.day, $1.share) }
    var settled = sides.settled.sorted {
      ($0.transactionDay, $0.period, $0.share) < ($1.transactionDay, $1.period, $1.share)
    }
    for sale in sold {
      add(worth(sale.units, sale.share), to: \.salesProceeds, of: sale.day, sides.currency)
      if let period = FiscalCalendar.period(containing: sale.day) {
        lines[Key(period: period, currency: sides.currency), default: Line()].add(sale.gross)
      }
    }
    for row in settled {
      lines[Key(period: row.period, currency: sides.currency), default: Line()].settled += row.extended
    }
    // Same share and same day first, neighbouring days only for the rest, because two shares of one day are two sales.
    for (difference, isOfShare) in [(0, true), (Self.dayDifference, true), (0, false), (Self.dayDifference, false)] {
      var first = 0
      for index in settled.indices {
        let row = settled[index]
        while first < sold.count,
          sold[first].day < row.transactionDay.advanced(by: -difference) || sold[first].units == .zero
        { first += 1 }
        var candidate = first
        while settled[index].units != .zero, candidate < sold.count,
          sold[candidate].day <= row.transactionDay.advanced(by: difference)
        {
          if !isOfShare || sold[candidate].share == row.share {
            match(&sold[candidate], &settled[index], sides.currency)
          }
          candidate += 1
        }
      }
    }
    for sale in sold where sale.units != .zero {
      add(
        worth(sale.units, sale.share), to: isLeftOut(sale.day) ? \.neverCollected : \.openAtEnd, of: sale.day,
        sides.currency)
    }
    for row in settled where row.units != .zero && row.transactionDay < row.period.first {
      lines[Key(period: row.period, currency: sides.currency), default: Line()].settledFromBefore +=
        worth(row.units, row.share)
    }
  }

  /// True if an unsettled sale of this day stays so. A missing finance report leaves nothing out.
  private func isLeftOut(_ day: ReportDay) -> Bool {
    today.number - day.number > Self.waitLimit
      && FiscalCalendar.periods.lazy.filter { (day...day.advanced(by: Self.longestPeriod)).contains($0.last) }
        .allSatisfy(whole.contains)
  }

  private mutating func match(
    _ sale: inout SettlementSides.Sold, _ row: inout SettlementSides.Settled, _ currency: Identifier
  ) {
    let count = min(sale.units.magnitude, row.units.magnitude)
    guard count > .zero else { return }
    let units = row.units < .zero ? -count : count
    sale.units -= units
    row.units -= units
    if sale.day != row.transactionDay { movedUnits += count }
    if sale.day > row.period.last { return }
    if sale.day < row.period.first {
      lines[Key(period: row.period, currency: currency), default: Line()].settledFromBefore += worth(units, row.share)
      add(worth(units, sale.share), to: \.openAtEnd, of: sale.day, currency)
    }
  }

  private mutating func add(
    _ amount: Millionths, to field: WritableKeyPath<Line, Millionths>, of day: ReportDay, _ currency: Identifier
  ) {
    guard let period = FiscalCalendar.period(containing: day) else { return }
    lines[Key(period: period, currency: currency), default: Line()][keyPath: field] += amount
  }

  private func worth(_ units: Millionths, _ share: Millionths) -> Millionths { units.times(share) ?? .zero }
}
