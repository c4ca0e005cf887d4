/// The result of ``Assignment`` for orders and transactions on one line of time.
/// One app receipt that was sent for every order of its user makes such a problem. A best assignment in order of time
/// exists, and a table of the pairs within the window finds it. Ties are settled along residual cycles of cost zero.
/// Potentials are minima over a sliding window.
/// The time grows with the pairs: 25 million for 5,000 orders and purchases within three days. Memory is at most
/// ``tableLimit`` bytes, beside a number for each order and transaction.
struct TimelineAssignment {
  let orders: [Int64]
  let transactions: [Int64]
  /// Ranks among IDs, by place in time.
  let orderRanks: [Int]
  let transactionRanks: [Int]
  let window: Int64
  /// The costs of pairing orders, beside the distance: orders without goods come last.
  private(set) var penalties: [Int64]
  private var reach: [Range<Int>] = []
  var partnerOfOrder: [Int?]
  var partnerOfTransaction: [Int?]
  /// Potentials: no open arc has a negative reduced cost.
  private(set) var orderPotentials: [Int64]
  private(set) var transactionPotentials: [Int64]
  /// The sink's potential is 0, because a cheaper way to it would be a better assignment.
  private(set) var source: Int64 = 0
  var steps = 0

  /// The largest table, in bytes: one byte a pair. A larger problem is solved in halves, the first half twice.
  static let tableLimit = 1 << 26

  /// Returns, by rank of each order, the rank of its transaction or nil. Times are in microseconds.
  /// `hasGoods` goes by rank; empty if all orders are alike. Of the assignments with the most pairs, one with the most
  /// such orders is best. `allows` takes ranks; nil allows all pairs within the window.
  /// - Returns: nil if the best assignment contains a pair that is not allowed.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, hasGoods: [Bool] = [], tableLimit: Int = tableLimit,
    allows: ((Int, Int) -> Bool)? = nil
  ) -> (partners: [Int?], steps: Int)? {
    var problem = TimelineAssignment(orders, transactions, window, hasGoods)
    let nothing = BestValues(values: Array(repeating: 0, count: transactions.count + 1))
    _ = problem.pair(problem.orders.indices, after: nothing, end: nil, tableLimit: tableLimit)
    if let allows, !problem.isAllowed(allows) { return nil }
    problem.relax()
    problem.settleTies(allows)
    var partners = [Int?](repeating: nil, count: orders.count)
    for (place, partner) in problem.partnerOfOrder.enumerated() {
      partners[problem.orderRanks[place]] = partner.map { problem.transactionRanks[$0] }
    }
    return (partners, problem.steps)
  }

  private init(_ orderTimes: [Int64], _ transactionTimes: [Int64], _ window: Int64, _ hasGoods: [Bool]) {
    orderRanks = orderTimes.indices.sorted { (orderTimes[$0], $0) < (orderTimes[$1], $1) }
    transactionRanks = transactionTimes.indices.sorted { (transactionTimes[$0], $0) < (transactionTimes[$1], $1) }
    orders = orderRanks.map { orderTimes[$0] }
    transactions = transactionRanks.map { transactionTimes[$0] }
    self.window = window
    // More than the sum of all distances, if some orders have goods.
    let penalty = hasGoods.contains(true) ? (window + 1) * Int64(orderTimes.count + 1) : 0
    penalties = orderRanks.map { hasGoods.isEmpty || hasGoods[$0] ? 0 : penalty }
    partnerOfOrder = Array(repeating: nil, count: orders.count)
    partnerOfTransaction = Array(repeating: nil, count: transactions.count)
    orderPotentials = Array(repeating: 0, count: orders.count)
    transactionPotentials = Array(repeating: 0, count: transactions.count)
    var (low, high) = (0, 0)
    for time in orders {
      while low < transactions.count, transactions[low] < time - window { low += 1 }
      while high < transactions.count, transactions[high] <= time + window { high += 1 }
      reach.append(low..<max(low, high))
    }
  }

  // MARK: - Some best assignment

  private enum Choice: UInt8 { case skipOrder, skipTransaction, pair }

  /// The best value with the transactions before each place, for the orders so far.
  private struct BestValues {
    var values: [Int128]
    /// The places up to here have a value.
    var known = 0
  }

  /// Pairs a range of orders: the most pairs, then the smallest distance, by dynamic programming row by row.
  /// - Parameters:
  ///   - best: the values for the orders before the range.
  ///   - end: the place where the transactions of later orders begin; nil: the range is the last.
  /// - Returns: the place where the transactions of the range begin.
  private mutating func pair(_ range: Range<Int>, after best: BestValues, end: Int?, tableLimit: Int) -> Int {
    if range.count > 1, range.reduce(0, { $0 + reach[$1].count }) > tableLimit {
      let middle = range.lowerBound + range.count / 2
      var halfway = best
      for order in range.lowerBound..<middle { add(order, to: &halfway) { _ in } }
      let start = pair(middle..<range.upperBound, after: halfway, end: end, tableLimit: tableLimit)
      return pair(range.lowerBound..<middle, after: best, end: start, tableLimit: tableLimit)
    }
    var best = best
    var choices: [Choice] = []
    var rows: [Int] = []
    for order in range {
      rows.append(choices.count)
      add(order, to: &best) { choices.append($0) }
    }
    var end = end ?? best.known
    for (order, row) in zip(range, rows).reversed() {
      let reach = reach[order]
      var column = min(end, reach.upperBound)
      while column > reach.lowerBound {
        let choice = choices[row + column - 1 - reach.lowerBound]
        if choice == .skipTransaction {
          column -= 1
          continue
        }
        if choice == .pair {
          column -= 1
          partnerOfOrder[order] = column
          partnerOfTransaction[column] = order
        }
        break
      }
      // Earlier rows have decided the places before the order's range.
      end = reach.isEmpty ? end : column
    }
    return end
  }

  private mutating func add(_ order: Int, to best: inout BestValues, choose: (Choice) -> Void) {
    let (time, reach) = (orders[order], reach[order])
    if reach.isEmpty { return }
    // One more pair outweighs any sum of distances and penalties.
    let pairValue = Int128(window + 1) * Int128(orders.count + 1) * Int128(orders.count + 2)
    while best.known < reach.upperBound {
      best.values[best.known + 1] = best.values[best.known]
      best.known += 1
    }
    var diagonal = best.values[reach.lowerBound]
    for transaction in reach {
      let (above, left) = (best.values[transaction + 1], best.values[transaction])
      let paired = diagonal + pairValue - Int128(abs(transactions[transaction] - time) + penalties[order])
      diagonal = above
      var (value, choice) = (above, Choice.skipOrder)
      if left > value { (value, choice) = (left, .skipTransaction) }
      if paired > value { (value, choice) = (paired, .pair) }
      best.values[transaction + 1] = value
      choose(choice)
    }
    steps += reach.count
  }

  private func isAllowed(_ allows: (Int, Int) -> Bool) -> Bool {
    partnerOfOrder.enumerated().allSatisfy { order, partner in
      partner.map { allows(orderRanks[order], transactionRanks[$0]) } ?? true
    }
  }

  // MARK: - Potentials

  /// Shortest distances along open arcs from a root of cost zero (Bellman-Ford).
  private mutating func relax() {
    var isChanging: Bool
    repeat {
      isChanging = false
      // Its changes need another round only if an order or the source changes as well.
      relaxTransactions()
      for (order, partner) in partnerOfOrder.enumerated() {
        guard let partner else { continue }
        let reached = transactionPotentials[partner] - abs(transactions[partner] - orders[order])
        if reached < orderPotentials[order] { (orderPotentials[order], isChanging) = (reached, true) }
        let unpaired = orderPotentials[order] - penalties[order]
        if unpaired < source { (source, isChanging) = (unpaired, true) }
      }
      // The source was lowered and noted in this round.
      for (order, partner) in partnerOfOrder.enumerated() where partner == nil {
        orderPotentials[order] = min(orderPotentials[order], source + penalties[order])
      }
      steps += 3 * (orders.count + transactions.count)
    } while isChanging
  }

  private mutating func relaxTransactions() {
    // Earlier orders within the window: the least potential less the time.
    var queue: [Int] = []
    var (head, next) = (0, 0)
    for (place, time) in transactions.enumerated() {
      while next < orders.count, orders[next] <= time {
        let value = orderPotentials[next] - orders[next]
        while queue.count > head, let last = queue.last, orderPotentials[last] - orders[last] >= value {
          queue.removeLast()
        }
        queue.append(next)
        next += 1
      }
      while head < queue.count, orders[queue[head]] < time - window { head += 1 }
      guard head < queue.count else { continue }
      let reached = orderPotentials[queue[head]] - orders[queue[head]] + time
      transactionPotentials[place] = min(transactionPotentials[place], reached)
    }
    // Later orders: the least potential plus the time.
    (queue, head, next) = ([], 0, orders.count - 1)
    for place in transactions.indices.reversed() {
      let time = transactions[place]
      while next >= 0, orders[next] > time {
        let value = orderPotentials[next] + orders[next]
        while queue.count > head, let last = queue.last, orderPotentials[last] + orders[last] >= value {
          queue.removeLast()
        }
        queue.append(next)
        next -= 1
      }
      while head < queue.count, orders[queue[head]] > time + window { head += 1 }
      guard head < queue.count else { continue }
      let reached = orderPotentials[queue[head]] + orders[queue[head]] - time
      transactionPotentials[place] = min(transactionPotentials[place], reached)
    }
  }
}
