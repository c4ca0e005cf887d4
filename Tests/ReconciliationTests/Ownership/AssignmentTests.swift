import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// The assignment, compared with all possible assignments.
@Suite struct AssignmentTests {
  @Test("An assignment has the most pairs, then the smallest distance, then the smallest IDs", arguments: Effort.blocks)
  func optimal(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<800 {
      let graph = Graph.random(using: &random)
      #expect(graph.solved == graph.bruteForce, "\(graph)")
    }
  }

  @Test("The order of edges does not change the assignment")
  func permutations() {
    var random = SeededGenerator(seed: 42)
    for _ in 0..<400 {
      var graph = Graph.random(using: &random)
      let expected = graph.solved
      graph.edges.shuffle(using: &random)
      #expect(graph.solved == expected, "\(graph)")
    }
  }

  @Test("A second pair is worth more than the nearest pair")
  func chain() {
    // Order 0 is nearest to transaction 0, which is the only one that order 1 can have.
    let graph = Graph(orders: 2, transactions: 2, edges: [edge(0, 0, 1), edge(0, 1, 9), edge(1, 0, 5)])
    #expect(graph.solved == [1, 0])
  }

  @Test("Without edges, nothing is assigned")
  func empty() {
    #expect(Graph(orders: 0, transactions: 0, edges: []).solved.isEmpty)
    #expect(Graph(orders: 2, transactions: 1, edges: []).solved == [nil, nil])
  }

  @Test("A hundred purchases on one receipt are assigned in order")
  func square() {
    let edges = (0..<100).flatMap { order in (0..<100).map { edge(order, $0, Int64(abs(order - $0))) } }
    #expect(Graph(orders: 100, transactions: 100, edges: edges).solved == (0..<100).map { $0 })
  }

  @Test(
    "On a timeline: the most pairs, then the smallest distance, then the earlier order with the earlier purchase",
    arguments: Effort.blocks)
  func line(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for number in 0..<4_000 {
      // A longer timeline is compared with the general algorithm.
      let isLong = number.isMultiple(of: 8)
      let line = Line.random(using: &random, most: isLong ? 24 : 5)
      let expected = isLong ? line.graph.solved : line.graph.bruteForce
      #expect(line.solved.partners == expected, "\(number): \(line)")
      let withoutPairs = CompleteTimelineAssignment.solve(
        orders: line.orders, transactions: line.transactions, window: line.window)
      #expect(withoutPairs.partners == expected, "\(number): \(line)")
    }
  }

  @Test(
    "On timelines where several orders leave the window at once, the result equals the general algorithm's",
    arguments: [
      Line(orders: [7, 33, 34, 7], transactions: [25, 15, 3, 17], window: 10),
      Line(
        orders: [20, 37, 30, 32, 37, 3, 31, 1, 23, 0, 23, 17, 29, 10, 4, 33, 32],
        transactions: [30, 13, 22, 26, 17, 25, 37, 33, 7, 8, 22, 31, 11, 9, 38, 12, 31], window: 3),
      Line(
        orders: [18, 11, 15, 31, 31, 6, 18, 7, 39, 14, 15],
        transactions: [8, 34, 6, 31, 39, 34, 26, 11, 21, 23, 1, 13, 17, 12, 28, 4, 13, 2, 23, 30, 8, 16, 23, 23],
        window: 3),
    ])
  fileprivate func outOfReach(line: Line) {
    #expect(line.solved.partners == line.graph.solved)
    let solved = CompleteTimelineAssignment.solve(
      orders: line.orders, transactions: line.transactions, window: line.window)
    #expect(solved.partners == line.graph.solved)
  }

  @Test("Steps grow with the pairs within the window, and with nothing else", arguments: [50, 200, 800])
  func steps(count: Int) {
    // One purchase a day, each a minute after its order: an order has seven purchases within three days.
    let orders = (0..<count).map { Int64($0) * 86_400 }
    let line = Line(orders: orders, transactions: orders.map { $0 + 60 }, window: 3 * 86_400)
    let solved = line.solved
    #expect(solved.partners == orders.indices.map { $0 })
    #expect(solved.steps < 30 * count)
    // In one window, every pair is visited once.
    let burst = Line(orders: orders, transactions: orders.map { $0 + 60 }, window: .max / 4).solved
    #expect(burst.partners == solved.partners)
    #expect(burst.steps < count * count + 30 * count)
  }

  @Test("Of the most pairs, those with the most goods come first, then the smallest distance", arguments: Effort.blocks)
  func goods(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var leftOut = 0
    for number in 0..<1_200 {
      var line = Line.random(using: &random, most: number.isMultiple(of: 4) ? 24 : 5)
      let alike = line.graph.solved
      line.hasGoods = line.orders.map { _ in random.oneIn(2) }
      let expected = number.isMultiple(of: 4) ? line.graph.solved : line.graph.bruteForce
      if expected != alike { leftOut += 1 }
      #expect(line.solved.partners == expected, "\(number): \(line)")
      let solved = CompleteTimelineAssignment.solve(
        orders: line.orders, transactions: line.transactions, window: line.window, hasGoods: line.hasGoods)
      #expect(solved.partners == expected, "\(number): \(line)")
    }
    #expect(leftOut > 50)
  }

  @Test("A table in small pieces gives the same", arguments: Effort.blocks)
  func pieces(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for number in 0..<600 {
      let line = Line.random(using: &random, most: 24)
      for limit in [1, 30] {
        let solved = TimelineAssignment.solve(
          orders: line.orders, transactions: line.transactions, window: line.window, tableLimit: limit)
        #expect(solved.partners == line.solved.partners, "\(number), \(limit): \(line)")
      }
    }
  }

  @Test("Without a list of pairs, steps grow with n log n", arguments: [0, 3, -3])
  func stepsWithoutPairs(surplus: Int) {
    var random = SeededGenerator(seed: 7)
    for count in [300, 3_000] {
      func times(_ count: Int) -> [Int64] { (0..<count).map { _ in Int64(random.number(0...1_000_000_000)) }.sorted() }
      let (orders, transactions) = (times(count), times(count + surplus))
      let solved = CompleteTimelineAssignment.solve(orders: orders, transactions: transactions, window: .max / 4)
      #expect(solved.partners.compactMap(\.self).count == min(orders.count, transactions.count))
      #expect(solved.steps < 150 * count, "\(solved.steps / count) an order")
    }
  }

  @Test("With a large surplus on one side, steps grow with n log n", arguments: [(6_000, 3_000), (3_000, 6_000)])
  func stepsWithSurplus(orders: Int, transactions: Int) {
    var random = SeededGenerator(seed: 11)
    func times(_ count: Int) -> [Int64] { (0..<count).map { _ in Int64(random.number(0...1_000_000_000)) }.sorted() }
    let solved = CompleteTimelineAssignment.solve(
      orders: times(orders), transactions: times(transactions), window: .max / 4)
    #expect(solved.partners.compactMap(\.self).count == min(orders, transactions))
    #expect(solved.steps < 200 * (orders + transactions), "\(solved.steps)")
  }

  @Test("Orders at one instant, and orders before all purchases, are assigned")
  func degenerate() {
    let moment = Line(
      orders: Array(repeating: 7, count: 150), transactions: Array(repeating: 7, count: 140), window: 1
    ).solved
    #expect(moment.partners == (0..<150).map { $0 < 140 ? $0 : nil })
    // Every pair is visited once.
    #expect(moment.steps < 150 * 140 + 40 * 150, "\(moment.steps)")
    let apart = Line(orders: (0..<150).map { -$0 }, transactions: (0..<150).map { 1_000 + $0 }, window: 5_000).solved
    #expect(apart.partners == (0..<150).map { $0 })
  }
}

private func edge(_ order: Int, _ transaction: Int, _ distance: Int64) -> Assignment.Edge {
  Assignment.Edge(order: order, transaction: transaction, distance: distance)
}

/// A small assignment problem with many equal distances.
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

  /// The best assignment, found by trying all.
  var bruteForce: [Int?] {
    var best: (pairs: Int, distance: Int64, partners: [Int?])?
    func isBetter(_ pairs: Int, _ distance: Int64, _ partners: [Int?]) -> Bool {
      guard let best else { return true }
      if pairs != best.pairs { return pairs > best.pairs }
      if distance != best.distance { return distance < best.distance }
      // An order without a transaction sorts last.
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

/// The times of orders and transactions, sorted. Ranks of equal times are the order of their IDs.
private struct Line: CustomStringConvertible {
  var orders: [Int64]
  var transactions: [Int64]
  var window: Int64
  /// By order; empty if all orders are alike.
  var hasGoods: [Bool] = []

  init(orders: [Int64], transactions: [Int64], window: Int64) {
    (self.orders, self.transactions, self.window) = (orders.sorted(), transactions.sorted(), window)
  }

  static func random(using random: inout SeededGenerator, most: Int) -> Line {
    let span = random.pick(0, 2, 8, 40)
    func times() -> [Int64] { (0..<random.number(1...most)).map { _ in Int64(random.number(0...span)) } }
    return Line(orders: times(), transactions: times(), window: Int64(random.pick(0, 1, 3, 10, 100)))
  }

  var solved: (partners: [Int?], steps: Int) {
    TimelineAssignment.solve(orders: orders, transactions: transactions, window: window, hasGoods: hasGoods)
  }

  var graph: Graph {
    var edges: [Assignment.Edge] = []
    for (order, time) in orders.enumerated() {
      for (transaction, other) in transactions.enumerated() where abs(time - other) <= window {
        let penalty: Int64 = hasGoods.isEmpty || hasGoods[order] ? 0 : 1_000_000
        edges.append(edge(order, transaction, abs(time - other) + penalty))
      }
    }
    return Graph(orders: orders.count, transactions: transactions.count, edges: edges)
  }

  var description: String {
    "\(orders) \(transactions) within \(window), goods \(hasGoods)"
  }
}
