/// One key over all days: what is left of the difference of each day, and what has been taken from it.
///
/// Every step takes in the direction of what is left and never beyond it, so that the steps and the rest are the
/// difference, whatever the rules are.
struct Series {
  struct Step: Hashable {
    var explanation: TieOutExplanation
    /// With the sign of the difference.
    var units: Millionths
    /// The other day of a pair.
    var partner: Int?
  }

  struct Day {
    var apple = Millionths.zero
    var ours = Millionths.zero
    /// What no step has taken so far.
    var rest = Millionths.zero
    var steps: [Step] = []
  }

  /// +1 where Apple counting more makes the difference larger; -1 for refunds, which both sides count below zero.
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

  /// How many units Apple counts more than we do, of what is left.
  func appleExcess(_ day: Int) -> Millionths { max(.zero, sign < 0 ? -days[day].rest : days[day].rest) }
  /// How many units we count more.
  func ourExcess(_ day: Int) -> Millionths { max(.zero, sign < 0 ? days[day].rest : -days[day].rest) }

  /// Explains up to so many units of a day.
  /// - Returns: how many it explained.
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

  /// Pairs days on which we count more with days on which Apple does. Days are paired in their order, which pairs as many
  /// units as can be, because all windows are of one length.
  /// - Parameter lags: how many days Apple's may be after ours.
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

  /// Explains what Apple counts more by a supply of units, each of one day, the earliest first.
  /// - Parameters:
  ///   - supply: how many units there are on which day, by position, and what is left of them afterwards.
  ///   - lags: how many days Apple's may be after the supply's.
  mutating func draw(
    _ explanation: TieOutExplanation, from supply: inout [Int: Millionths], lags: ClosedRange<Int>
  ) {
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
