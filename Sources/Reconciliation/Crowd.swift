/// Many orders of one product that name nothing and whose receipts list the same purchases, or with every order those that
/// were made since: what one user sends, and what millions of pairs would have to be written down for otherwise. Purchases
/// beyond an order's window may be missing.
///
/// What an order claims is a range of the purchases in time. The outcome is that of ``Matching`` in general.
struct Crowd {
  /// A purchase that somebody claims, with its owner's place among the claimants.
  struct Sale {
    var transaction: TransactionRecord
    var owner: Int?
    /// Whether it is a further payment of its owner's.
    var isFurther = false
    /// Whether an order with an open receipt could have it.
    var isOpen = false
  }

  /// By key.
  private(set) var sales: [Sale] = []
  /// Of orders that got nothing, the first few of what they claim, as places among the sales.
  private(set) var losses: [(index: Int, sales: [Int])] = []
  private(set) var steps = 0

  /// Fewer than that are as well off with pairs.
  private static let least = 32

  /// - Parameters:
  ///   - claimants: by age and id.
  ///   - isAbsent: by place, whether the order claims nothing.
  /// - Returns: nil where the orders are not of this kind.
  init?(_ claimants: [Claimant], _ isAbsent: [Bool], mostLost: Int, rules: Rules) {
    let members = claimants.indices.filter { !isAbsent[$0] && !claimants[$0].proven.isEmpty }
    guard members.count >= Crowd.least else { return nil }
    let first = claimants[members[0]]
    guard claimants.indices.allSatisfy({ isAbsent[$0] || claimants[$0].order.transactionId == nil }),
      members.allSatisfy({ first.claimsAlike(claimants[$0], rules: rules) }),
      let purchases = Purchases(listedFor: members.map { claimants[$0] }, rules: rules),
      match(claimants, members, purchases, mostLost, rules)
    else { return nil }
  }

  /// - Returns: false where what would be best is not what each order's own list allows.
  private mutating func match(
    _ claimants: [Claimant], _ members: [Int], _ purchases: Purchases, _ mostLost: Int, _ rules: Rules
  ) -> Bool {
    let (claimable, inTime) = (purchases.claimable, purchases.inTime)
    let window = rules.matchWindow.microseconds
    let solved = LineAssignment.solve(
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
    // By place in time, how many more orders with an open receipt reach from there on.
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
      while lost.count < mostLost, let sale = smallest.smallest(in: low..<high) {
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
      let all = Crowd.nearest(to: claimable[sale].time, in: times)
      let owner =
        purchases.lists(sale, for: claimants[members[all]])
        ? members[all] : nearest(to: sale, among: members, of: claimants, purchases)
      found[sale].owner = owner
      found[sale].isFurther = true
    }
    sales = found.indices.filter { isClaimed[$0] }.map { found[$0] }
    // Places among all become places among those that somebody claims; of the lost ones all are.
    var places = [Int](repeating: 0, count: found.count)
    for (place, sale) in found.indices.filter({ isClaimed[$0] }).enumerated() { places[sale] = place }
    for place in losses.indices { losses[place].sales = losses[place].sales.map { places[$0] } }
    return true
  }

  /// The first of those nearest to a purchase that their lists hold. There is one, for somebody claims it.
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

  /// The first of those nearest to a time; of two at the same distance the earlier one.
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

extension Crowd {
  /// What a crowd's lists hold that its orders could claim.
  fileprivate struct Purchases {
    /// But for the window and each order's own list, by key.
    let claimable: [(transaction: TransactionRecord, time: Int64)]
    /// Places among them, by time and key.
    let inTime: [Int]
    /// By place, how many come before in time.
    private var earlier: [Int]
    /// By list, which of them it holds, in time.
    private var ranges: [ObjectIdentifier: Range<Int>] = [:]

    /// - Parameter claimants: that are alike but for their age and their lists.
    /// - Returns: nil where a list leaves out something between the first and the last that it holds.
    init?(listedFor claimants: [Claimant], rules: Rules) {
      let lists = Dictionary(claimants.map { (ObjectIdentifier($0.list), $0.list) }) { first, _ in first }
      // Lists hold the same records, and there may be millions in all: they are told apart without looking into them.
      var seen: Set<ObjectIdentifier> = []
      var records: [TransactionRecord] = []
      for list in lists.values {
        for record in list.records where seen.insert(record.instance).inserted { records.append(record) }
      }
      let all = Claimant(order: claimants[0].order, proven: ProvenTransactions(records))
      guard zip(all.proven, all.proven.dropFirst()).allSatisfy({ $0.key != $1.key }),
        let claimable = all.claimableInCrowd(rules: rules)
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

    /// Which of the purchases an order's list holds, in time.
    func range(listedFor claimant: Claimant) -> Range<Int> { ranges[ObjectIdentifier(claimant.list)] ?? 0..<0 }

    /// Whether an order's list holds a purchase.
    func lists(_ sale: Int, for claimant: Claimant) -> Bool { range(listedFor: claimant).contains(earlier[sale]) }
  }
}

extension Claimant {
  /// Whether the order claims of a list what another one would, but for its age.
  fileprivate func claimsAlike(_ other: Claimant, rules: Rules) -> Bool {
    guard order.productId == other.order.productId,
      rules.bundleId(of: order) == rules.bundleId(of: other.order)
    else { return false }
    switch (order.appAccountToken, other.order.appAccountToken) {
    case (.none, .none): return true
    case (.some(let own), .some(let others)): return AccountToken.spelling(own) == AccountToken.spelling(others)
    case (.none, .some), (.some, .none): return false
    }
  }

  /// What of its list the order could claim without naming it, but for the window, by key; nil where not all of it is of
  /// one kind.
  fileprivate func claimableInCrowd(rules: Rules) -> [(transaction: TransactionRecord, time: Int64)]? {
    var claimable: [(transaction: TransactionRecord, time: Int64)] = []
    for transaction in proven where fitness(of: transaction, rules: rules) == .eligible && !transaction.isLaterPeriod {
      guard let sold = transaction.saleDate else { continue }
      guard transaction.environment == .production, !transaction.restoresOther, transaction.otherIds.isEmpty,
        AccountToken.relation(of: order, to: transaction) != .other
      else { return nil }
      claimable.append((transaction, sold.microseconds))
    }
    return claimable
  }
}
