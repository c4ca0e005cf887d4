import Reconciliation

/// The amounts of one series: units of both sides by price. All arithmetic is exact. Units of the same price cancel
/// out; units left on both sides differ in price; units left on one side belong to steps.
struct PriceStacks {
  struct Day {
    var apple: [Millionths: Millionths] = [:]
    var ours: [Millionths: Millionths] = [:]
  }

  private var days: [Day]
  private let halfMinorUnit: Millionths

  init(count: Int, halfMinorUnit: Millionths) {
    days = Array(repeating: Day(), count: count)
    self.halfMinorUnit = halfMinorUnit
  }

  mutating func add(apple units: Millionths, at price: Millionths, on day: Int) {
    days[day].apple[price, default: .zero] += units.magnitude
  }

  /// - Parameter total: the price of all units together.
  mutating func add(ours units: Int, for total: Millionths, on day: Int) {
    let count = Int128(units.magnitude)
    if count == 0 { return }
    let (price, rest) = total.count.quotientAndRemainder(dividingBy: count)
    // If the total is not divisible, one unit takes the remainder.
    if rest != 0 { days[day].ours[Millionths(count: price + rest), default: .zero] += .one }
    let even = rest == 0 ? units.magnitude : units.magnitude - 1
    if even > 0 { days[day].ours[Millionths(count: price), default: .zero] += Millionths(Int(even)) }
  }

  func amounts(_ day: Int) -> (apple: Millionths, ours: Millionths) {
    (Self.worth(days[day].apple), Self.worth(days[day].ours))
  }

  /// The amount of each explanation and of the rest for each day, with the sign of the difference.
  func comparisons(_ series: Series) -> [TieOutRow.Comparison] {
    var results = days.map { _ in TieOutRow.Comparison(explained: Explained(), unexplained: .zero) }
    var remains: [[Millionths: Millionths]] = []
    for (index, day) in days.enumerated() {
      let pairing = Self.paired(day)
      for (apple, ours, units) in pairing.pairs {
        let difference = (apple - ours).times(units) ?? .zero
        let explanation = (apple - ours).magnitude < halfMinorUnit ? TieOutExplanation.rounding : .price
        results[index].explained[explanation] += series.sign < 0 ? -difference : difference
      }
      remains.append(pairing.rest)
    }
    for (index, day) in series.days.enumerated() {
      for step in day.steps {
        guard let partner = step.partner, partner > index || step.units == .zero else { continue }
        Self.takePair(step, index, partner, &remains, &results)
      }
    }
    for (index, day) in series.days.enumerated() {
      for step in day.steps where step.partner == nil {
        results[index].explained[step.explanation] += Self.take(step.units, from: &remains[index])
      }
      results[index].unexplained += Self.take(day.rest, from: &remains[index])
    }
    return results
  }

  /// Units counted on two days take the same price on both as far as possible.
  private static func takePair(
    _ step: Series.Step, _ day: Int, _ partner: Int, _ remains: inout [[Millionths: Millionths]],
    _ results: inout [TieOutRow.Comparison]
  ) {
    var left = step.units.magnitude
    for price in remains[day].keys.filter({ remains[partner][$0] != nil }).sorted() {
      let units = min(left, remains[day][price] ?? .zero, remains[partner][price] ?? .zero)
      if units == .zero { continue }
      left -= units
      for (place, sign) in [(day, step.units), (partner, -step.units)] {
        remove(units, at: price, from: &remains[place])
        let worth = price.times(units) ?? .zero
        results[place].explained[step.explanation] += sign < .zero ? -worth : worth
      }
    }
    if left == .zero { return }
    let signed = step.units < .zero ? -left : left
    results[day].explained[step.explanation] += take(signed, from: &remains[day])
    results[partner].explained[step.explanation] += take(-signed, from: &remains[partner])
  }

  private static func take(_ units: Millionths, from stack: inout [Millionths: Millionths]) -> Millionths {
    var left = units.magnitude
    var worth = Millionths.zero
    for price in stack.keys.sorted() where left > .zero {
      let taken = min(left, stack[price] ?? .zero)
      left -= taken
      worth += price.times(taken) ?? .zero
      remove(taken, at: price, from: &stack)
    }
    return units < .zero ? -worth : worth
  }

  private static func remove(_ units: Millionths, at price: Millionths, from stack: inout [Millionths: Millionths]) {
    let left = (stack[price] ?? .zero) - units
    stack[price] = left == .zero ? nil : left
  }

  private static func worth(_ stack: [Millionths: Millionths]) -> Millionths {
    stack.reduce(.zero) { $0 + ($1.key.times($1.value) ?? .zero) }
  }

  private static func paired(
    _ day: Day
  ) -> (pairs: [(apple: Millionths, ours: Millionths, units: Millionths)], rest: [Millionths: Millionths]) {
    var (apple, ours) = (day.apple, day.ours)
    for price in day.apple.keys {
      let shared = min(apple[price] ?? .zero, ours[price] ?? .zero)
      if shared == .zero { continue }
      remove(shared, at: price, from: &apple)
      remove(shared, at: price, from: &ours)
    }
    var pairs: [(apple: Millionths, ours: Millionths, units: Millionths)] = []
    while let left = apple.keys.min(), let right = ours.keys.min() {
      let units = min(apple[left] ?? .zero, ours[right] ?? .zero)
      pairs.append((left, right, units))
      remove(units, at: left, from: &apple)
      remove(units, at: right, from: &ours)
    }
    return (pairs, apple.isEmpty ? ours : apple)
  }
}
