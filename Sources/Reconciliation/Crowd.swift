/// Many orders of one product that name nothing and share one list of purchases: what a user with one receipt for all of
/// them sends, and what hundreds of thousands of pairs would have to be written down for otherwise.
///
/// What an order claims is a range of the purchases in time. The outcome is that of ``Matching`` in general.
struct Crowd {
  /// A purchase that somebody claims, with its owner's place among the claimants.
  struct Sale {
    var transaction: TransactionRecord
    var owner: Int?
    /// Whether it is a further payment of its owner's.
    var isFurther = false
    /// Whether an order with an open receipt is among those between whom it was decided.
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
      let claimable = first.claimableInCrowd(rules: rules)
    else { return nil }
    match(claimants, members, claimable, mostLost, rules)
  }

  private mutating func match(
    _ claimants: [Claimant], _ members: [Int], _ claimable: [(transaction: TransactionRecord, time: Int64)],
    _ mostLost: Int, _ rules: Rules
  ) {
    let window = rules.matchWindow.microseconds
    let byId = members.sorted { claimants[$0].order.orderId < claimants[$1].order.orderId }
    let solved = LineAssignment.solve(
      orders: byId.map { claimants[$0].order.createdAt.microseconds }, transactions: claimable.map(\.time),
      window: window)
    steps = solved.steps + members.count + claimable.count
    var found = claimable.map { Sale(transaction: $0.transaction) }
    var hasOwn = [Bool](repeating: false, count: claimants.count)
    for (order, sale) in solved.partners.enumerated() {
      guard let sale else { continue }
      found[sale].owner = byId[order]
      hasOwn[byId[order]] = true
    }
    let inTime = claimable.indices.sorted { (claimable[$0].time, $0) < (claimable[$1].time, $1) }
    var smallest = SmallestTree(inTime)
    // The purchases within an order's window are a range in time; ranges that overlap are decided together.
    var (low, high, groupEnd) = (0, 0, 0)
    var group: [Int] = []
    var isClaimed = [Bool](repeating: false, count: claimable.count)
    var isGroupOpen = false
    func close() {
      if isGroupOpen { for sale in group { found[sale].isOpen = true } }
      (group, isGroupOpen) = ([], false)
    }
    for index in members {
      let time = claimants[index].order.createdAt.microseconds
      while low < inTime.count, claimable[inTime[low]].time < time - window { low += 1 }
      high = max(high, low)
      while high < inTime.count, claimable[inTime[high]].time <= time + window { high += 1 }
      if low == high { continue }
      if low >= groupEnd { close() }
      for place in max(low, groupEnd)..<max(high, groupEnd) {
        group.append(inTime[place])
        isClaimed[inTime[place]] = true
      }
      groupEnd = max(groupEnd, high)
      isGroupOpen = isGroupOpen || claimants[index].isOpen
      if hasOwn[index] { continue }
      var lost: [Int] = []
      while lost.count < mostLost, let sale = smallest.smallest(in: low..<high) {
        lost.append(sale)
        smallest.remove(sale)
      }
      for sale in lost { smallest.restore(sale) }
      losses.append((index, lost))
    }
    close()
    steps += smallest.steps
    let times = members.map { claimants[$0].order.createdAt.microseconds }
    for sale in found.indices where isClaimed[sale] && found[sale].owner == nil && found[sale].transaction.isLive {
      let owner = members[Crowd.nearest(to: claimable[sale].time, in: times)]
      found[sale].owner = owner
      found[sale].isFurther = true
      found[sale].isOpen = found[sale].isOpen || claimants[owner].isOpen
    }
    sales = found.indices.filter { isClaimed[$0] }.map { found[$0] }
    // Places among all become places among those that somebody claims; of the lost ones all are.
    var places = [Int](repeating: 0, count: found.count)
    for (place, sale) in found.indices.filter({ isClaimed[$0] }).enumerated() { places[sale] = place }
    for place in losses.indices { losses[place].sales = losses[place].sales.map { places[$0] } }
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

extension Claimant {
  /// Whether the order claims of one list what another one does, but for its age.
  fileprivate func claimsAlike(_ other: Claimant, rules: Rules) -> Bool {
    guard list === other.list, order.productId == other.order.productId,
      rules.bundleId(of: order) == rules.bundleId(of: other.order)
    else { return false }
    switch (order.appAccountToken, other.order.appAccountToken) {
    case (.none, .none): return true
    case (.some(let own), .some(let others)): return AccountToken.isSame(own, others)
    case (.none, .some), (.some, .none): return false
    }
  }

  /// What of its list the order could claim without naming it, but for the window, by key; nil where not all of it is of
  /// one kind.
  fileprivate func claimableInCrowd(rules: Rules) -> [(transaction: TransactionRecord, time: Int64)]? {
    var claimable: [(transaction: TransactionRecord, time: Int64)] = []
    for transaction in proven where fitness(of: transaction, rules: rules) == .eligible && !transaction.isLaterPeriod {
      guard let sold = transaction.saleDate else { continue }
      guard transaction.environment == .production, !transaction.restoresOther,
        ClaimRank.token(of: order, on: transaction) != .other
      else { return nil }
      claimable.append((transaction, sold.microseconds))
    }
    return claimable
  }
}
