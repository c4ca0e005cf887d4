/// The result of ``Assignment`` for orders and transactions on one line of time, both in the order of time.
/// One app receipt that was sent for every order of its user makes such a problem. An exchange of the transactions of
/// two pairs that cross costs nothing and gives the earlier order the earlier one, so that the best pairs never cross. A
/// table of the pairs within the window finds them, from the last order to the first.
/// The time grows with the pairs: 25 million for 5,000 orders and purchases within three days. Memory is at most
/// ``tableLimit`` bytes, beside a number for each order and transaction.
struct TimelineAssignment {
  private let orders: [Int64]
  private let transactions: [Int64]
  /// The costs of pairing orders, beside the distance: orders without goods come last.
  private let penalties: [Int64]
  /// One more pair outweighs any sum of distances and penalties.
  private let pairValue: Int128
  /// By order, the transactions within the window.
  private var reach: [Range<Int>] = []
  private var partners: [Int?]
  private var steps = 0

  /// The largest table, in bytes: one byte a pair. A larger problem is solved in halves, the second half twice.
  static let tableLimit = 1 << 26

  /// Returns, by order, its transaction or nil. Times are in microseconds, sorted.
  /// `hasGoods` goes by order; empty if all orders are alike. Of the assignments with the most pairs, one with the most
  /// such orders is best.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, hasGoods: [Bool] = [], tableLimit: Int = tableLimit
  ) -> (partners: [Int?], steps: Int) {
    var problem = TimelineAssignment(orders, transactions, window, hasGoods)
    let nothing = BestValues(values: Array(repeating: 0, count: transactions.count + 1), known: transactions.count)
    _ = problem.pair(orders.indices, before: nothing, begin: 0, tableLimit: tableLimit)
    return (problem.partners, problem.steps)
  }

  private init(_ orders: [Int64], _ transactions: [Int64], _ window: Int64, _ hasGoods: [Bool]) {
    (self.orders, self.transactions) = (orders, transactions)
    // More than the sum of all distances, if some orders have goods.
    let penalty = hasGoods.contains(true) ? (window + 1) * Int64(orders.count + 1) : 0
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
      let paired = diagonal + pairValue - Int128(abs(transactions[place] - time) + penalties[order])
      diagonal = without
      ofPairs = max(ofPairs, paired)
      best.values[place] = max(ofPairs, without)
      choose(ofPairs < without ? .skipOrder : paired == ofPairs ? .pair : .skipTransaction)
    }
    steps += reach.count
  }
}
