/// The transactions that may pay an order, by place in time.
enum LinkedPlaces {
  case range(Range<Int>)
  /// In ascending order.
  case list([Int])

  func contains(_ place: Int) -> Bool { first(in: place..<place + 1) != nil }

  func first(in part: Range<Int>) -> Int? {
    switch self {
    case .range(let range): return range.clamped(to: part).first
    case .list(let places):
      let found = places.partitioningIndex { $0 >= part.lowerBound }
      return found < places.count && places[found] < part.upperBound ? places[found] : nil
    }
  }

  /// The places within a range, counted from its start.
  func within(_ part: Range<Int>) -> LinkedPlaces {
    switch self {
    case .range(let range):
      let own = range.clamped(to: part)
      return .range(own.lowerBound - part.lowerBound..<own.upperBound - part.lowerBound)
    case .list(let places): return .list(places.filter(part.contains).map { $0 - part.lowerBound })
    }
  }
}

/// The assignment of transactions to orders on one line of time, both in the order of time.
/// One app receipt that was sent for every order of its user makes such a problem. Pairs do not cross. A table of the
/// pairs within the window finds the best ones, from the last order to the first: the most pairs, then the most orders
/// with goods, then the smallest total distance, then the earlier order with the earlier transaction.
/// Where receipts list no more than a part, more pairs may be possible if some cross. Orders that were left out are then
/// added along shortest augmenting paths (Hopcroft and Karp 1973), those with goods first. An order of the best timeline
/// keeps a transaction, even if an order with goods is left out.
/// The time grows with the pairs: 25 million for 5,000 orders and purchases within three days. Orders that were left out
/// are added in few phases, at most in proportion to the root of their number. Memory is at most ``tableLimit`` bytes,
/// beside a number for each order and transaction.
struct TimelineAssignment {
  private let orders: [Int64]
  private let transactions: [Int64]
  /// The costs of pairing orders, beside the distance: orders without goods come last.
  private let penalties: [Int128]
  /// One more pair outweighs any sum of distances and penalties.
  private let pairValue: Int128
  /// By order, the transactions within the window.
  private var reach: [Range<Int>] = []
  /// By order; empty if all transactions within the window may pay it.
  private let linked: [LinkedPlaces]
  private var partners: [Int?]
  private var steps = 0

  /// The largest table, in bytes: one byte a pair. A larger problem is solved in halves, the second half twice.
  static let tableLimit = 1 << 26

  /// Returns, by order, its transaction or nil. Times are in microseconds, sorted.
  /// `hasGoods` and `linked` go by order; empty: all orders are alike, or all transactions within the window are linked.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, hasGoods: [Bool] = [], linked: [LinkedPlaces] = [],
    tableLimit: Int = tableLimit
  ) -> (partners: [Int?], steps: Int) {
    var problem = TimelineAssignment(orders, transactions, window, hasGoods, linked)
    let nothing = BestValues(values: Array(repeating: 0, count: transactions.count + 1), known: transactions.count)
    _ = problem.pair(orders.indices, before: nothing, begin: 0, tableLimit: tableLimit)
    if !linked.isEmpty { problem.addOrdersLeftOut(hasGoods) }
    return (problem.partners, problem.steps)
  }

  private init(
    _ orders: [Int64], _ transactions: [Int64], _ window: Int64, _ hasGoods: [Bool], _ linked: [LinkedPlaces]
  ) {
    (self.orders, self.transactions, self.linked) = (orders, transactions, linked)
    // More than the sum of all distances, if some orders have goods.
    let penalty = hasGoods.contains(true) ? Int128(window + 1) * Int128(orders.count + 1) : 0
    penalties = orders.indices.map { hasGoods.isEmpty || hasGoods[$0] ? 0 : penalty }
    pairValue = Int128(window + 1) * Int128(orders.count + 1) * Int128(orders.count + 2)
    partners = Array(repeating: nil, count: orders.count)
    var (low, high) = (0, 0)
    for time in orders {
      while low < transactions.count, transactions[low] < time - window { low += 1 }
      while high < transactions.count, transactions[high] <= time + window { high += 1 }
      reach.append(low..<max(low, high))
    }
  }

  private enum Choice: UInt8 { case skipOrder, skipTransaction, pair }

  /// The best value with the transactions from each place on, for the last orders.
  private struct BestValues {
    var values: [Int128]
    /// The places from here on have a value. Earlier transactions are out of reach, and have that of this place.
    var known: Int
  }

  /// Pairs a range of orders by dynamic programming: the most pairs, then the smallest distance, then the earlier order
  /// with the earlier transaction.
  /// - Parameters:
  ///   - best: the values for the orders after the range.
  ///   - begin: the place from which transactions are left.
  /// - Returns: the place from which transactions are left for the orders after the range.
  private mutating func pair(_ range: Range<Int>, before best: BestValues, begin: Int, tableLimit: Int) -> Int {
    let pairCount = range.reduce(0) { $0 + reach[$1].count }
    if range.count > 1, pairCount > tableLimit {
      let middle = range.lowerBound + range.count / 2
      var halfway = best
      for order in (middle..<range.upperBound).reversed() { add(order, to: &halfway) { _ in } }
      let next = pair(range.lowerBound..<middle, before: halfway, begin: begin, tableLimit: tableLimit)
      return pair(middle..<range.upperBound, before: best, begin: next, tableLimit: tableLimit)
    }
    var best = best
    var choices: [Choice] = []
    // A growing array takes up to three times as much.
    choices.reserveCapacity(pairCount)
    var ends: [Int] = []
    for order in range.reversed() {
      add(order, to: &best) { choices.append($0) }
      ends.append(choices.count)
    }
    var begin = begin
    for (order, end) in zip(range, ends.reversed()) {
      let reach = reach[order]
      for place in max(begin, reach.lowerBound)..<max(begin, reach.upperBound) {
        let choice = choices[end - 1 - (place - reach.lowerBound)]
        if choice == .skipTransaction { continue }
        if choice == .pair { (partners[order], begin) = (place, place + 1) }
        break
      }
    }
    return begin
  }

  /// - Parameter choose: gets the choice at each place within reach, the last one first.
  private mutating func add(_ order: Int, to best: inout BestValues, choose: (Choice) -> Void) {
    let (time, reach) = (orders[order], reach[order])
    if reach.isEmpty { return }
    while best.known > reach.lowerBound {
      best.values[best.known - 1] = best.values[best.known]
      best.known -= 1
    }
    var diagonal = best.values[reach.upperBound]
    // The best value of a pair of the order with this transaction or a later one.
    var ofPairs = Int128.min
    for place in reach.reversed() {
      let without = best.values[place]
      let paired =
        isLinked(order, place)
        ? diagonal + pairValue - Int128(abs(transactions[place] - time)) - penalties[order] : Int128.min
      diagonal = without
      ofPairs = max(ofPairs, paired)
      best.values[place] = max(ofPairs, without)
      choose(ofPairs < without ? .skipOrder : paired == ofPairs ? .pair : .skipTransaction)
    }
    steps += reach.count
  }

  private func isLinked(_ order: Int, _ place: Int) -> Bool { linked.isEmpty || linked[order].contains(place) }

  // MARK: - Orders left out

  private mutating func addOrdersLeftOut(_ hasGoods: [Bool]) {
    var owners = [Int?](repeating: nil, count: transactions.count)
    for (order, place) in partners.enumerated() { if let place { owners[place] = order } }
    for takesPreferred in [true, false] {
      var leftOut = orders.indices.filter {
        partners[$0] == nil && (hasGoods.isEmpty || hasGoods[$0]) == takesPreferred
      }
      while let levels = levels(from: leftOut, owners) {
        // By order, the first place that no path of this phase has tried.
        var untried = reach.map(\.lowerBound)
        leftOut.removeAll { addOrder($0, levels, &untried, &owners) }
      }
    }
  }

  /// By order, the number of exchanges before it on the shortest paths; nil: no path leads to a free transaction.
  private mutating func levels(from leftOut: [Int], _ owners: [Int?]) -> [Int?]? {
    var levels = [Int?](repeating: nil, count: orders.count)
    for order in leftOut { levels[order] = 0 }
    var (last, level, isFree) = (leftOut, 0, false)
    while !last.isEmpty, !isFree {
      level += 1
      var next: [Int] = []
      for order in last {
        var untried = reach[order].lowerBound
        while let place = firstLinked(to: order, from: untried) {
          steps += 1
          untried = place + 1
          guard let owner = owners[place] else {
            isFree = true
            continue
          }
          if levels[owner] == nil {
            levels[owner] = level
            next.append(owner)
          }
        }
      }
      last = next
    }
    // The shortest paths end before these orders.
    for order in last { levels[order] = nil }
    return isFree ? levels : nil
  }

  /// Pairs an order along a shortest path on which every other order exchanges its transaction.
  private mutating func addOrder(
    _ first: Int, _ levels: [Int?], _ untried: inout [Int], _ owners: inout [Int?]
  ) -> Bool {
    var path = [first]
    while let order = path.last, let level = levels[order] {
      guard let place = firstLinked(to: order, from: untried[order]) else {
        path.removeLast()
        continue
      }
      steps += 1
      untried[order] = place + 1
      guard let owner = owners[place] else {
        for order in path {
          let place = untried[order] - 1
          (partners[order], owners[place]) = (place, order)
        }
        return true
      }
      if levels[owner] == level + 1 { path.append(owner) }
    }
    return false
  }

  private func firstLinked(to order: Int, from start: Int) -> Int? {
    linked[order].first(in: start..<max(start, reach[order].upperBound))
  }
}
