import Reconciliation

/// One key without its day and class, such as a product or a product in a country: its four series, and the rules that
/// explain them in their order.
struct Group {
  /// What the rules may use besides the counts, by position of the day.
  struct Evidence {
    /// Units of ours at an unknown price that an offer may have made free.
    var mayBeFree: [Int: Millionths] = [:]
    var unclaimedRenewals: [Int: Millionths] = [:]
    /// Returns at Apple that cost less than the product ever did.
    var oddReturns: [Int: Millionths] = [:]
    var partialRefunds: [Int: Millionths] = [:]
    var upgrades: [Int: Millionths] = [:]
    /// Units of ours of the same product without a storefront, by class.
    var withoutCountry: [TieOutClass: [Int: Millionths]] = [:]
    var isUnknownProduct = false
    /// Whether this group is what has no storefront itself.
    var hasNoCountry = false
  }

  /// Apple's day up to three after ours, one before.
  static let timingLags = -1...3
  static let refundLags = -7...7
  /// An upgrade comes at any time after the purchase that it replaces.
  private static let upgradeLags = -1...Int(Int32.max)

  private(set) var series: [Series]
  var evidence = Evidence()

  init(dayCount: Int) {
    series = TieOutClass.allCases.map { Series(sign: $0 == .refund ? -1 : 1, count: dayCount) }
  }

  subscript(_ kind: TieOutClass) -> Series { series[kind.index] }

  mutating func add(apple units: Millionths, _ kind: TieOutClass, on day: Int) {
    series[kind.index].add(apple: units, on: day)
  }

  mutating func add(ours units: Millionths, _ kind: TieOutClass, on day: Int) {
    series[kind.index].add(ours: units, on: day)
  }

  /// Explains what can be explained.
  /// - Parameter coverage: of a class, for each day how far the number of it stands.
  mutating func explain(coverage: (TieOutClass) -> [DayCoverage.Coverage]) {
    let days = series[0].days.indices
    let shadows = TieOutClass.allCases.map { explainMissing($0, coverage($0)) }
    explainFree()
    for day in days { series[TieOutClass.restore.index].takeAll(on: day, .restore) }
    for kind in [TieOutClass.sale, .refund] {
      let lags = kind == .refund ? Self.refundLags : Self.timingLags
      series[kind.index].pair(kind == .refund ? .refundTiming : .timing, lags: lags)
      explainNeighbours(kind, coverage(kind), shadow: shadows[kind.index], lags: lags)
      explainCountry(kind, lags: lags)
    }
    explainRefunds()
    for (day, units) in evidence.unclaimedRenewals {
      let sales = TieOutClass.sale.index
      series[sales].take(min(units, series[sales].ourExcess(day)), on: day, .renewal)
    }
    if evidence.isUnknownProduct {
      let sales = TieOutClass.sale.index
      for day in days { series[sales].take(series[sales].appleExcess(day), on: day, .unknownProduct) }
    }
  }

  /// Days without reports that stand. What we count more on them is kept in mind: Apple may count it on a neighbouring
  /// day that is reported. What Apple counts more may be taken back by it only while its reports are young: another
  /// vendor's can but add to it.
  private mutating func explainMissing(
    _ kind: TieOutClass, _ coverage: [DayCoverage.Coverage]
  ) -> [Int: Millionths] {
    var shadow: [Int: Millionths] = [:]
    for day in coverage.indices {
      let excess = series[kind.index].ourExcess(day)
      switch coverage[day] {
      case .missing, .young: series[kind.index].takeAll(on: day, .notReported)
      case .partial: series[kind.index].take(excess, on: day, .notReported)
      case .final: continue
      }
      if excess > .zero { shadow[day] = excess }
    }
    return shadow
  }

  /// Units without money on either side need no order. Those of ours whose price is not known stand among the sales until
  /// Apple's price says that they were free.
  private mutating func explainFree() {
    let free = TieOutClass.free.index
    let days = series[free].days.indices
    var supply = evidence.mayBeFree
    // Of the same day first: that one is no sale which another day could be short of.
    for lags in [0...0, Self.timingLags] {
      for taker in days where series[free].appleExcess(taker) > .zero {
        for giver in supply.keys.sorted() where lags.contains(taker - giver) {
          shareFree(giver, taker, &supply)
        }
      }
    }
    for day in series[free].days.indices { series[free].takeAll(on: day, .free) }
  }

  /// Takes what may have been free on one day for what Apple counts as free on another.
  private mutating func shareFree(_ giver: Int, _ taker: Int, _ supply: inout [Int: Millionths]) {
    let (sales, free) = (TieOutClass.sale.index, TieOutClass.free.index)
    let shared = min(supply[giver] ?? .zero, series[sales].ourExcess(giver), series[free].appleExcess(taker))
    series[sales].take(shared, on: giver, .free)
    series[free].take(shared, on: taker, .free)
    supply[giver, default: .zero] -= shared
  }

  /// Near a day that is not reported nobody can say that Apple counts too much or too little.
  private mutating func explainNeighbours(
    _ kind: TieOutClass, _ coverage: [DayCoverage.Coverage], shadow: [Int: Millionths], lags: ClosedRange<Int>
  ) {
    var shadow = shadow
    series[kind.index].draw(.notReported, from: &shadow, lags: lags)
    for day in coverage.indices where coverage[day] == .final && series[kind.index].ourExcess(day) > .zero {
      let neighbours = max(0, day + lags.lowerBound)...(day + lags.upperBound)
      // Beyond the last day there is no report yet.
      if neighbours.contains(where: { $0 >= coverage.count || coverage[$0] != .final }) {
        series[kind.index].takeAll(on: day, .notReported)
      }
    }
  }

  private mutating func explainCountry(_ kind: TieOutClass, lags: ClosedRange<Int>) {
    if evidence.hasNoCountry {
      for day in series[kind.index].days.indices { series[kind.index].takeAll(on: day, .countryUnknown) }
    } else if var supply = evidence.withoutCountry[kind] {
      series[kind.index].draw(.countryUnknown, from: &supply, lags: lags)
      evidence.withoutCountry[kind] = supply
    }
  }

  private mutating func explainRefunds() {
    let refunds = TieOutClass.refund.index
    for (day, units) in evidence.oddReturns {
      series[refunds].take(min(units, series[refunds].appleExcess(day)), on: day, .partialRefund)
    }
    series[refunds].draw(.partialRefund, from: &evidence.partialRefunds, lags: Self.refundLags)
    series[refunds].draw(.upgrade, from: &evidence.upgrades, lags: Self.upgradeLags)
    for day in series[refunds].days.indices {
      series[refunds].take(series[refunds].appleExcess(day), on: day, .refundUnknown)
    }
  }
}
