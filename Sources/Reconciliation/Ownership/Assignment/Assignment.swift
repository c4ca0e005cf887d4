import HeapModule

/// A one-to-one assignment: the most pairs, then the smallest total distance in time.
/// Ties give the smallest transaction IDs to the smallest order IDs. A minimum-cost flow by successive shortest paths;
/// ties are settled afterwards along residual cycles of cost zero, so that the sequence of the input has no effect.
struct Assignment {
  /// A possible pair, by ranks among IDs. The distance is in microseconds, zero or more.
  struct Edge: Hashable {
    var order: Int
    var transaction: Int
    var distance: Int64
  }

  private struct Arc {
    var to: Int
    var cost: Int64
    var isOpen: Bool
    var twin: Int
  }

  private var arcs: [Arc] = []
  private var leaving: [[Int]]
  /// By node: no open arc has a negative reduced cost.
  private var potentials: [Int64]
  private let orderCount: Int
  private let transactionCount: Int
  private var source: Int { orderCount + transactionCount }
  private var sink: Int { source + 1 }

  /// Returns, by rank of each order, the rank of its transaction or nil.
  static func solve(orderCount: Int, transactionCount: Int, edges: [Edge]) -> [Int?] {
    var problem = Assignment(orderCount: orderCount, transactionCount: transactionCount, edges: edges)
    while problem.augment() {}
    problem.settleTies()
    return (0..<orderCount).map { problem.partner(of: $0) }
  }

  private init(orderCount: Int, transactionCount: Int, edges: [Edge]) {
    self.orderCount = orderCount
    self.transactionCount = transactionCount
    leaving = Array(repeating: [], count: orderCount + transactionCount + 2)
    potentials = Array(repeating: 0, count: leaving.count)
    for order in 0..<orderCount { connect(source, order, cost: 0) }
    for transaction in 0..<transactionCount { connect(orderCount + transaction, sink, cost: 0) }
    for edge in edges.sorted(by: { ($0.order, $0.transaction) < ($1.order, $1.transaction) }) {
      connect(edge.order, orderCount + edge.transaction, cost: edge.distance)
    }
  }

  private mutating func connect(_ from: Int, _ to: Int, cost: Int64) {
    leaving[from].append(arcs.count)
    arcs.append(Arc(to: to, cost: cost, isOpen: true, twin: arcs.count + 1))
    leaving[to].append(arcs.count)
    arcs.append(Arc(to: from, cost: -cost, isOpen: false, twin: arcs.count - 1))
  }

  private mutating func turn(_ arc: Int) {
    arcs[arc].isOpen = false
    arcs[arcs[arc].twin].isOpen = true
  }

  private func partner(of order: Int) -> Int? {
    for arc in leaving[order] where arcs[arc].to < source && arcs[arc].to >= orderCount && !arcs[arc].isOpen {
      return arcs[arc].to - orderCount
    }
    return nil
  }

  /// Pairs one more order along the cheapest residual path: Dijkstra over reduced costs (Johnson 1977).
  private mutating func augment() -> Bool {
    var distances = [Int64](repeating: .max, count: leaving.count)
    var incomingArc = [Int](repeating: -1, count: leaving.count)
    distances[source] = 0
    var queue: Heap = [ReachedNode(distance: 0, node: source)]
    while let reached = queue.popMin(), reached.node != sink {
      let (node, distance) = (reached.node, reached.distance)
      if distance > distances[node] { continue }
      for arc in leaving[node] where arcs[arc].isOpen {
        let (reached, next) = (distance + reducedCost(arc, from: node), arcs[arc].to)
        guard reached < distances[next] else { continue }
        distances[next] = reached
        incomingArc[next] = arc
        queue.insert(ReachedNode(distance: reached, node: next))
      }
    }
    let shortest = distances[sink]
    guard shortest < .max else { return false }
    for node in potentials.indices { potentials[node] += min(distances[node], shortest) }
    var node = sink
    while node != source {
      let arc = incomingArc[node]
      turn(arc)
      node = arcs[arcs[arc].twin].to
    }
    return true
  }

  /// Gives each order in turn the smallest transaction of an optimal assignment; earlier orders stay.
  private mutating func settleTies() {
    for order in 0..<orderCount {
      let toTransactions = leaving[order].filter { arcs[$0].to != source }
      let smaller = toTransactions.prefix { arcs[$0].isOpen }.filter { reducedCost($0, from: order) == 0 }
      if !smaller.isEmpty {
        let onward = zeroCostPaths(to: order)
        if let first = smaller.first(where: { onward[arcs[$0].to] != nil }) { rotateCycle(first, onward, to: order) }
      }
      for arc in leaving[order] { freeze(arc) }
    }
  }

  private mutating func rotateCycle(_ first: Int, _ onward: [Int?], to order: Int) {
    turn(first)
    var node = arcs[first].to
    while node != order, let arc = onward[node] {
      turn(arc)
      node = arcs[arc].to
    }
  }

  private func reducedCost(_ arc: Int, from node: Int) -> Int64 {
    arcs[arc].cost + potentials[node] - potentials[arcs[arc].to]
  }

  /// Closes the arc, so that no later cycle passes through the order.
  private mutating func freeze(_ arc: Int) { arcs[arcs[arc].twin].isOpen = false }

  private func zeroCostPaths(to order: Int) -> [Int?] {
    var onward = [Int?](repeating: nil, count: leaving.count)
    var queue = [order]
    var head = 0
    while head < queue.count {
      let node = queue[head]
      head += 1
      for arc in leaving[node] {
        let (from, incoming) = (arcs[arc].to, arcs[arc].twin)
        guard from != order, onward[from] == nil, arcs[incoming].isOpen, reducedCost(incoming, from: from) == 0
        else { continue }
        onward[from] = incoming
        queue.append(from)
      }
    }
    return onward
  }
}

private struct ReachedNode: Comparable {
  var distance: Int64
  var node: Int

  static func < (left: ReachedNode, right: ReachedNode) -> Bool {
    (left.distance, left.node) < (right.distance, right.node)
  }
}
