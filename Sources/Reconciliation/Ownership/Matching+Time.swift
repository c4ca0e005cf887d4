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

  /// Pairs orders and purchases of one group. Memory grows with the links: four numbers for each, beside the link itself.
  private mutating func arrange(_ links: [Link]) {
    let orders = Set(links.map(\.index)).sorted()
    let dates = Dictionary(links.map { ($0.transaction.purchaseKey, $0.saleTime) }) { min($0, $1) }
    let sales = dates.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
    let orderPlaces = Dictionary(uniqueKeysWithValues: orders.enumerated().map { ($1, $0) })
    let salePlaces = Dictionary(uniqueKeysWithValues: sales.enumerated().map { ($1.key, $0) })
    let times = orders.map { claimants[$0].order.createdAt.microseconds }
    // Two IDs of a purchase may have two dates.
    var window = rules.matchWindow.microseconds
    var placed: [(order: Int, sale: Int, link: Int)] = []
    placed.reserveCapacity(links.count)
    for (place, link) in links.enumerated() {
      guard let order = orderPlaces[link.index], let sale = salePlaces[link.transaction.purchaseKey] else { continue }
      placed.append((order, sale, place))
      window = max(window, abs(sales[sale].value - times[order]))
    }
    placed.sort { $0 < $1 }
    func end(of order: Int, sale: Int) -> Int { placed.partitioningIndex { ($0.order, $0.sale) > (order, sale) } }
    let partners = CompleteTimelineAssignment.solve(
      orders: times, transactions: sales.map(\.value), window: window, hasGoods: orders.map { claimants[$0].hasGoods },
      linked: orders.indices.map { .list(placed[end(of: $0, sale: -1)..<end(of: $0, sale: sales.count)].map(\.sale)) }
    ).partners
    // Of two IDs of a purchase the last link counts.
    for (order, sale) in partners.enumerated() {
      if let sale { matched[orders[order]] = links[placed[end(of: order, sale: sale) - 1].link] }
    }
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

extension Link {
  /// The date of the purchase in microseconds. A list or a token links no purchase without a date.
  fileprivate var saleTime: Int64 { (transaction.saleDate ?? rank.createdAt).microseconds }
}
