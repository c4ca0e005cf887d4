/// One-to-one assignment of orders to transactions: the most pairs, then the smallest total distance in time, then the
/// smallest transaction ids for the smallest order ids.
///
/// A minimum-cost flow by successive shortest paths over the edges that exist; ties are resolved afterwards along
/// residual cycles of cost zero, so the answer is a function of the graph and not of how it was handed in.
struct Assignment {
  /// An order (by its rank among order ids) that could be paid by a transaction (by its rank among transaction ids).
  struct Edge: Hashable {
    var order: Int
    var transaction: Int
    /// Distance in time, microseconds, zero or more.
    var distance: Int64
  }

  private struct Arc {
    var to: Int
    var cost: Int64
    var isOpen: Bool
    /// The arc back.
    var twin: Int
  }

  private var arcs: [Arc] = []
  private var leaving: [[Int]]
  private let orderCount: Int
  private let transactionCount: Int
  private var source: Int { orderCount + transactionCount }
  private var sink: Int { source + 1 }

  /// For each order by rank, the rank of its transaction, or nil.
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

  /// Pairs one more order along the cheapest residual path, or says that no more can be paired.
  private mutating func augment() -> Bool {
    var distances = [Int64?](repeating: nil, count: leaving.count)
    distances[source] = 0
    let cameBy = relax(&distances, from: [source])
    guard distances[sink] != nil else { return false }
    var node = sink
    while node != source {
      let arc = cameBy[node]
      turn(arc)
      node = arcs[arcs[arc].twin].to
    }
    return true
  }

  /// Bellman-Ford with a queue: residual graphs of optimal flows have no negative cycles.
  private func relax(_ distances: inout [Int64?], from start: [Int]) -> [Int] {
    var cameBy = [Int](repeating: -1, count: leaving.count)
    var queue = start
    var isQueued = [Bool](repeating: false, count: leaving.count)
    for node in start { isQueued[node] = true }
    var head = 0
    while head < queue.count {
      let node = queue[head]
      head += 1
      isQueued[node] = false
      guard let soFar = distances[node] else { continue }
      for arc in leaving[node] where arcs[arc].isOpen {
        let (reached, next) = (soFar + arcs[arc].cost, arcs[arc].to)
        if let known = distances[next], known <= reached { continue }
        distances[next] = reached
        cameBy[next] = arc
        if !isQueued[next] {
          isQueued[next] = true
          queue.append(next)
        }
      }
    }
    return cameBy
  }

  /// Gives each order in turn the smallest transaction that some optimal assignment gives it, earlier orders kept.
  private mutating func settleTies() {
    var distances = [Int64?](repeating: 0, count: leaving.count)
    _ = relax(&distances, from: Array(leaving.indices))
    let potentials = distances.map { $0 ?? 0 }
    for order in 0..<orderCount {
      for arc in leaving[order] where arcs[arc].to != source {
        if !arcs[arc].isOpen { break }
        if reducedCost(arc, from: order, potentials) == 0, let way = zeroCostWay(from: arcs[arc].to, to: order, potentials) {
          turn(arc)
          for step in way { turn(step) }
          break
        }
      }
      // Settled: nothing later may move it.
      for arc in leaving[order] { freeze(arc) }
    }
  }

  private func reducedCost(_ arc: Int, from node: Int, _ potentials: [Int64]) -> Int64 {
    arcs[arc].cost + potentials[node] - potentials[arcs[arc].to]
  }

  /// Shuts the way into the order: no later cycle passes through it.
  private mutating func freeze(_ arc: Int) { arcs[arcs[arc].twin].isOpen = false }

  /// Open arcs of reduced cost zero that lead from one node to another.
  private func zeroCostWay(from start: Int, to end: Int, _ potentials: [Int64]) -> [Int]? {
    var cameBy = [Int?](repeating: nil, count: leaving.count)
    var seen = [Bool](repeating: false, count: leaving.count)
    seen[start] = true
    var queue = [start]
    var head = 0
    while head < queue.count {
      let node = queue[head]
      head += 1
      for arc in leaving[node] where arcs[arc].isOpen && !seen[arcs[arc].to] {
        guard reducedCost(arc, from: node, potentials) == 0 else { continue }
        seen[arcs[arc].to] = true
        cameBy[arcs[arc].to] = arc
        if arcs[arc].to == end {
          var way: [Int] = []
          var back = end
          while back != start, let step = cameBy[back] {
            way.append(step)
            back = arcs[arcs[step].twin].to
          }
          return way
        }
        queue.append(arcs[arc].to)
      }
    }
    return nil
  }
}
