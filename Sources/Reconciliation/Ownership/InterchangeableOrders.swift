/// The matching of many orders of one person, product and account token to purchases by time.
/// One person's app receipts, or account token, would need millions of pairs. The orders state no ID, and each of them is
/// linked to a range of the purchases in time. The result is that of ``Matching``.
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
  static let least = 32

  /// - Returns: nil for few orders, and for orders that differ in more than creation date, goods and linked purchases.
  init?(
    _ claimants: [Claimant], _ isAbsent: [Bool], lostClaimLimit: Int, least: Int = InterchangeableOrders.least,
    rules: Rules
  ) {
    let members = claimants.indices.filter {
      !isAbsent[$0] && !(claimants[$0].proven.isEmpty && claimants[$0].known.isEmpty)
    }
    guard members.count >= least else { return nil }
    let first = claimants[members[0]]
    guard claimants.indices.allSatisfy({ isAbsent[$0] || claimants[$0].order.transactionId == nil }),
      members.allSatisfy({ first.hasEqualClaims(claimants[$0], rules: rules) }),
      let purchases = Purchases(linkedTo: members.map { claimants[$0] }, rules: rules),
      match(claimants, members, purchases, lostClaimLimit, rules)
    else { return nil }
  }

  /// - Returns: false if the best assignment gives an order a purchase that it is not linked to.
  private mutating func match(
    _ claimants: [Claimant], _ members: [Int], _ purchases: Purchases, _ lostClaimLimit: Int, _ rules: Rules
  ) -> Bool {
    let (claimable, inTime) = (purchases.claimable, purchases.inTime)
    let window = rules.matchWindow.microseconds
    let solved = CompleteTimelineAssignment.solve(
      orders: members.map { claimants[$0].order.createdAt.microseconds },
      transactions: inTime.map { claimable[$0].time }, window: window,
      hasGoods: members.map { claimants[$0].hasGoods })
    steps = solved.steps + purchases.steps + members.count + claimable.count
    var found = claimable.map { Sale(transaction: $0.transaction) }
    var hasOwn = [Bool](repeating: false, count: claimants.count)
    for (order, place) in solved.partners.enumerated() {
      guard let place else { continue }
      let (sale, index) = (inTime[place], members[order])
      guard purchases.links(sale, to: claimants[index]) else { return false }
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
      let linked = purchases.range(linkedTo: claimants[index])
      let high = min(reached, linked.upperBound)
      if low >= high { continue }
      guard linked.lowerBound <= low else { return false }
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
    var units = members.map { _ in 0 as Int64 }
    for (order, place) in solved.partners.enumerated() {
      if let place { units[order] = found[inTime[place]].transaction.liveUnits }
    }
    let all = Array(members.indices)
    var isShort = all.filter { units[$0] < claimants[members[$0]].order.quantity }
    for sale in inTime where isClaimed[sale] && found[sale].owner == nil && found[sale].transaction.isLive {
      let time = claimable[sale].time
      func nearest(of orders: [Int]) -> Int? {
        InterchangeableOrders.nearest(to: time, in: orders, at: times, within: window) {
          purchases.links(sale, to: claimants[members[$0]])
        }
      }
      let short = nearest(of: isShort)
      guard let nearest = short ?? nearest(of: all) else { continue }
      (found[sale].owner, found[sale].isFurther) = (members[nearest], true)
      units[nearest] += found[sale].transaction.liveUnits
      if short != nil, units[nearest] >= claimants[members[nearest]].order.quantity {
        isShort.removeAll { $0 == nearest }
      }
    }
    sales = found.indices.filter { isClaimed[$0] }.map { found[$0] }
    // Converts places among all purchases to places among claimed ones. Every lost purchase is claimed.
    var places = [Int](repeating: 0, count: found.count)
    for (place, sale) in found.indices.filter({ isClaimed[$0] }).enumerated() { places[sale] = place }
    for place in losses.indices { losses[place].sales = losses[place].sales.map { places[$0] } }
    return true
  }

  /// The nearest of some orders in the order of time, the earlier one of two; nil: none is linked.
  private static func nearest(
    to time: Int64, in orders: [Int], at times: [Int64], within window: Int64, where isLinked: (Int) -> Bool
  ) -> Int? {
    var (low, high) = (0, orders.count)
    while low < high {
      let middle = (low + high) / 2
      if times[orders[middle]] < time { low = middle + 1 } else { high = middle }
    }
    let after = orders[low...].lazy.prefix { times[$0] - time <= window }.first(where: isLinked)
    let limit = after.map { times[$0] - time } ?? window
    var before: Int?
    for order in orders[..<low].reversed() {
      let distance = time - times[order]
      if distance > limit || before.map({ times[order] < times[$0] }) ?? false { break }
      if isLinked(order) { before = order }
    }
    return before ?? after
  }
}

extension InterchangeableOrders {
  fileprivate struct Purchases {
    /// By key, whatever the window and each order's links.
    let claimable: [(transaction: TransactionRecord, time: Int64)]
    let inTime: [Int]
    private(set) var steps = 0
    /// By index in `claimable`, the number of earlier ones.
    private var earlier: [Int]
    private var ranges: [Claimant.LinkSource: Range<Int>] = [:]

    /// - Returns: nil if an order's links leave out a purchase between the first and the last, or if an environment, a
    ///   purchase with several IDs or another token makes a difference.
    init?(linkedTo claimants: [Claimant], rules: Rules) {
      let sources = Dictionary(claimants.map { ($0.linkSource, $0) }) { first, _ in first }
      // Sources share records, perhaps millions in all, so that identity tells them apart.
      var seen: Set<ObjectIdentifier> = []
      var claimable: [(transaction: TransactionRecord, time: Int64)] = []
      var isUniform = true
      for source in sources.values {
        source.forEachListedOrWithToken { record in
          guard seen.insert(record.instance).inserted, source.fitness(of: record, rules: rules) == .eligible,
            !record.isLaterPeriod, let sold = record.saleDate
          else { return }
          isUniform =
            isUniform && record.environment == .production && !record.restoresAnotherID && record.otherIds.isEmpty
            && AccountToken.relation(of: source.order, to: record) != .other
          claimable.append((record, sold.microseconds))
        }
      }
      claimable.sort { $0.transaction.key < $1.transaction.key }
      guard isUniform,
        zip(claimable, claimable.dropFirst()).allSatisfy({ $0.transaction.key != $1.transaction.key })
      else { return nil }
      self.claimable = claimable
      inTime = claimable.indices.sorted { (claimable[$0].time, $0) < (claimable[$1].time, $1) }
      earlier = [Int](repeating: 0, count: claimable.count)
      var earlierByRecord: [ObjectIdentifier: Int] = [:]
      for (count, place) in inTime.enumerated() {
        earlier[place] = count
        earlierByRecord[claimable[place].transaction.instance] = count
      }
      for (key, source) in sources {
        var (count, first, end) = (0, claimable.count, 0)
        source.forEachListedOrWithToken { record in
          steps += 1
          guard let earlier = earlierByRecord[record.instance] else { return }
          (count, first, end) = (count + 1, min(first, earlier), max(end, earlier + 1))
        }
        guard count == max(0, end - first) else { return nil }
        ranges[key] = count == 0 ? 0..<0 : first..<end
      }
    }

    func range(linkedTo claimant: Claimant) -> Range<Int> { ranges[claimant.linkSource] ?? 0..<0 }

    func links(_ sale: Int, to claimant: Claimant) -> Bool { range(linkedTo: claimant).contains(earlier[sale]) }
  }
}

extension Claimant {
  /// The properties of interchangeable orders that decide which purchases they are linked to, except the date.
  fileprivate struct LinkSource: Hashable {
    var list: ObjectIdentifier
    var known: ObjectIdentifier
    var isFree: Bool
  }

  fileprivate var linkSource: LinkSource {
    LinkSource(list: ObjectIdentifier(list), known: ObjectIdentifier(knownList), isFree: isFree)
  }

  /// True for an order of the same person, product and account token that no proof and no unknown ID sets apart.
  fileprivate func hasEqualClaims(_ other: Claimant, rules: Rules) -> Bool {
    !other.isStatedIDUnknown && other.proofIds.allSatisfy { other.list.named($0).isEmpty }
      && order.productId == other.order.productId && rules.people.isSame(order.userId, other.order.userId)
      && rules.bundleId(of: order) == rules.bundleId(of: other.order)
      && order.appAccountToken.map(AccountToken.spelling) == other.order.appAccountToken.map(AccountToken.spelling)
  }

  fileprivate func forEachListedOrWithToken(_ body: (TransactionRecord) -> Void) {
    for record in proven { body(record) }
    for record in linkedWithoutReceipt where AccountToken.relation(of: order, to: record) == .same { body(record) }
  }
}
