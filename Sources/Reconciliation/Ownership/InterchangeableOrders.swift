/// The matching of many orders of one product whose receipts list the same purchases.
/// One user's app receipts would need millions of pairs. The orders state no ID, and each of them claims a range of the
/// purchases in time. The result is that of ``Matching``.
struct InterchangeableOrders {
  struct Sale {
    var transaction: TransactionRecord
    var owner: Int?
    var isFurther = false
    var isOpen = false
  }

  private(set) var sales: [Sale] = []
  /// For orders without a purchase, the first few lost ones as indices in `sales`.
  private(set) var losses: [(index: Int, sales: [Int])] = []
  private(set) var steps = 0

  /// For fewer orders, pairs cost no more.
  private static let least = 32

  /// - Returns: nil for few orders, and for orders that differ in more than creation date and list.
  init?(_ claimants: [Claimant], _ isAbsent: [Bool], lostClaimLimit: Int, rules: Rules) {
    let members = claimants.indices.filter { !isAbsent[$0] && !claimants[$0].proven.isEmpty }
    guard members.count >= InterchangeableOrders.least else { return nil }
    let first = claimants[members[0]]
    guard claimants.indices.allSatisfy({ isAbsent[$0] || claimants[$0].order.transactionId == nil }),
      members.allSatisfy({ first.hasEqualClaims(claimants[$0], rules: rules) }),
      let purchases = Purchases(listedFor: members.map { claimants[$0] }, rules: rules),
      match(claimants, members, purchases, lostClaimLimit, rules)
    else { return nil }
  }

  /// - Returns: false if the best assignment gives an order a purchase that its list lacks.
  private mutating func match(
    _ claimants: [Claimant], _ members: [Int], _ purchases: Purchases, _ lostClaimLimit: Int, _ rules: Rules
  ) -> Bool {
    let (claimable, inTime) = (purchases.claimable, purchases.inTime)
    let window = rules.matchWindow.microseconds
    let solved = CompleteTimelineAssignment.solve(
      orders: members.map { claimants[$0].order.createdAt.microseconds },
      transactions: inTime.map { claimable[$0].time }, window: window)
    steps = solved.steps + members.count + claimable.count
    var found = claimable.map { Sale(transaction: $0.transaction) }
    var hasOwn = [Bool](repeating: false, count: claimants.count)
    for (order, place) in solved.partners.enumerated() {
      guard let place else { continue }
      let (sale, index) = (inTime[place], members[order])
      guard purchases.lists(sale, for: claimants[index]) else { return false }
      found[sale].owner = index
      hasOwn[index] = true
    }
    var smallest = SmallestTree(inTime)
    // The purchases within an order's window are a range in time.
    var (low, reached, claimedEnd) = (0, 0, 0)
    var isClaimed = [Bool](repeating: false, count: claimable.count)
    // By place in time, the change in the number of unanswered orders that reach it.
    var opening = [Int](repeating: 0, count: inTime.count + 1)
    for index in members {
      let time = claimants[index].order.createdAt.microseconds
      while low < inTime.count, claimable[inTime[low]].time < time - window { low += 1 }
      while reached < inTime.count, claimable[inTime[reached]].time <= time + window { reached += 1 }
      let listed = purchases.range(listedFor: claimants[index])
      let high = min(reached, listed.upperBound)
      if low >= high { continue }
      guard listed.lowerBound <= low else { return false }
      for place in max(low, claimedEnd)..<max(high, claimedEnd, low) { isClaimed[inTime[place]] = true }
      claimedEnd = max(claimedEnd, high)
      if claimants[index].isOpen {
        opening[low] += 1
        opening[high] -= 1
      }
      if hasOwn[index] { continue }
      var lost: [Int] = []
      while lost.count < lostClaimLimit, let sale = smallest.smallest(in: low..<high) {
        lost.append(sale)
        smallest.remove(sale)
      }
      for sale in lost { smallest.restore(sale) }
      losses.append((index, lost))
    }
    var openCount = 0
    for place in inTime.indices {
      openCount += opening[place]
      found[inTime[place]].isOpen = openCount > 0
    }
    steps += smallest.steps
    let times = members.map { claimants[$0].order.createdAt.microseconds }
    for sale in found.indices where isClaimed[sale] && found[sale].owner == nil && found[sale].transaction.isLive {
      let all = InterchangeableOrders.nearest(to: claimable[sale].time, in: times)
      let owner =
        purchases.lists(sale, for: claimants[members[all]])
        ? members[all] : nearest(to: sale, among: members, of: claimants, purchases)
      found[sale].owner = owner
      found[sale].isFurther = true
    }
    sales = found.indices.filter { isClaimed[$0] }.map { found[$0] }
    // Converts places among all purchases to places among claimed ones. Every lost purchase is claimed.
    var places = [Int](repeating: 0, count: found.count)
    for (place, sale) in found.indices.filter({ isClaimed[$0] }).enumerated() { places[sale] = place }
    for place in losses.indices { losses[place].sales = losses[place].sales.map { places[$0] } }
    return true
  }

  /// The nearest order that lists the purchase. One exists because an order claims it.
  private func nearest(
    to sale: Int, among members: [Int], of claimants: [Claimant], _ purchases: Purchases
  ) -> Int {
    var (nearest, least) = (members[0], Int64.max)
    for index in members where purchases.lists(sale, for: claimants[index]) {
      let distance = abs(purchases.claimable[sale].time - claimants[index].order.createdAt.microseconds)
      if distance < least { (nearest, least) = (index, distance) }
    }
    return nearest
  }

  private static func nearest(to time: Int64, in times: [Int64]) -> Int {
    func first(notBefore time: Int64) -> Int {
      var (low, high) = (0, times.count)
      while low < high {
        let middle = (low + high) / 2
        if times[middle] < time { low = middle + 1 } else { high = middle }
      }
      return low
    }
    let after = first(notBefore: time)
    guard after > 0 else { return 0 }
    let before = first(notBefore: times[after - 1])
    if after == times.count { return before }
    return time - times[before] <= times[after] - time ? before : after
  }
}

extension InterchangeableOrders {
  fileprivate struct Purchases {
    /// By key, whatever the window and each order's list.
    let claimable: [(transaction: TransactionRecord, time: Int64)]
    let inTime: [Int]
    /// By index in `claimable`, the number of earlier ones.
    private var earlier: [Int]
    private var ranges: [ObjectIdentifier: Range<Int>] = [:]

    /// - Returns: nil if a list leaves out a purchase between its first and its last.
    init?(listedFor claimants: [Claimant], rules: Rules) {
      let lists = Dictionary(claimants.map { (ObjectIdentifier($0.list), $0.list) }) { first, _ in first }
      // Lists share records, perhaps millions in all, so that identity tells them apart.
      var seen: Set<ObjectIdentifier> = []
      var records: [TransactionRecord] = []
      for list in lists.values {
        for record in list.records where seen.insert(record.instance).inserted { records.append(record) }
      }
      let all = Claimant(order: claimants[0].order, proven: VerifiedTransactions(records))
      guard zip(all.proven, all.proven.dropFirst()).allSatisfy({ $0.key != $1.key }),
        let claimable = all.claimableFromList(rules: rules)
      else { return nil }
      self.claimable = claimable
      inTime = claimable.indices.sorted { (claimable[$0].time, $0) < (claimable[$1].time, $1) }
      earlier = [Int](repeating: 0, count: claimable.count)
      var earlierByRecord: [ObjectIdentifier: Int] = [:]
      for (count, place) in inTime.enumerated() {
        earlier[place] = count
        earlierByRecord[claimable[place].transaction.instance] = count
      }
      for (id, list) in lists {
        var (count, first, end) = (0, claimable.count, 0)
        for record in list.records {
          guard let earlier = earlierByRecord[record.instance] else { continue }
          (count, first, end) = (count + 1, min(first, earlier), max(end, earlier + 1))
        }
        guard count == max(0, end - first) else { return nil }
        ranges[id] = count == 0 ? 0..<0 : first..<end
      }
    }

    func range(listedFor claimant: Claimant) -> Range<Int> { ranges[ObjectIdentifier(claimant.list)] ?? 0..<0 }

    func lists(_ sale: Int, for claimant: Claimant) -> Bool { range(listedFor: claimant).contains(earlier[sale]) }
  }
}

extension Claimant {
  fileprivate func hasEqualClaims(_ other: Claimant, rules: Rules) -> Bool {
    guard order.productId == other.order.productId,
      rules.bundleId(of: order) == rules.bundleId(of: other.order)
    else { return false }
    switch (order.appAccountToken, other.order.appAccountToken) {
    case (.none, .none): return true
    case (.some(let own), .some(let others)): return AccountToken.spelling(own) == AccountToken.spelling(others)
    case (.none, .some), (.some, .none): return false
    }
  }

  /// The purchases of the list that the order could claim, by key, without regard to the window.
  /// nil: not all of them are of one kind.
  fileprivate func claimableFromList(rules: Rules) -> [(transaction: TransactionRecord, time: Int64)]? {
    var claimable: [(transaction: TransactionRecord, time: Int64)] = []
    for transaction in proven where fitness(of: transaction, rules: rules) == .eligible && !transaction.isLaterPeriod {
      guard let sold = transaction.saleDate else { continue }
      guard transaction.environment == .production, !transaction.restoresAnotherID, transaction.otherIds.isEmpty,
        AccountToken.relation(of: order, to: transaction) != .other
      else { return nil }
      claimable.append((transaction, sold.microseconds))
    }
    return claimable
  }
}
