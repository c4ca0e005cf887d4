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
  private let orders: [Int64]
  private let transactions: [Int64]
  /// By place in time, the rank among ids.
  private let orderRanks: [Int]
  private let transactionRanks: [Int]
  private let window: Int64
  /// Of each order, the places of the transactions within the window.
  private var reach: [Range<Int>] = []
  /// By place: the partner's place.
  private var partnerOfOrder: [Int?]
  private var partnerOfTransaction: [Int?]
  /// Potentials: no open arc has a negative reduced cost.
  private var orderPotentials: [Int64]
  private var transactionPotentials: [Int64]
  private var source: Int64 = 0
  private var sink: Int64 = 0
  /// How many pairs, relaxations and visits it took.
  private(set) var steps = 0

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
      // What this changes is done with below, but where it changes an order, the source or the sink as well.
      relaxTransactions()
      for (order, partner) in partnerOfOrder.enumerated() {
        guard let partner else { continue }
        let reached = transactionPotentials[partner] - abs(transactions[partner] - orders[order])
        if reached < orderPotentials[order] { (orderPotentials[order], isChanging) = (reached, true) }
        if orderPotentials[order] < source { (source, isChanging) = (orderPotentials[order], true) }
      }
      for (order, partner) in partnerOfOrder.enumerated() where partner == nil && source < orderPotentials[order] {
        (orderPotentials[order], isChanging) = (source, true)
      }
      for (transaction, partner) in partnerOfTransaction.enumerated()
      where partner == nil && transactionPotentials[transaction] < sink {
        (sink, isChanging) = (transactionPotentials[transaction], true)
      }
      for (transaction, partner) in partnerOfTransaction.enumerated()
      where partner != nil && sink < transactionPotentials[transaction] {
        (transactionPotentials[transaction], isChanging) = (sink, true)
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

  // MARK: - Ties

  /// Gives each order in turn the smallest transaction that some optimal assignment gives it, earlier orders kept.
  private mutating func settleTies(_ allows: ((Int, Int) -> Bool)?) {
    var transactionsBefore = TightPlaces(
      transactions.indices.map { (transactionPotentials[$0] + transactions[$0], transactions[$0]) })
    var transactionsAfter = TightPlaces(
      transactions.indices.map { (transactionPotentials[$0] - transactions[$0], transactions[$0]) })
    var search = ResidualSearch(self, allows)
    var isSettled = [Bool](repeating: false, count: transactions.count)
    let places = orders.indices.sorted { orderRanks[$0] < orderRanks[$1] }
    for order in places {
      let (time, potential) = (orders[order], orderPotentials[order])
      let current = partnerOfOrder[order].map { transactionRanks[$0] } ?? Int.max
      var smaller: [Int] = []
      func consider(_ place: Int) {
        guard !isSettled[place], transactionRanks[place] < current,
          allows?(orderRanks[order], transactionRanks[place]) ?? true
        else { return }
        smaller.append(place)
      }
      transactionsAfter.forEach(potential - time, from: time, to: time + window, consider)
      transactionsBefore.forEach(potential + time, from: time - window, to: time - 1, consider)
      steps += smaller.count + 1
      if !smaller.isEmpty {
        smaller.sort { transactionRanks[$0] < transactionRanks[$1] }
        search.run(to: order, self)
        steps += search.visits
        if let first = smaller.first(where: search.reaches) { turn(order, first, search.way(from: first)) }
        search.reset()
      }
      // Settled: nothing later may move it.
      search.close(order)
      if let partner = partnerOfOrder[order] { isSettled[partner] = true }
    }
  }

  /// Moves partners along a cycle: from the order to the transaction and on along the way back to the order.
  private mutating func turn(_ order: Int, _ first: Int, _ way: [ResidualSearch.Node]) {
    var gained: [(order: Int, transaction: Int)] = [(order, first)]
    var last: ResidualSearch.Node = .transaction(first)
    for node in way {
      switch (last, node) {
      case (.order(let from), .transaction(let to)): gained.append((from, to))
      case (.transaction(let from), .order(let to)):
        partnerOfOrder[to] = nil
        partnerOfTransaction[from] = nil
      case (.source, _), (.sink, _), (_, .source), (_, .sink), (.order, .order), (.transaction, .transaction): break
      }
      last = node
    }
    for pair in gained {
      partnerOfOrder[pair.order] = pair.transaction
      partnerOfTransaction[pair.transaction] = pair.order
    }
  }

  /// From which nodes open arcs of reduced cost zero lead to an order.
  fileprivate struct ResidualSearch {
    enum Node: Hashable { case order(Int), transaction(Int), source, sink }

    private let allows: ((Int, Int) -> Bool)?
    /// Orders by what makes a pair with a later, and with an earlier, transaction tight.
    private var before: TightPlaces
    private var after: TightPlaces
    private var isClosedOrder: [Bool]
    /// The next node on the way to the order.
    private var onward: [Node: Node] = [:]
    private(set) var visits = 0

    init(_ problem: TimelineAssignment, _ allows: ((Int, Int) -> Bool)?) {
      self.allows = allows
      let potentials = problem.orderPotentials
      before = TightPlaces(problem.orders.indices.map { (potentials[$0] - problem.orders[$0], problem.orders[$0]) })
      after = TightPlaces(problem.orders.indices.map { (potentials[$0] + problem.orders[$0], problem.orders[$0]) })
      isClosedOrder = Array(repeating: false, count: problem.orders.count)
    }

    mutating func close(_ order: Int) { isClosedOrder[order] = true }

    func reaches(_ transaction: Int) -> Bool { onward[.transaction(transaction)] != nil }

    /// The nodes after the transaction on its way to the order.
    func way(from transaction: Int) -> [Node] {
      var way: [Node] = []
      var node = Node.transaction(transaction)
      while let next = onward[node] {
        way.append(next)
        node = next
      }
      return way
    }

    mutating func reset() {
      onward.removeAll(keepingCapacity: true)
      before.restore()
      after.restore()
      visits = 0
    }

    /// Searches backwards from the order.
    mutating func run(to order: Int, _ problem: TimelineAssignment) {
      var queue: [Node] = [.order(order)]
      var head = 0
      before.remove(order)
      after.remove(order)
      while head < queue.count {
        let node = queue[head]
        head += 1
        visits += 1
        for from in predecessors(of: node, problem) where from != .order(order) && onward[from] == nil {
          onward[from] = node
          queue.append(from)
          if case .order(let place) = from {
            before.remove(place)
            after.remove(place)
          }
        }
      }
    }

    private mutating func predecessors(of node: Node, _ problem: TimelineAssignment) -> [Node] {
      switch node {
      case .order(let place):
        if let partner = problem.partnerOfOrder[place] { return [.transaction(partner)] }
        return problem.source == problem.orderPotentials[place] ? [.source] : []
      case .transaction(let place):
        let (time, potential) = (problem.transactions[place], problem.transactionPotentials[place])
        let partner = problem.partnerOfTransaction[place]
        var found: [Node] = partner != nil && problem.sink == potential ? [.sink] : []
        func consider(_ order: Int) {
          guard !isClosedOrder[order], order != partner,
            allows?(problem.orderRanks[order], problem.transactionRanks[place]) ?? true
          else { return }
          found.append(.order(order))
        }
        before.forEach(potential - time, from: time - problem.window, to: time, consider)
        after.forEach(potential + time, from: time + 1, to: time + problem.window, consider)
        return found
      case .source:
        return problem.orders.indices.filter {
          problem.partnerOfOrder[$0] != nil && !isClosedOrder[$0] && problem.orderPotentials[$0] == problem.source
        }.map { .order($0) }
      case .sink:
        return problem.transactions.indices.filter {
          problem.partnerOfTransaction[$0] == nil && problem.transactionPotentials[$0] == problem.sink
        }.map { .transaction($0) }
      }
    }
  }
}

/// Places by a key, and under one key by time. Places that were removed are passed over without being looked at.
private struct TightPlaces {
  private var places: [Int] = []
  private var times: [Int64] = []
  private var ranges: [Int64: Range<Int>] = [:]
  private var positions: [Int]
  /// The next position that was not removed, or one on the way to it.
  private var next: [Int]
  private var removed: [Int] = []

  init(_ entries: [(key: Int64, time: Int64)]) {
    places = entries.indices.sorted {
      (entries[$0].key, entries[$0].time, $0) < (entries[$1].key, entries[$1].time, $1)
    }
    times = places.map { entries[$0].time }
    positions = Array(repeating: 0, count: entries.count)
    next = Array(0...entries.count)
    var start = 0
    for (position, place) in places.enumerated() {
      positions[place] = position
      let key = entries[place].key
      if position + 1 == places.count || entries[places[position + 1]].key != key {
        ranges[key] = start..<(position + 1)
        start = position + 1
      }
    }
  }

  mutating func remove(_ place: Int) {
    next[positions[place]] = positions[place] + 1
    removed.append(positions[place])
  }

  mutating func restore() {
    for position in removed { next[position] = position }
    removed.removeAll(keepingCapacity: true)
  }

  /// Calls for each place under the key whose time lies between the two.
  mutating func forEach(_ key: Int64, from: Int64, to: Int64, _ body: (Int) -> Void) {
    guard let range = ranges[key] else { return }
    var (low, high) = (range.lowerBound, range.upperBound)
    while low < high {
      let middle = (low + high) / 2
      if times[middle] < from { low = middle + 1 } else { high = middle }
    }
    var position = firstLeft(from: low)
    while position < range.upperBound, times[position] <= to {
      body(places[position])
      position = firstLeft(from: position + 1)
    }
  }

  private mutating func firstLeft(from start: Int) -> Int {
    var end = start
    while next[end] != end { end = next[end] }
    var position = start
    while next[position] != end, position != end { (next[position], position) = (end, next[position]) }
    return end
  }
}
