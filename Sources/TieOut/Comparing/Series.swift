import Reconciliation

/// The difference of one key on each day, and the steps that explain it. A step never exceeds the rest, so steps and
/// rest always sum up to the difference.
struct Series {
  struct Step: Hashable {
    var explanation: TieOutExplanation
    var units: Millionths
    var partner: Int?
  }

  struct Day {
    var apple = Millionths.zero
    var ours = Millionths.zero
    var rest = Millionths.zero
    var steps: [Step] = []
  }

  /// +1 if units of Apple increase the difference; -1 for refunds, which both sides count below zero.
  let sign: Int
  private(set) var days: [Day]

  init(sign: Int, count: Int) {
    self.sign = sign
    days = Array(repeating: Day(), count: count)
  }

  mutating func add(apple units: Millionths, on day: Int) {
    days[day].apple += units
    days[day].rest += units
  }

  mutating func add(ours units: Millionths, on day: Int) {
    days[day].ours += units
    days[day].rest -= units
  }

  func appleExcess(_ day: Int) -> Millionths { max(.zero, sign < 0 ? -days[day].rest : days[day].rest) }
  func ourExcess(_ day: Int) -> Millionths { max(.zero, sign < 0 ? days[day].rest : -days[day].rest) }

  /// Explains up to `units` of a day, and returns how many.
  @discardableResult
  mutating func take(
    _ units: Millionths, on day: Int, _ explanation: TieOutExplanation, partner: Int? = nil
  ) -> Millionths {
    let taken = min(units, days[day].rest.magnitude)
    guard taken > .zero else { return .zero }
    let signed = days[day].rest < .zero ? -taken : taken
    days[day].rest -= signed
    days[day].steps.append(Step(explanation: explanation, units: signed, partner: partner))
    return taken
  }

  mutating func takeAll(on day: Int, _ explanation: TieOutExplanation) {
    take(days[day].rest.magnitude, on: day, explanation)
  }

  /// Pairs days of our excess with days of Apple's, in order. This pairs the most units, because all windows have one
  /// length.
  mutating func pair(_ explanation: TieOutExplanation, lags: ClosedRange<Int>) {
    var giver = 0
    for taker in days.indices {
      while appleExcess(taker) > .zero {
        while giver < days.count, giver < taker - lags.upperBound || ourExcess(giver) == .zero { giver += 1 }
        guard giver < days.count, giver <= taker - lags.lowerBound else { break }
        let units = min(appleExcess(taker), ourExcess(giver))
        take(units, on: giver, explanation, partner: taker)
        take(units, on: taker, explanation, partner: giver)
      }
    }
  }

  mutating func draw(_ explanation: TieOutExplanation, from supply: inout [Int: Millionths], lags: ClosedRange<Int>) {
    if supply.isEmpty { return }
    for taker in days.indices where appleExcess(taker) > .zero {
      for giver in supply.keys.sorted() where lags.contains(taker - giver) {
        let units = min(appleExcess(taker), supply[giver] ?? .zero)
        take(units, on: taker, explanation)
        supply[giver, default: .zero] -= units
      }
    }
  }
}
