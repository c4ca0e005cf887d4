/// The one-to-one assignment of orders that name nothing.
extension Matching {
  mutating func take(_ crowd: Crowd) {
    self.crowd = crowd
    for sale in crowd.sales { claimed.insert(sale.transaction.key) }
    for sale in crowd.sales where sale.isOpen { provisional.insert(sale.transaction.saleKey) }
    for isFurther in [false, true] {
      for sale in crowd.sales where sale.isFurther == isFurther {
        if let owner = sale.owner { own(sale.transaction, by: owner) }
      }
    }
  }

  func unnamedCandidates() -> [Candidate] {
    var candidates: [Candidate] = []
    for (index, claimant) in claimants.enumerated() where claimant.order.transactionId == nil && !isAbsent[index] {
      for transaction in claimant.proven where claimant.claimsUnnamed(transaction, rules: rules) {
        candidates.append(Candidate(index: index, transaction: transaction))
      }
    }
    return candidates
  }

  mutating func matchUnnamed(in environment: AppleEnvironment) {
    let candidates = unnamed.filter {
      $0.transaction.environment == environment
        && (claims[claimants[$0.index].order.orderId]?.owned.isEmpty ?? false)
    }
    for candidate in candidates { claimed.insert(candidate.transaction.key) }
    // A sale that is taken for good competes no more; one that is taken for now may come free again.
    let open = candidates.filter {
      owners[$0.transaction.saleKey] == nil || provisional.contains($0.transaction.saleKey)
    }
    for members in Matching.groups(open) {
      let sales = Set(members.map(\.transaction.saleKey))
      if members.contains(where: { claimants[$0.index].isOpen }) || !provisional.isDisjoint(with: sales) {
        provisional.formUnion(sales)
      }
      var free = members.filter { owners[$0.transaction.saleKey] == nil }
      let tokens = free.map { ClaimRank.token(of: claimants[$0.index].order, on: $0.transaction) }
      let tokenSales = Set(zip(free, tokens).filter { $1 == .same }.map { $0.0.transaction.saleKey })
      let last = zip(free, tokens).filter { $1 == .other && !tokenSales.contains($0.transaction.saleKey) }.map(\.0)
      free = zip(free, tokens).filter { candidate, token in
        token == .same || token == .unknown && !tokenSales.contains(candidate.transaction.saleKey)
      }.map(\.0)
      assign(free)
      assign(
        last.filter {
          owners[$0.transaction.saleKey] == nil && claims[claimants[$0.index].order.orderId]?.owned.isEmpty ?? false
        })
    }
  }

  mutating func assign(_ candidates: [Candidate]) {
    for members in Matching.groups(candidates) {
      if members.count == 1 {
        own(members[0].transaction, by: members[0].index)
        continue
      }
      let orders = Set(members.map(\.index)).sorted { claimants[$0].order.orderId < claimants[$1].order.orderId }
      let keys = Set(members.map(\.transaction.saleKey)).sorted()
      let orderRanks = Dictionary(uniqueKeysWithValues: orders.enumerated().map { ($1, $0) })
      let keyRanks = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1, $0) })
      var pairs: [Pair] = []
      pairs.reserveCapacity(members.count)
      for member in members {
        guard let order = orderRanks[member.index], let sale = keyRanks[member.transaction.saleKey] else { continue }
        pairs.append(Pair(order: order, sale: sale, transaction: member.transaction))
      }
      let partners =
        assignOnTimeline(pairs, orders, saleCount: keys.count) ?? assignInGeneral(pairs, orders, saleCount: keys.count)
      // The same sale may be brought as itself and as its restore; the nearer one, then the smaller id, stands for it.
      var best: [Int: (distance: Int64, transaction: TransactionRecord)] = [:]
      for pair in pairs where partners[pair.order] == pair.sale {
        let distance = distance(pair, orders)
        if let known = best[pair.order], (known.distance, known.transaction.key) < (distance, pair.transaction.key) {
          continue
        }
        best[pair.order] = (distance, pair.transaction)
      }
      for (order, owned) in best { own(owned.transaction, by: orders[order]) }
    }
  }

  /// A claim within a group, by the ranks of its order and its sale among their ids.
  struct Pair {
    var order: Int
    var sale: Int
    var transaction: TransactionRecord
  }

  func distance(_ pair: Pair, _ orders: [Int]) -> Int64 {
    let createdAt = claimants[orders[pair.order]].order.createdAt
    return ((pair.transaction.saleDate ?? createdAt) - createdAt).magnitude.microseconds
  }

  /// Where the claims are those of orders and sales on one line; nil where they are not, or too few to be worth it.
  func assignOnTimeline(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?]? {
    guard pairs.count > 64 else { return nil }
    var dates = [Int64?](repeating: nil, count: saleCount)
    var allowed: Set<Int> = []
    for pair in pairs {
      guard let date = pair.transaction.saleDate?.microseconds, dates[pair.sale] ?? date == date else { return nil }
      dates[pair.sale] = date
    }
    let times = orders.map { claimants[$0].order.createdAt.microseconds }
    let isComplete = pairs.count == times.count * saleCount
    if !isComplete { for pair in pairs { allowed.insert(pair.order * saleCount + pair.sale) } }
    let (sales, window) = (dates.compactMap(\.self), rules.matchWindow.microseconds)
    let onLine = LineAssignment.solve(orders: times, transactions: sales, window: window).partners
    // The best of all pairs is the best of those that are allowed, when it is one of them.
    let isAllowed =
      isComplete
      || onLine.enumerated().allSatisfy { order, sale in
        sale.map { allowed.contains(order * saleCount + $0) } ?? true
      }
    if isAllowed { return onLine }
    return TimelineAssignment.solve(
      orders: times, transactions: sales, window: window,
      allows: { allowed.contains($0 * saleCount + $1) })?.partners
  }

  func assignInGeneral(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?] {
    let edges = Set(
      pairs.map { Assignment.Edge(order: $0.order, transaction: $0.sale, distance: distance($0, orders)) })
    return Assignment.solve(orderCount: orders.count, transactionCount: saleCount, edges: Array(edges))
  }

  /// Claims that share orders or sales, each group by itself: claims in one depend on none in another.
  static func groups(_ candidates: [Candidate]) -> [[Candidate]] {
    var places: [TransactionKey: Int] = [:]
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
      let sale = places[candidate.transaction.saleKey] ?? added()
      places[candidate.transaction.saleKey] = sale
      parents[root(order)] = root(sale)
    }
    var groups: [[Candidate]] = []
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
