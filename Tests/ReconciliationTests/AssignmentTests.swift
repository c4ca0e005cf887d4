import Testing

@testable import Reconciliation

/// The assignment against every assignment there is.
@Suite struct AssignmentTests {
  @Test("The most pairs, then the smallest distance, then the smallest ids", arguments: Effort.blocks)
  func optimal(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<400 {
      let graph = Graph.random(using: &random)
      #expect(graph.solved == graph.bruteForce, "\(graph)")
    }
  }

  @Test("The order in which edges come plays no part")
  func permutations() {
    var random = SeededGenerator(seed: 42)
    for _ in 0..<400 {
      var graph = Graph.random(using: &random)
      let expected = graph.solved
      graph.edges.shuffle(using: &random)
      #expect(graph.solved == expected, "\(graph)")
    }
  }

  @Test("A chain that greed gets wrong")
  func chain() {
    // Order 0 is nearest to transaction 0, which is all that order 1 can have.
    let graph = Graph(orders: 2, transactions: 2, edges: [edge(0, 0, 1), edge(0, 1, 9), edge(1, 0, 5)])
    #expect(graph.solved == [1, 0])
  }

  @Test("Nothing to assign")
  func empty() {
    #expect(Graph(orders: 0, transactions: 0, edges: []).solved.isEmpty)
    #expect(Graph(orders: 2, transactions: 1, edges: []).solved == [nil, nil])
  }

  @Test("A hundred purchases of one product on one receipt")
  func square() {
    let edges = (0..<100).flatMap { order in (0..<100).map { edge(order, $0, Int64(abs(order - $0))) } }
    #expect(Graph(orders: 100, transactions: 100, edges: edges).solved == (0..<100).map { $0 })
  }
}

private func edge(_ order: Int, _ transaction: Int, _ distance: Int64) -> Assignment.Edge {
  Assignment.Edge(order: order, transaction: transaction, distance: distance)
}

/// A small problem with distances so close together that most have ties.
private struct Graph: CustomStringConvertible {
  var orders: Int
  var transactions: Int
  var edges: [Assignment.Edge]

  static func random(using random: inout SeededGenerator) -> Graph {
    let (orders, transactions) = (random.number(1...5), random.number(1...5))
    let density = random.number(1...4)
    let furthest = random.pick(0, 1, 3, 100)
    var edges: [Assignment.Edge] = []
    for order in 0..<orders {
      for transaction in 0..<transactions where random.number(1...4) <= density {
        edges.append(edge(order, transaction, Int64(random.number(0...furthest))))
      }
    }
    return Graph(orders: orders, transactions: transactions, edges: edges)
  }

  var solved: [Int?] { Assignment.solve(orderCount: orders, transactionCount: transactions, edges: edges) }

  /// The best of all assignments, tried one by one.
  var bruteForce: [Int?] {
    var best: (pairs: Int, distance: Int64, partners: [Int?])?
    func isBetter(_ pairs: Int, _ distance: Int64, _ partners: [Int?]) -> Bool {
      guard let best else { return true }
      if pairs != best.pairs { return pairs > best.pairs }
      if distance != best.distance { return distance < best.distance }
      // Having none sorts behind every transaction.
      return partners.map { $0 ?? .max }.lexicographicallyPrecedes(best.partners.map { $0 ?? .max })
    }
    func extend(_ partners: [Int?], taken: Set<Int>, distance: Int64) {
      if partners.count == orders {
        if isBetter(taken.count, distance, partners) { best = (taken.count, distance, partners) }
        return
      }
      extend(partners + [nil], taken: taken, distance: distance)
      for edge in edges where edge.order == partners.count && !taken.contains(edge.transaction) {
        extend(
          partners + [edge.transaction], taken: taken.union([edge.transaction]), distance: distance + edge.distance)
      }
    }
    extend([], taken: [], distance: 0)
    return best?.partners ?? []
  }

  var description: String {
    "\(orders)x\(transactions) " + edges.map { "\($0.order)-\($0.transaction):\($0.distance)" }.joined(separator: " ")
  }
}
