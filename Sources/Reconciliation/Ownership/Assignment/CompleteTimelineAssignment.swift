import HeapModule

/// The result of ``Assignment`` if every pair within the window is allowed, in n log n steps.
/// Orders and transactions lie on one line of time, and the cost of a pair is its distance. For equal numbers of both,
/// the pairs across each moment are known: the orders before it less the transactions before it. Every assignment that
/// crosses no moment in vain is a best one, so each order in turn takes the smallest ID that it reaches so. For unequal
/// numbers, two heaps find the points without a partner. Memory is in proportion to n.
/// The window and goods are checked afterwards. Parts that exceed the window or leave out an order with goods, and
/// ties, are left to ``TimelineAssignment``.
struct CompleteTimelineAssignment {
  /// Returns, by rank of each order, the rank of its transaction or nil. Times are in microseconds.
  /// `hasGoods` goes by rank; empty if all orders are alike.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, hasGoods: [Bool] = []
  ) -> (partners: [Int?], steps: Int) {
    var partners = [Int?](repeating: nil, count: orders.count)
    var steps = orders.count + transactions.count
    for part in parts(orders, transactions, window) where !part.orders.isEmpty && !part.transactions.isEmpty {
      let (times, sales) = (part.orders.map { orders[$0] }, part.transactions.map { transactions[$0] })
      let goods = hasGoods.isEmpty ? [] : part.orders.map { hasGoods[$0] }
      var found: [Int?]
      if let solved = solvePart(times, sales, window, &steps), !leavesOutGoods(solved, goods) {
        found = solved
      } else if let solved = TimelineAssignment.solve(
        orders: times, transactions: sales, window: window, hasGoods: goods)
      {
        steps += solved.steps
        found = solved.partners
      } else {
        continue
      }
      for (order, partner) in found.enumerated() {
        partners[part.orders[order]] = partner.map { part.transactions[$0] }
      }
    }
    return (partners, steps)
  }

  /// True if an order without goods has the transaction that an order with goods might have.
  private static func leavesOutGoods(_ partners: [Int?], _ hasGoods: [Bool]) -> Bool {
    hasGoods.contains(false) && zip(partners, hasGoods).contains { $0 == nil && $1 }
  }

  /// Splits the points where a gap exceeds the window, because no pair crosses it.
  private static func parts(
    _ orders: [Int64], _ transactions: [Int64], _ window: Int64
  ) -> [(orders: [Int], transactions: [Int])] {
    let points = (0..<(orders.count + transactions.count)).map { place in
      (time: place < orders.count ? orders[place] : transactions[place - orders.count], place: place)
    }.sorted { $0 < $1 }
    var parts: [(orders: [Int], transactions: [Int])] = []
    var last: Int64?
    for point in points {
      if last.map({ point.time - $0 > window }) ?? true { parts.append(([], [])) }
      last = point.time
      if point.place < orders.count {
        parts[parts.count - 1].orders.append(point.place)
      } else {
        parts[parts.count - 1].transactions.append(point.place - orders.count)
      }
    }
    for place in parts.indices {
      parts[place].orders.sort()
      parts[place].transactions.sort()
    }
    return parts
  }

  private static func solvePart(
    _ orders: [Int64], _ transactions: [Int64], _ window: Int64, _ steps: inout Int
  ) -> [Int?]? {
    var partners = [Int?](repeating: nil, count: orders.count)
    var (participants, sold) = (Array(orders.indices), Array(transactions.indices))
    if orders.count > transactions.count {
      guard let chosen = matched(of: orders, against: transactions, &steps) else { return nil }
      participants = chosen
    } else if orders.count < transactions.count {
      guard let chosen = matched(of: transactions, against: orders, &steps) else { return nil }
      sold = chosen
    }
    let pairs = pairs(participants.map { orders[$0] }, sold.map { transactions[$0] }, window, &steps)
    guard let pairs else { return nil }
    for (order, sale) in pairs.enumerated() { partners[participants[order]] = sold[sale] }
    return partners
  }

  /// The points of `many` with a partner in every best assignment, by rank; nil for a tie.
  /// In order of time, each point of `few` takes the cheapest place, and a later one may take it over. The heaps hold
  /// the costs of these steps, and the point of `many` that gains or loses its partner.
  private static func matched(of many: [Int64], against few: [Int64], _ steps: inout Int) -> [Int]? {
    let points = (many.indices.map { (time: many[$0], place: $0) } + few.map { (time: $0, place: many.count) })
      .sorted { $0 < $1 }
    guard let first = points.first?.time, let last = points.last?.time else { return [] }
    // More than the cost of any path through all points.
    let unmatched = 4 * (last - first) + 4
    var isMatched = [Bool](repeating: false, count: many.count)
    // Costs of pairing one of `many`, and of taking over its partner, without the later point's time.
    var (gains, losses) = (Heap<PartnerChange>(), Heap<PartnerChange>())
    for point in points {
      let time = point.time - first
      if point.place == many.count {
        let gain = gains.min.flatMap { $0.cost + time < unmatched ? gains.popMin() : nil }
        if let gained = gain?.place { isMatched[gained] = true }
        losses.insert(PartnerChange(cost: -(gain?.cost ?? unmatched - time) - 2 * time, place: gain?.place))
      } else {
        var cost = -time
        var place: Int? = point.place
        if let loss = losses.min, loss.cost + time < 0 {
          losses.removeMin()
          isMatched[point.place] = true
          if let lost = loss.place { isMatched[lost] = false }
          (cost, place) = (-loss.cost - 2 * time, loss.place)
        }
        if let place { gains.insert(PartnerChange(cost: cost, place: place)) }
      }
    }
    steps += points.count * (Int.bitWidth - points.count.leadingZeroBitCount)
    return isUnique(isMatched, points) ? many.indices.filter { isMatched[$0] } : nil
  }

  /// True if every exchange of a matched point for an unmatched one has a cost.
  /// An exchange changes the crossings between its points by one: earlier points of `few` less matched ones.
  private static func isUnique(_ isMatched: [Bool], _ points: [(time: Int64, place: Int)]) -> Bool {
    // The least cost of an exchange with an earlier matched point, and with an earlier unmatched point.
    var (crossing, leastLater, leastEarlier) = (0, Int64.max, Int64.max)
    var last = points.first?.time ?? 0
    for point in points {
      let length = point.time - last
      last = point.time
      if leastLater < .max { leastLater += crossing >= 0 ? length : -length }
      if leastEarlier < .max { leastEarlier += crossing <= 0 ? length : -length }
      if point.place == isMatched.count {
        crossing += 1
      } else if isMatched[point.place] {
        if leastEarlier == 0 { return false }
        leastLater = min(leastLater, 0)
        crossing -= 1
      } else {
        if leastLater == 0 { return false }
        leastEarlier = min(leastEarlier, 0)
      }
    }
    return true
  }

  /// Pairs equal numbers: by order, its transaction; nil if a pair exceeds the window.
  private static func pairs(
    _ orders: [Int64], _ transactions: [Int64], _ window: Int64, _ steps: inout Int
  ) -> [Int]? {
    var times = orders + transactions
    times.sort()
    var distinct: [Int64] = []
    for time in times where distinct.last != time { distinct.append(time) }
    let places = Dictionary(uniqueKeysWithValues: distinct.enumerated().map { ($1, $0) })
    let byTime = transactions.indices.sorted { (transactions[$0], $0) < (transactions[$1], $1) }
    /// By place on the line, the start of its transactions in `byTime`.
    var begins = [Int](repeating: 0, count: distinct.count + 1)
    var waiting = [Int](repeating: 0, count: distinct.count)
    for time in transactions {
      guard let place = places[time] else { continue }
      begins[place + 1] += 1
      waiting[place] -= 1
    }
    for time in orders { if let place = places[time] { waiting[place] += 1 } }
    for place in distinct.indices {
      begins[place + 1] += begins[place]
      if place > 0 { waiting[place] += waiting[place - 1] }
    }
    var crossings = CrossingTree(waiting)
    var ids = SmallestTree(byTime)
    var partners: [Int] = []
    for time in orders {
      guard let place = places[time] else { return nil }
      let last = crossings.firstNotPositive(from: place) ?? distinct.count - 1
      let first = (crossings.lastNotNegative(before: place) ?? -1) + 1
      guard let smallest = ids.smallest(in: begins[first]..<begins[last + 1]),
        abs(transactions[smallest] - time) <= window, let target = places[transactions[smallest]]
      else { return nil }
      partners.append(smallest)
      ids.remove(smallest)
      if target > place { crossings.add(-1, to: place..<target) }
      if target < place { crossings.add(1, to: target..<place) }
    }
    steps += crossings.steps + ids.steps + 4 * times.count
    return partners
  }
}

private struct PartnerChange: Comparable {
  var cost: Int64
  var place: Int?

  static func < (left: PartnerChange, right: PartnerChange) -> Bool {
    (left.cost, left.place ?? -1) < (right.cost, right.place ?? -1)
  }
}

/// A segment tree that adds to ranges and finds the next value of a sign.
private struct CrossingTree {
  private var least: [Int]
  private var greatest: [Int]
  private var added: [Int]
  private let size: Int
  private let count: Int
  private(set) var steps = 0

  init(_ values: [Int]) {
    count = values.count
    var size = 1
    while size < values.count { size *= 2 }
    self.size = size
    least = Array(repeating: 0, count: 2 * size)
    added = least
    for (place, value) in values.enumerated() { least[size + place] = value }
    greatest = least
    for node in (1..<size).reversed() { combine(node) }
  }

  private mutating func combine(_ node: Int) {
    least[node] = min(least[2 * node], least[2 * node + 1]) + added[node]
    greatest[node] = max(greatest[2 * node], greatest[2 * node + 1]) + added[node]
  }

  mutating func add(_ value: Int, to range: Range<Int>) { add(value, range, 1, 0..<size) }

  private mutating func add(_ value: Int, _ range: Range<Int>, _ node: Int, _ covered: Range<Int>) {
    steps += 1
    if range.lowerBound >= covered.upperBound || range.upperBound <= covered.lowerBound { return }
    if range.lowerBound <= covered.lowerBound, covered.upperBound <= range.upperBound {
      least[node] += value
      greatest[node] += value
      added[node] += value
      return
    }
    let middle = (covered.lowerBound + covered.upperBound) / 2
    add(value, range, 2 * node, covered.lowerBound..<middle)
    add(value, range, 2 * node + 1, middle..<covered.upperBound)
    combine(node)
  }

  mutating func firstNotPositive(from start: Int) -> Int? {
    first(start, 1, 0..<size, 0).flatMap { $0 < count ? $0 : nil }
  }

  private mutating func first(_ start: Int, _ node: Int, _ covered: Range<Int>, _ above: Int) -> Int? {
    steps += 1
    if covered.upperBound <= start || least[node] + above > 0 { return nil }
    if covered.count == 1 { return covered.lowerBound }
    let middle = (covered.lowerBound + covered.upperBound) / 2
    let below = above + added[node]
    return first(start, 2 * node, covered.lowerBound..<middle, below)
      ?? first(start, 2 * node + 1, middle..<covered.upperBound, below)
  }

  mutating func lastNotNegative(before end: Int) -> Int? { last(end, 1, 0..<size, 0) }

  private mutating func last(_ end: Int, _ node: Int, _ covered: Range<Int>, _ above: Int) -> Int? {
    steps += 1
    if covered.lowerBound >= end || greatest[node] + above < 0 { return nil }
    if covered.count == 1 { return covered.lowerBound }
    let middle = (covered.lowerBound + covered.upperBound) / 2
    let below = above + added[node]
    return last(end, 2 * node + 1, middle..<covered.upperBound, below)
      ?? last(end, 2 * node, covered.lowerBound..<middle, below)
  }
}

/// A segment tree that finds the smallest value of a range, and removes values.
struct SmallestTree {
  private var smallest: [Int]
  private var places: [Int]
  private let size: Int
  private(set) var steps = 0

  /// - Parameter values: a permutation of 0..<n.
  init(_ values: [Int]) {
    var size = 1
    while size < values.count { size *= 2 }
    self.size = size
    places = Array(repeating: 0, count: values.count)
    smallest = Array(repeating: .max, count: 2 * size)
    for (place, value) in values.enumerated() {
      smallest[size + place] = value
      places[value] = place
    }
    for node in (1..<size).reversed() { smallest[node] = min(smallest[2 * node], smallest[2 * node + 1]) }
  }

  mutating func smallest(in range: Range<Int>) -> Int? {
    var (low, high) = (range.lowerBound + size, range.upperBound + size)
    var found = Int.max
    while low < high {
      steps += 1
      if low & 1 == 1 {
        found = min(found, smallest[low])
        low += 1
      }
      if high & 1 == 1 {
        high -= 1
        found = min(found, smallest[high])
      }
      low /= 2
      high /= 2
    }
    return found == .max ? nil : found
  }

  mutating func remove(_ value: Int) { put(.max, at: places[value]) }

  mutating func restore(_ value: Int) { put(value, at: places[value]) }

  private mutating func put(_ value: Int, at place: Int) {
    var node = size + place
    smallest[node] = value
    while node > 1 {
      steps += 1
      node /= 2
      smallest[node] = min(smallest[2 * node], smallest[2 * node + 1])
    }
  }
}
