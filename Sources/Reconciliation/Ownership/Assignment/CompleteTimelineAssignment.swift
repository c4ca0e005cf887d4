import HeapModule

/// The result of ``TimelineAssignment``, in n log n steps unless a pair of the best time line is not linked.
/// For equal numbers, the pairs in the order of time are the best ones. For unequal numbers, two heaps find the points
/// without a partner. Memory is in proportion to n.
/// The window, links and goods are checked afterwards. Parts with a pair outside the window or without a link, parts that
/// leave out an order with goods, and ties are left to ``TimelineAssignment``.
struct CompleteTimelineAssignment {
  /// Returns, by order, its transaction or nil. Times are in microseconds, sorted.
  /// `hasGoods` and `linked` go by order; empty: all orders are alike, or all transactions within the window are linked.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, hasGoods: [Bool] = [], linked: [LinkedPlaces] = []
  ) -> (partners: [Int?], steps: Int) {
    var partners = [Int?](repeating: nil, count: orders.count)
    var steps = orders.count + transactions.count
    for part in parts(orders, transactions, window) where !part.orders.isEmpty && !part.transactions.isEmpty {
      let (times, sales) = (Array(orders[part.orders]), Array(transactions[part.transactions]))
      let goods = hasGoods.isEmpty ? [] : Array(hasGoods[part.orders])
      let links = linked.isEmpty ? [] : linked[part.orders].map { $0.within(part.transactions) }
      func isLinked(_ order: Int, _ partner: Int?) -> Bool {
        links.isEmpty || partner.map(links[order].contains) ?? true
      }
      let found: [Int?]
      if let solved = solvePart(times, sales, window, &steps), !leavesOutGoods(solved, goods),
        solved.indices.allSatisfy({ isLinked($0, solved[$0]) })
      {
        found = solved
      } else {
        let solved = TimelineAssignment.solve(
          orders: times, transactions: sales, window: window, hasGoods: goods, linked: links)
        steps += solved.steps
        found = solved.partners
      }
      for (order, partner) in found.enumerated() {
        partners[part.orders.lowerBound + order] = partner.map { part.transactions.lowerBound + $0 }
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
  ) -> [(orders: Range<Int>, transactions: Range<Int>)] {
    var parts: [(orders: Range<Int>, transactions: Range<Int>)] = []
    var (order, transaction) = (0, 0)
    while order < orders.count || transaction < transactions.count {
      let start = (order, transaction)
      var last: Int64?
      while order < orders.count || transaction < transactions.count {
        let isOrder =
          transaction == transactions.count || order < orders.count && orders[order] <= transactions[transaction]
        let time = isOrder ? orders[order] : transactions[transaction]
        if let last, time - last > window { break }
        last = time
        if isOrder { order += 1 } else { transaction += 1 }
      }
      parts.append((start.0..<order, start.1..<transaction))
    }
    return parts
  }

  /// nil: several assignments are equally good, or a pair exceeds the window.
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
    for (order, sale) in zip(participants, sold) {
      if abs(orders[order] - transactions[sale]) > window { return nil }
      partners[order] = sale
    }
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
}

private struct PartnerChange: Comparable {
  var cost: Int64
  var place: Int?

  static func < (left: PartnerChange, right: PartnerChange) -> Bool {
    (left.cost, left.place ?? -1) < (right.cost, right.place ?? -1)
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
