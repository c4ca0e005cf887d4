/// Pairs in order of time for orders of one person and product with list and token links alone.
extension Matching {
  mutating func take(_ crowd: InterchangeableOrders) {
    self.crowd = crowd
    for sale in crowd.sales { claimed.insert(sale.transaction.key) }
    for (index, target) in crowd.stated {
      let claimant = claimants[index]
      _ = claims[claimant.order.orderId]?.take(named: target, .eligible, validity: claimant.proofValidity)
      claimed.formUnion(claimant.stated(as: target.key))
    }
    for sale in crowd.sales where sale.isOpen { provisional.insert(sale.transaction.purchaseKey) }
    for isFurther in [false, true] {
      for sale in crowd.sales where sale.isFurther == isFurther {
        if let owner = sale.owner { own(sale.transaction, by: owner) }
      }
    }
  }

  private struct Kind: Hashable {
    var person: Identifier
    var productId: Identifier
    var bundleId: String?
    var token: String?
  }

  /// Gives orders of a kind the most purchases, orders with goods first, then the nearest.
  mutating func pairByTime(in environment: AppleEnvironment) {
    var groups: [Kind: [Int]] = [:]
    for (index, own) in links.enumerated() where !own.isEmpty {
      guard own.allSatisfy({ $0.kind == .list || $0.kind == .token }), matched[index]?.rank.token != .other,
        claims[claimants[index].order.orderId]?.owned.isEmpty ?? false
      else { continue }
      let order = claimants[index].order
      let kind = Kind(
        person: rules.people.person(order.userId), productId: order.productId, bundleId: rules.bundleId(of: order),
        token: order.appAccountToken.map(AccountToken.spelling))
      groups[kind, default: []].append(index)
    }
    var orderByPurchase: [PurchaseKey: Int] = [:]
    for (index, link) in matched.enumerated() { if let link { orderByPurchase[link.transaction.purchaseKey] = index } }
    for members in groups.values.filter({ $0.count > 1 }).sorted(by: { $0[0] < $1[0] }) {
      let own = Set(members)
      let free = members.flatMap { links[$0] }.filter { link in
        let sale = link.transaction.purchaseKey
        return link.transaction.environment == environment && link.rank.token != .other && owners[sale] == nil
          && orderByPurchase[sale].map(own.contains) ?? true
      }
      for index in members {
        if let link = matched[index] { orderByPurchase[link.transaction.purchaseKey] = nil }
        matched[index] = nil
      }
      for component in Matching.groups(free) { arrange(component) }
      for index in members { if let link = matched[index] { orderByPurchase[link.transaction.purchaseKey] = index } }
    }
  }

  private mutating func arrange(_ links: [Link]) {
    let orders = Set(links.map(\.index)).sorted()
    let dates = Dictionary(links.map { ($0.transaction.purchaseKey, $0.transaction.saleDate) }) { first, _ in first }
    let sales = dates.keys.sorted { left, right in
      guard let one = dates[left].flatMap(\.self), let other = dates[right].flatMap(\.self), one != other else {
        return left < right
      }
      return one < other
    }
    let orderPlaces = Dictionary(uniqueKeysWithValues: orders.enumerated().map { ($1, $0) })
    let salePlaces = Dictionary(uniqueKeysWithValues: sales.enumerated().map { ($1, $0) })
    var byPair: [Int: Link] = [:]
    var pairs: [Pair] = []
    pairs.reserveCapacity(links.count)
    for link in links {
      guard let order = orderPlaces[link.index], let sale = salePlaces[link.transaction.purchaseKey] else { continue }
      pairs.append(Pair(order: order, sale: sale, transaction: link.transaction))
      byPair[order * sales.count + sale] = link
    }
    let partners =
      assignByTimeline(pairs, orders, saleCount: sales.count) ?? assignByFlow(pairs, orders, saleCount: sales.count)
    for (order, sale) in partners.enumerated() {
      if let sale { matched[orders[order]] = byPair[order * sales.count + sale] }
    }
  }

  struct Pair {
    var order: Int
    var sale: Int
    var transaction: TransactionRecord
  }

  func distance(_ pair: Pair, _ orders: [Int]) -> Int64 {
    let createdAt = claimants[orders[pair.order]].order.createdAt
    return ((pair.transaction.saleDate ?? createdAt) - createdAt).magnitude.microseconds
  }

  /// Orders and purchases are in the order of time. nil: the pairs are not on one line, are too few for a gain, or lack
  /// one of the best.
  func assignByTimeline(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?]? {
    guard pairs.count > 64 else { return nil }
    var dates = [Int64?](repeating: nil, count: saleCount)
    var allowed: Set<Int> = []
    for pair in pairs {
      guard let date = pair.transaction.saleDate?.microseconds, dates[pair.sale] ?? date == date else { return nil }
      dates[pair.sale] = date
    }
    let times = orders.map { claimants[$0].order.createdAt.microseconds }
    let hasGoods = orders.map { claimants[$0].hasGoods }
    let isComplete = pairs.count == times.count * saleCount
    if !isComplete { for pair in pairs { allowed.insert(pair.order * saleCount + pair.sale) } }
    let (sales, window) = (dates.compactMap(\.self), rules.matchWindow.microseconds)
    let onLine = CompleteTimelineAssignment.solve(
      orders: times, transactions: sales, window: window, hasGoods: hasGoods
    ).partners
    // The best assignment of all pairs is the best of the allowed ones if it has only allowed pairs.
    let isAllowed = onLine.enumerated().allSatisfy { order, sale in
      sale.map { isComplete || allowed.contains(order * saleCount + $0) } ?? true
    }
    return isAllowed ? onLine : nil
  }

  /// The penalty exceeds any distance, so that orders with goods come first.
  func assignByFlow(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?] {
    let isMixed = Set(orders.map { claimants[$0].hasGoods }).count > 1
    let penalty = isMixed ? (rules.matchWindow.microseconds + 1) * Int64(orders.count + 1) : 0
    let edges = Set(
      pairs.map { pair in
        Assignment.Edge(
          order: pair.order, transaction: pair.sale,
          distance: distance(pair, orders) + (claimants[orders[pair.order]].hasGoods ? 0 : penalty))
      })
    return Assignment.solve(orderCount: orders.count, transactionCount: saleCount, edges: Array(edges))
  }

  /// Groups links that share orders or purchases. The groups do not depend on each other.
  static func groups(_ candidates: [Link]) -> [[Link]] {
    var places: [PurchaseKey: Int] = [:]
    var nodes: [Int: Int] = [:]
    var parents: [Int] = []
    func root(_ start: Int) -> Int {
      var node = start
      while parents[node] != node {
        parents[node] = parents[parents[node]]
        node = parents[node]
      }
      return node
    }
    func added() -> Int {
      parents.append(parents.count)
      return parents.count - 1
    }
    for candidate in candidates {
      let order = nodes[candidate.index] ?? added()
      nodes[candidate.index] = order
      let sale = places[candidate.transaction.purchaseKey] ?? added()
      places[candidate.transaction.purchaseKey] = sale
      parents[root(order)] = root(sale)
    }
    var groups: [[Link]] = []
    var groupByRoot: [Int: Int] = [:]
    for candidate in candidates {
      let root = root(nodes[candidate.index] ?? 0)
      if let group = groupByRoot[root] {
        groups[group].append(candidate)
      } else {
        groupByRoot[root] = groups.count
        groups.append([candidate])
      }
    }
    return groups
  }
}
