/// The same assignment as ``Assignment``, for orders and transactions of which every pair within the window could be one.
///
/// One app receipt that lists what its user bought, sent for each of their orders, makes such a problem, however many there
/// are. The cost of a pair is its distance on one line, so some best assignment keeps the order in time, and a table of the
/// pairs within the window finds it. Which of equally good ones it has to be is settled along residual cycles of cost zero,
/// as in ``Assignment``; potentials come from the line as well, by minima over a sliding window.
///
/// Time and memory are in proportion to the pairs within the window, one byte each: for 5,000 orders and purchases within
/// three days 25 million.
struct TimelineAssignment {
  /// Times of the orders, earliest first, and of the transactions.
  let orders: [Int64]
  let transactions: [Int64]
  /// By place in time, the rank among ids.
  let orderRanks: [Int]
  let transactionRanks: [Int]
  let window: Int64
  /// Of each order, the places of the transactions within the window.
  private var reach: [Range<Int>] = []
  /// By place: the partner's place.
  var partnerOfOrder: [Int?]
  var partnerOfTransaction: [Int?]
  /// Potentials: no open arc has a negative reduced cost.
  private(set) var orderPotentials: [Int64]
  private(set) var transactionPotentials: [Int64]
  /// The sink's is always 0: a way to it at less than no cost would make more pairs, or as many that are nearer.
  private(set) var source: Int64 = 0
  /// How many pairs, relaxations and visits it took.
  var steps = 0

  /// For each order by rank, the rank of its transaction, or nil.
  ///
  /// - Parameters:
  ///   - orders: times in microseconds, by rank among order ids.
  ///   - transactions: times in microseconds, by rank among transaction ids.
  ///   - window: the longest distance of a pair.
  ///   - allows: whether an order (by rank) could have a transaction (by rank) within the window; nil: each could.
  /// - Returns: nil when a pair that is not allowed stands in the way: what is best here is not best there.
  static func solve(
    orders: [Int64], transactions: [Int64], window: Int64, allows: ((Int, Int) -> Bool)? = nil
  ) -> (partners: [Int?], steps: Int)? {
    var problem = TimelineAssignment(orders, transactions, window)
    problem.pair()
    if let allows, !problem.isAllowed(allows) { return nil }
    problem.relax()
    problem.settleTies(allows)
    var partners = [Int?](repeating: nil, count: orders.count)
    for (place, partner) in problem.partnerOfOrder.enumerated() {
      partners[problem.orderRanks[place]] = partner.map { problem.transactionRanks[$0] }
    }
    return (partners, problem.steps)
  }

  private init(_ orderTimes: [Int64], _ transactionTimes: [Int64], _ window: Int64) {
    orderRanks = orderTimes.indices.sorted { (orderTimes[$0], $0) < (orderTimes[$1], $1) }
    transactionRanks = transactionTimes.indices.sorted { (transactionTimes[$0], $0) < (transactionTimes[$1], $1) }
    orders = orderRanks.map { orderTimes[$0] }
    transactions = transactionRanks.map { transactionTimes[$0] }
    self.window = window
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

  /// The most pairs, then the smallest distance: the best of the first orders and the first transactions, row by row.
  private mutating func pair() {
    // A pair is worth more than any sum of distances.
    let pairWorth = Int128(window + 1) * Int128(orders.count + 1)
    var best = [Int128](repeating: 0, count: transactions.count + 1)
    var known = 0
    var choices: [Choice] = []
    var rows: [Int] = []
    for (order, time) in orders.enumerated() {
      let range = reach[order]
      rows.append(choices.count)
      if range.isEmpty { continue }
      while known < range.upperBound {
        best[known + 1] = best[known]
        known += 1
      }
      var diagonal = best[range.lowerBound]
      for transaction in range {
        let (above, left) = (best[transaction + 1], best[transaction])
        let paired = diagonal + pairWorth - Int128(abs(transactions[transaction] - time))
        diagonal = above
        var (value, choice) = (above, Choice.skipOrder)
        if left > value { (value, choice) = (left, .skipTransaction) }
        if paired > value { (value, choice) = (paired, .pair) }
        best[transaction + 1] = value
        choices.append(choice)
      }
    }
    steps += choices.count
    var end = known
    for order in orders.indices.reversed() {
      let range = reach[order]
      var column = min(end, range.upperBound)
      while column > range.lowerBound {
        let choice = choices[rows[order] + column - 1 - range.lowerBound]
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
      // What lies before the order's reach was decided by earlier rows.
      end = range.isEmpty ? end : column
    }
  }

  private func isAllowed(_ allows: (Int, Int) -> Bool) -> Bool {
    partnerOfOrder.enumerated().allSatisfy { order, partner in
      partner.map { allows(orderRanks[order], transactionRanks[$0]) } ?? true
    }
  }

  // MARK: - Potentials

  /// Shortest distances along open arcs from a root that reaches every node at no cost (Bellman-Ford).
  private mutating func relax() {
    var isChanging: Bool
    repeat {
      isChanging = false
      // What this changes is done with below, but where it changes an order or the source as well.
      relaxTransactions()
      for (order, partner) in partnerOfOrder.enumerated() {
        guard let partner else { continue }
        let reached = transactionPotentials[partner] - abs(transactions[partner] - orders[order])
        if reached < orderPotentials[order] { (orderPotentials[order], isChanging) = (reached, true) }
        if orderPotentials[order] < source { (source, isChanging) = (orderPotentials[order], true) }
      }
      // What the source passes on has been lowered in this round and noted.
      for (order, partner) in partnerOfOrder.enumerated() where partner == nil {
        orderPotentials[order] = min(orderPotentials[order], source)
      }
      steps += 3 * (orders.count + transactions.count)
    } while isChanging
  }

  /// Takes the shortest way from any order within the window to each transaction.
  private mutating func relaxTransactions() {
    // From earlier orders: the least potential less the time, of those in the window.
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
    // From later ones: the least potential plus the time.
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
