import Reconciliation

/// The four series of a key without day and class, such as a product in a country, and their rules.
struct Group {
  struct Evidence {
    /// Our units without a price that an offer may have made free.
    var mayBeFree: [Int: Millionths] = [:]
    var unclaimedRenewals: [Int: Millionths] = [:]
    /// Apple's returns below every price that the product ever had.
    var returnsBelowAllPrices: [Int: Millionths] = [:]
    var partialRefunds: [Int: Millionths] = [:]
    var upgrades: [Int: Millionths] = [:]
    var withoutCountry: [TieOutClass: [Int: Millionths]] = [:]
    var isUnknownProduct = false
    var hasNoCountry = false
  }

  static let refundLags = -7...7
  /// An upgrade may come any time after the purchase that it replaces.
  private static let upgradeLags = -1...Int(Int32.max)

  private var series: [Series]
  var evidence = Evidence()

  init(dayCount: Int) { series = TieOutClass.allCases.map { Series(sign: $0 == .refund ? -1 : 1, count: dayCount) } }

  subscript(_ kind: TieOutClass) -> Series {
    get { series[kind.index] }
    _modify { yield &series[kind.index] }
  }

  /// Explains the differences, given the coverage of each day by class.
  mutating func explain(coverage: (TieOutClass) -> [DayCoverage.Coverage]) {
    let days = series[0].days.indices
    let shadows = TieOutClass.allCases.map { explainMissing($0, coverage($0)) }
    explainFree()
    for day in days { self[.restore].takeAll(on: day, .restore) }
    for kind in [TieOutClass.sale, .refund] {
      let lags = kind == .refund ? Self.refundLags : ReportDay.timingLags
      self[kind].pair(kind == .refund ? .refundTiming : .timing, lags: lags)
      explainNeighbours(kind, coverage(kind), shadow: shadows[kind.index], lags: lags)
      explainCountry(kind, lags: lags)
    }
    explainRefunds()
    for (day, units) in evidence.unclaimedRenewals {
      self[.sale].take(min(units, self[.sale].ourExcess(day)), on: day, .renewal)
    }
    if evidence.isUnknownProduct {
      for day in days { self[.sale].take(self[.sale].appleExcess(day), on: day, .unknownProduct) }
    }
  }

  /// Explains days without final reports. Returns our excess on them, because Apple may count it on a reported
  /// neighbour. Apple's excess can shrink only while its reports are young: another vendor's report can only add to it.
  private mutating func explainMissing(_ kind: TieOutClass, _ coverage: [DayCoverage.Coverage]) -> [Int: Millionths] {
    var shadow: [Int: Millionths] = [:]
    for day in coverage.indices {
      let excess = self[kind].ourExcess(day)
      switch coverage[day] {
      case .missing, .young: self[kind].takeAll(on: day, .notReported)
      case .partial: self[kind].take(excess, on: day, .notReported)
      case .final: continue
      }
      if excess > .zero { shadow[day] = excess }
    }
    return shadow
  }

  /// Units without money need no order. Our units without a price count as sales until Apple's price shows that they
  /// were free.
  private mutating func explainFree() {
    let days = self[.free].days.indices
    var supply = evidence.mayBeFree
    for lags in [0...0, ReportDay.timingLags] {
      for taker in days where self[.free].appleExcess(taker) > .zero {
        for giver in supply.keys.sorted() where lags.contains(taker - giver) { shareFree(giver, taker, &supply) }
      }
    }
    for day in days { self[.free].takeAll(on: day, .free) }
  }

  private mutating func shareFree(_ giver: Int, _ taker: Int, _ supply: inout [Int: Millionths]) {
    let shared = min(supply[giver] ?? .zero, self[.sale].ourExcess(giver), self[.free].appleExcess(taker))
    self[.sale].take(shared, on: giver, .free)
    self[.free].take(shared, on: taker, .free)
    supply[giver, default: .zero] -= shared
  }

  /// Near a day without a report, an excess on either side proves nothing.
  private mutating func explainNeighbours(
    _ kind: TieOutClass, _ coverage: [DayCoverage.Coverage], shadow: [Int: Millionths], lags: ClosedRange<Int>
  ) {
    var shadow = shadow
    self[kind].draw(.notReported, from: &shadow, lags: lags)
    for day in coverage.indices where coverage[day] == .final && self[kind].ourExcess(day) > .zero {
      let neighbours = max(0, day + lags.lowerBound)...(day + lags.upperBound)
      // Days after the last one have no report yet.
      if neighbours.contains(where: { $0 >= coverage.count || coverage[$0] != .final }) {
        self[kind].takeAll(on: day, .notReported)
      }
    }
  }

  private mutating func explainCountry(_ kind: TieOutClass, lags: ClosedRange<Int>) {
    if evidence.hasNoCountry {
      for day in self[kind].days.indices { self[kind].takeAll(on: day, .countryUnknown) }
    } else if var supply = evidence.withoutCountry[kind] {
      self[kind].draw(.countryUnknown, from: &supply, lags: lags)
      evidence.withoutCountry[kind] = supply
    }
  }

  private mutating func explainRefunds() {
    var refunds = self[.refund]
    for (day, units) in evidence.returnsBelowAllPrices {
      refunds.take(min(units, refunds.appleExcess(day)), on: day, .partialRefund)
    }
    refunds.draw(.partialRefund, from: &evidence.partialRefunds, lags: Self.refundLags)
    refunds.draw(.upgrade, from: &evidence.upgrades, lags: Self.upgradeLags)
    for day in refunds.days.indices { refunds.take(refunds.appleExcess(day), on: day, .refundUnknown) }
    self[.refund] = refunds
  }
}
