import Reconciliation

/// What was sold and what was settled of one product in one country and currency, sales apart from returns.
package struct SettlementSides: Sendable {
  /// Units of one day at one share.
  package struct Sold: Hashable, Sendable {
    package var day: ReportDay
    /// Negative for returns.
    package var units: Millionths
    /// Apple's proceeds for one unit.
    package var share: Millionths

    package init(day: ReportDay, units: Millionths, share: Millionths) {
      self.day = day
      self.units = units
      self.share = share
    }
  }

  package struct Settled: Hashable, Sendable {
    package var period: FiscalPeriod
    package var transactionDay: ReportDay
    package var units: Millionths
    package var share: Millionths
    /// What Apple pays: units times share, by Apple's own reckoning.
    package var extended: Millionths

    package init(
      period: FiscalPeriod, transactionDay: ReportDay, units: Millionths, share: Millionths, extended: Millionths
    ) {
      self.period = period
      self.transactionDay = transactionDay
      self.units = units
      self.share = share
      self.extended = extended
    }
  }

  package var currency: Identifier
  package var sold: [Sold] = []
  package var settled: [Settled] = []

  package init(currency: Identifier) { self.currency = currency }
}

/// Sales reports beside finance reports, per fiscal period and currency. Nothing is computed that Apple says: proceeds and
/// shares are read.
package struct ProceedsSettlement: Sendable {
  /// After so many days a sale that is in no finance report counts as never collected: a period of 35 days and the 33
  /// until Apple pays.
  package static let patience = 68
  /// Of a fiscal period at most. What is sold is settled with its own period or with one that ends so many days later.
  static let longestPeriod = 35
  /// Whether a finance report's day is the same Pacific day as a sales report's is nowhere said.
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

    /// `salesProceeds` - `openAtEnd` + `settledFromBefore` - `neverCollected` = `settled` + this.
    package var difference: Millionths {
      salesProceeds - openAtEnd + settledFromBefore - neverCollected - settled
    }
  }

  package private(set) var lines: [Key: Line] = [:]
  /// Units whose day in the finance report is the one before or after that of the sales report.
  package private(set) var movedUnits = Millionths.zero
  private let today: ReportDay
  private let whole: Set<FiscalPeriod>

  /// - Parameters:
  ///   - today: the day of the as-of.
  ///   - whole: the periods whose finance reports are here, of every vendor.
  package init(today: ReportDay, whole: Set<FiscalPeriod>) {
    self.today = today
    self.whole = whole
  }

  /// Adds one product in one country and currency. Sales and returns are added each on their own.
  package mutating func add(_ sides: SettlementSides) {
    var sold = sides.sold.sorted { ($0.day, $0.share) < ($1.day, $1.share) }
    var settled = sides.settled.sorted {
      ($0.transactionDay, $0.period, $0.share) < ($1.transactionDay, $1.period, $1.share)
    }
    for sale in sold { add(worth(sale.units, sale.share), to: \.salesProceeds, of: sale.day, sides.currency) }
    for row in settled {
      lines[Key(period: row.period, currency: sides.currency), default: Line()].settled += row.extended
    }
    // At the same share first: two shares of one day are two sales, and which of them is open is money. The same day
    // first, and neighbours only for what that leaves.
    for (difference, isOfShare) in [(0, true), (Self.dayDifference, true), (0, false), (Self.dayDifference, false)] {
      var first = 0
      for index in settled.indices {
        let row = settled[index]
        while first < sold.count,
          sold[first].day < row.transactionDay.advanced(by: -difference) || sold[first].units == .zero
        {
          first += 1
        }
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
    // Of sales that no report shows, because they are older than our reports, the row's own day is all there is.
    for row in settled where row.units != .zero && row.transactionDay < row.period.first {
      lines[Key(period: row.period, currency: sides.currency), default: Line()].settledFromBefore +=
        worth(row.units, row.share)
    }
  }

  /// Whether what was sold on a day and is in no finance report stays so. A report that is not here has left nothing out.
  private func isLeftOut(_ day: ReportDay) -> Bool {
    today.number - day.number > Self.patience
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

  /// To the period that the day is in.
  private mutating func add(
    _ amount: Millionths, to field: WritableKeyPath<Line, Millionths>, of day: ReportDay, _ currency: Identifier
  ) {
    guard let period = FiscalCalendar.period(containing: day) else { return }
    lines[Key(period: period, currency: currency), default: Line()][keyPath: field] += amount
  }

  private func worth(_ units: Millionths, _ share: Millionths) -> Millionths { units.times(share) ?? .zero }
}
