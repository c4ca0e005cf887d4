/// Orders and money by the day on which the orders were created, for comparing with what was reported about these days.
package struct DayTotals: Sendable {
  /// A business day.
  package struct Day: Hashable, Sendable {
    /// `2026-11-19`.
    package var name: String
    package var start: Instant
    /// The first instant that is not in it any more.
    package var end: Instant

    package init(name: String, start: Instant, end: Instant) {
      self.name = name
      self.start = start
      self.end = end
    }
  }

  /// One bucket of one day.
  package struct Bucket: Hashable, Comparable, Sendable {
    package var currency: Currency
    package var disposition: Disposition

    package init(currency: Currency, disposition: Disposition) {
      self.currency = currency
      self.disposition = disposition
    }

    package static func < (left: Bucket, right: Bucket) -> Bool {
      (left.currency, left.disposition.index) < (right.currency, right.disposition.index)
    }
  }

  /// What is in a bucket. The amount is in minor units.
  package struct Sum: Hashable, Sendable {
    package var orders: Int
    package var minorUnits: Int128

    package init(orders: Int = 0, minorUnits: Int128 = 0) {
      self.orders = orders
      self.minorUnits = minorUnits
    }

    mutating func add(_ money: Money) {
      orders += 1
      minorUnits += Int128(money.minorUnits)
    }
  }

  package typealias Sums = [Bucket: Sum]

  /// Oldest first, without overlap.
  package let days: [Day]
  /// By the places of `days`.
  package private(set) var sums: [Sums]

  /// - Parameter days: oldest first, without overlap; orders of other days are not counted.
  package init(days: [Day]) {
    self.days = days
    sums = Array(repeating: [:], count: days.count)
  }

  /// Counts an order, whatever became of it. Rows that break the contract have no amount and are not counted.
  package mutating func add(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row, let index = index(of: order.createdAt) else { return }
    let bucket = Bucket(currency: order.amount.currency, disposition: judgement.disposition)
    sums[index][bucket, default: Sum()].add(order.amount)
  }

  /// Adds the orders that other totals of the same days were made of.
  package mutating func join(_ other: DayTotals) {
    for (index, buckets) in other.sums.enumerated() {
      for (bucket, sum) in buckets { join(sum, of: bucket, dayAt: index) }
    }
  }

  /// Adds orders of one bucket of a day, by its place in `days`.
  package mutating func join(_ sum: Sum, of bucket: Bucket, dayAt index: Int) {
    sums[index][bucket, default: Sum()].orders += sum.orders
    sums[index][bucket, default: Sum()].minorUnits += sum.minorUnits
  }

  /// What is known about a day now; nil for one that is not counted.
  package func sums(of day: String) -> Sums? {
    days.firstIndex { $0.name == day }.map { sums[$0] }
  }

  private func index(of instant: Instant) -> Int? {
    var (low, high) = (0, days.count)
    while low < high {
      let middle = (low + high) / 2
      if days[middle].end <= instant { low = middle + 1 } else { high = middle }
    }
    return low < days.count && days[low].start <= instant ? low : nil
  }
}

/// A bucket of a day that is another one now than when the day was reported.
package struct Adjustment: Hashable, Sendable {
  /// `2026-11-19`.
  package var day: String
  package var bucket: DayTotals.Bucket
  package var reported: DayTotals.Sum
  package var now: DayTotals.Sum

  package init(day: String, bucket: DayTotals.Bucket, reported: DayTotals.Sum, now: DayTotals.Sum) {
    self.day = day
    self.bucket = bucket
    self.reported = reported
    self.now = now
  }

  /// What differs between two pictures of the same days, sorted by day, currency and disposition. A day that is in one of
  /// them only was not reported, or is not looked at any more: nothing is said about it.
  package static func between(
    _ reported: [String: DayTotals.Sums], _ now: [String: DayTotals.Sums]
  ) -> [Adjustment] {
    var adjustments: [Adjustment] = []
    for (day, before) in reported.sorted(by: { $0.key < $1.key }) {
      guard let after = now[day] else { continue }
      for bucket in Set(before.keys).union(after.keys).sorted() {
        let (old, new) = (before[bucket] ?? DayTotals.Sum(), after[bucket] ?? DayTotals.Sum())
        if old != new { adjustments.append(Adjustment(day: day, bucket: bucket, reported: old, now: new)) }
      }
    }
    return adjustments
  }
}
