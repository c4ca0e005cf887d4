/// Orders and money by day of creation, for comparison with earlier reports.
public struct DayTotals: Sendable {
  public struct Day: Hashable, Sendable {
    /// `2026-11-19`.
    public var name: String
    public var start: Instant
    /// The first instant after the day.
    public var end: Instant

    public init(name: String, start: Instant, end: Instant) {
      (self.name, self.start, self.end) = (name, start, end)
    }

    fileprivate func contains(_ instant: Instant) -> Bool { start <= instant && instant < end }
  }

  public struct Bucket: Hashable, Comparable, Sendable {
    public var currency: Currency
    public var disposition: Disposition

    public init(currency: Currency, disposition: Disposition) {
      self.currency = currency
      self.disposition = disposition
    }

    public static func < (left: Bucket, right: Bucket) -> Bool {
      (left.currency, left.disposition.index) < (right.currency, right.disposition.index)
    }
  }

  public struct Sum: Hashable, Sendable {
    public var orders: Int
    public var minorUnits: Int128

    public init(orders: Int = 0, minorUnits: Int128 = 0) {
      self.orders = orders
      self.minorUnits = minorUnits
    }

    mutating func add(_ money: Money) {
      orders += 1
      minorUnits += Int128(money.minorUnits)
    }

    mutating func add(_ other: Sum) {
      orders += other.orders
      minorUnits += other.minorUnits
    }
  }

  public typealias Sums = [Bucket: Sum]

  public let days: [Day]
  /// By day and disposition.
  private var counted: [ByCurrency<Sum>]
  /// The day of the last order, because orders mostly come in the order of time.
  private var last = 0

  /// - Parameter days: oldest first, without overlap. Orders of other days are not counted.
  public init(days: [Day]) {
    self.days = days
    counted = Array(repeating: ByCurrency(), count: days.count * Disposition.allCases.count)
  }

  public mutating func add(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row else { return }
    add(order.amount, judgement.disposition, createdAt: order.createdAt)
  }

  public mutating func add(_ sale: SettledSale) { add(sale.order.amount, .settled, createdAt: sale.order.createdAt) }

  private mutating func add(_ amount: Money, _ disposition: Disposition, createdAt: Instant) {
    if !(days.indices.contains(last) && days[last].contains(createdAt)) {
      guard let index = index(of: createdAt) else { return }
      last = index
    }
    counted[place(last, disposition)][amount.currency, default: Sum()].add(amount)
  }

  public mutating func join(_ other: DayTotals) {
    for (index, buckets) in other.sums.enumerated() {
      for (bucket, sum) in buckets { join(sum, of: bucket, dayAt: index) }
    }
  }

  public mutating func join(_ sum: Sum, of bucket: Bucket, dayAt index: Int) {
    counted[place(index, bucket.disposition)][bucket.currency, default: Sum()].add(sum)
  }

  private func place(_ index: Int, _ disposition: Disposition) -> Int {
    index * Disposition.allCases.count + disposition.index
  }

  public var sums: [Sums] { days.indices.map(sums) }

  private func sums(dayAt index: Int) -> Sums {
    var sums: Sums = [:]
    for disposition in Disposition.allCases {
      for (currency, sum) in counted[place(index, disposition)].sorted {
        sums[Bucket(currency: currency, disposition: disposition)] = sum
      }
    }
    return sums
  }

  public func sums(of day: String) -> Sums? {
    days.firstIndex { $0.name == day }.map(sums)
  }

  private func index(of instant: Instant) -> Int? {
    let index = days.partitioningIndex { instant < $0.end }
    return index < days.count && days[index].contains(instant) ? index : nil
  }
}

/// A bucket of a day whose figures have changed since its report.
public struct Adjustment: Hashable, Sendable {
  public var day: String
  public var bucket: DayTotals.Bucket
  public var reported: DayTotals.Sum
  public var now: DayTotals.Sum

  public init(day: String, bucket: DayTotals.Bucket, reported: DayTotals.Sum, now: DayTotals.Sum) {
    (self.day, self.bucket, self.reported, self.now) = (day, bucket, reported, now)
  }

  /// Compares two states of the same days, in sequence. Days in only one of them are left out.
  public static func between(
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
