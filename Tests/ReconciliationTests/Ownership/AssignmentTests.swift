import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// The assignment, compared with all possible assignments.
@Suite struct AssignmentTests {
  @Test(
    "On a timeline: the most pairs, then the smallest distance, then the earlier order with the earlier purchase",
    arguments: Effort.blocks)
  func line(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for number in 0..<4_000 {
      let line = Line.random(using: &random, most: 5)
      #expect(line.solved.partners == line.graph.bruteForce(), "\(number): \(line)")
    }
  }

  @Test(
    "If links are missing, pairs cross only where more pairs than on any timeline are possible",
    arguments: Effort.blocks)
  func missingLinks(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var (crossing, inTime) = (0, 0)
    for number in 0..<4_000 {
      var line = Line.random(using: &random, most: 5)
      if random.oneIn(2) { line.hasGoods = line.orders.map { _ in random.oneIn(2) } }
      line.linked = line.orders.map { _ in
        let all = Array(line.transactions.indices)
        if random.oneIn(2) { return .range(0..<random.number(0...all.count)) }
        return .list(all.filter { _ in !random.oneIn(3) })
      }
      let most = line.graph.bruteForce(isCrossing: true).compactMap(\.self).count
      let best = line.graph.bruteForce(isCrossing: false)
      for solved in [line.solved.partners, line.solvedInParts] {
        if best.compactMap(\.self).count == most {
          inTime += 1
          #expect(solved == best, "\(number): \(line)")
        } else {
          crossing += 1
          let pairs = zip(solved.indices, solved).compactMap { order, sale in sale.map { (order, $0) } }
          #expect(Set(pairs.map(\.1)).count == most && pairs.count == most, "\(number): \(line)")
          #expect(pairs.allSatisfy { order, sale in line.graph.hasEdge(order, sale) }, "\(number): \(line)")
          // An order that has a transaction on the best timeline keeps one.
          #expect(zip(best, solved).allSatisfy { $0 == nil || $1 != nil }, "\(number): \(line)")
        }
      }
    }
    #expect(crossing > 20 && inTime > 1_000, "\(crossing), \(inTime)")
  }

  @Test(
    "On timelines where several orders leave the window at once, the result equals the table's",
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
    #expect(line.solvedInParts == line.solved.partners)
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

  @Test("Without a list of pairs, the result equals the table's", arguments: Effort.blocks)
  func withoutPairs(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for number in 0..<1_200 {
      let line = Line.random(using: &random, most: number.isMultiple(of: 4) ? 24 : 5)
      #expect(line.solvedInParts == line.solved.partners, "\(number): \(line)")
    }
  }

  @Test("Of the most pairs, those with the most goods come first, then the smallest distance", arguments: Effort.blocks)
  func goods(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var leftOut = 0
    for number in 0..<1_200 {
      var line = Line.random(using: &random, most: number.isMultiple(of: 4) ? 24 : 5)
      let alike = line.solved.partners
      line.hasGoods = line.orders.map { _ in random.oneIn(2) }
      let expected = line.solved.partners
      if expected != alike { leftOut += 1 }
      if !number.isMultiple(of: 4) { #expect(expected == line.graph.bruteForce(), "\(number): \(line)") }
      #expect(line.solvedInParts == expected, "\(number): \(line)")
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

  @Test("Where receipts list a part, steps grow with the pairs, and as many orders as possible are paired")
  func stepsWithMissingLinks() {
    let count = 1_000
    var line = Line(
      orders: (0..<count).map { Int64($0) * 60 }, transactions: (0..<count).map { Int64($0) * 60 + 5 },
      window: 9_999_999)
    // Each tenth receipt is an old copy, which lists the first few purchases alone.
    line.linked = (0..<count).map { .range(0..<($0.isMultiple(of: 10) ? $0 / 20 : $0 + 1)) }
    let solved = line.solved
    // No copy lists a purchase from the fiftieth on. The 855 other orders from there on and 50 purchases before it pair.
    #expect(solved.partners.compactMap(\.self).count == 905)
    #expect(solved.steps < 3 * count * count, "\(solved.steps)")
  }

  @Test("Orders that only crossing pairs add cost few searches of all pairs")
  func stepsOfCrossingPairs() {
    let (width, layers) = (30, 9)
    let count = width * (layers + 1)
    var line = Line(
      orders: (0..<count).map { Int64($0) * 60 }, transactions: (0..<count).map { Int64($0) * 60 + 5 },
      window: 9_999_999)
    // The last orders list the first purchases alone. Each pair of them moves an order of every layer to the next one.
    line.linked = (0..<count).map { order in
      let layer = order / width
      return .list(layer == layers ? Array(0..<width) : Array(layer * width..<(layer + 2) * width))
    }
    let solved = line.solved
    #expect(Set(solved.partners.compactMap(\.self)).count == count)
    #expect(solved.steps < 2 * count * count, "\(solved.steps)")
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

/// A small assignment problem with many equal distances.
private struct Graph {
  struct Edge {
    var order: Int
    var transaction: Int
    var distance: Int64
  }

  var orders: Int
  var edges: [Edge]

  func hasEdge(_ order: Int, _ transaction: Int) -> Bool {
    edges.contains { $0.order == order && $0.transaction == transaction }
  }

  /// The best assignment, found by trying all.
  func bruteForce(isCrossing: Bool = true) -> [Int?] {
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
        if !isCrossing, taken.contains(where: { $0 > edge.transaction }) { continue }
        extend(
          partners + [edge.transaction], taken: taken.union([edge.transaction]), distance: distance + edge.distance)
      }
    }
    extend([], taken: [], distance: 0)
    return best?.partners ?? []
  }
}

/// The times of orders and transactions, sorted. Ranks of equal times are the order of their IDs.
private struct Line: CustomStringConvertible {
  var orders: [Int64]
  var transactions: [Int64]
  var window: Int64
  /// By order; empty if all orders are alike.
  var hasGoods: [Bool] = []
  /// By order; empty if all transactions within the window are linked.
  var linked: [LinkedPlaces] = []

  init(orders: [Int64], transactions: [Int64], window: Int64) {
    (self.orders, self.transactions, self.window) = (orders.sorted(), transactions.sorted(), window)
  }

  static func random(using random: inout SeededGenerator, most: Int) -> Line {
    let span = random.pick(0, 2, 8, 40)
    func times() -> [Int64] { (0..<random.number(1...most)).map { _ in Int64(random.number(0...span)) } }
    return Line(orders: times(), transactions: times(), window: Int64(random.pick(0, 1, 3, 10, 100)))
  }

  var solved: (partners: [Int?], steps: Int) {
    TimelineAssignment.solve(
      orders: orders, transactions: transactions, window: window, hasGoods: hasGoods, linked: linked)
  }

  /// Solved without a table where possible.
  var solvedInParts: [Int?] {
    CompleteTimelineAssignment.solve(
      orders: orders, transactions: transactions, window: window, hasGoods: hasGoods, linked: linked
    ).partners
  }

  var graph: Graph {
    var edges: [Graph.Edge] = []
    for (order, time) in orders.enumerated() {
      for (transaction, other) in transactions.enumerated() where abs(time - other) <= window {
        guard linked.isEmpty || linked[order].contains(transaction) else { continue }
        let penalty: Int64 = hasGoods.isEmpty || hasGoods[order] ? 0 : 1_000_000
        edges.append(Graph.Edge(order: order, transaction: transaction, distance: abs(time - other) + penalty))
      }
    }
    return Graph(orders: orders.count, edges: edges)
  }

  var description: String {
    "\(orders) \(transactions) within \(window), goods \(hasGoods), linked \(linked)"
  }
}
