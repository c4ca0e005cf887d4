/// Ties between equally good assignments, settled along residual cycles of cost zero.
extension TimelineAssignment {
  mutating func settleTies(_ allows: ((Int, Int) -> Bool)?) {
    var transactionsBefore = TightArcIndex(
      transactions.indices.map { (transactionPotentials[$0] + transactions[$0], transactions[$0]) })
    var transactionsAfter = TightArcIndex(
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
      search.close(order)
      if let partner = partnerOfOrder[order] { isSettled[partner] = true }
    }
  }

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

  /// A search for nodes from which open arcs of reduced cost zero lead to an order.
  fileprivate struct ResidualSearch {
    enum Node: Hashable { case order(Int), transaction(Int), source, sink }

    private let allows: ((Int, Int) -> Bool)?
    /// Orders by the key that makes a pair with a later, and with an earlier, transaction tight.
    private var before: TightArcIndex
    private var after: TightArcIndex
    private var isClosedOrder: [Bool]
    private var onward: [Node: Node] = [:]
    private(set) var visits = 0

    init(_ problem: TimelineAssignment, _ allows: ((Int, Int) -> Bool)?) {
      self.allows = allows
      let potentials = problem.orderPotentials
      before = TightArcIndex(problem.orders.indices.map { (potentials[$0] - problem.orders[$0], problem.orders[$0]) })
      after = TightArcIndex(problem.orders.indices.map { (potentials[$0] + problem.orders[$0], problem.orders[$0]) })
      isClosedOrder = Array(repeating: false, count: problem.orders.count)
    }

    mutating func close(_ order: Int) { isClosedOrder[order] = true }

    func reaches(_ transaction: Int) -> Bool { onward[.transaction(transaction)] != nil }

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
        return problem.source + problem.penalties[place] == problem.orderPotentials[place] ? [.source] : []
      case .transaction(let place):
        let (time, potential) = (problem.transactions[place], problem.transactionPotentials[place])
        let partner = problem.partnerOfTransaction[place]
        var found: [Node] = partner != nil && potential == 0 ? [.sink] : []
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
          problem.partnerOfOrder[$0] != nil && !isClosedOrder[$0]
            && problem.orderPotentials[$0] - problem.penalties[$0] == problem.source
        }.map { .order($0) }
      case .sink:
        return problem.transactions.indices.filter {
          problem.partnerOfTransaction[$0] == nil && problem.transactionPotentials[$0] == 0
        }.map { .transaction($0) }
      }
    }
  }
}
