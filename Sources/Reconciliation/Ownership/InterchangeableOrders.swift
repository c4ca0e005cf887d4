/// The matching of many orders of one person, product and account token to purchases by time.
/// One person's app receipts, or account token, would need millions of pairs. Each of the orders is linked to a range of
/// the purchases in time. Orders that a proof or a stated ID sets apart are decided first, see ``FirstChoices``. The
/// result is that of ``Matching``.
struct InterchangeableOrders {
  struct Sale {
    var transaction: TransactionRecord
    var owner: Int?
    var isFurther = false
    var isOpen = false
  }

  private(set) var sales: [Sale] = []
  /// The purchases of stated IDs.
  private(set) var stated: [(index: Int, transaction: TransactionRecord)] = []
  /// For orders without a purchase, the first few lost ones as indices in `sales`.
  private(set) var losses: [(index: Int, sales: [Int])] = []
  private(set) var steps = 0

  /// For fewer orders, pairs cost no more.
  static let least = 32

  /// - Returns: nil for few orders, for orders that differ in more than creation date, goods, linked purchases, proofs and
  ///   stated IDs, and if an order with a proof or a stated ID is not decided first.
  init?(
    _ claimants: [Claimant], _ isAbsent: [Bool], lostClaimLimit: Int, least: Int = InterchangeableOrders.least,
    rules: Rules
  ) {
    let members = claimants.indices.filter {
      !isAbsent[$0] && !(claimants[$0].proven.isEmpty && claimants[$0].known.isEmpty)
    }
    guard members.count >= least else { return nil }
    let first = claimants[members[0]]
    let isMember = Set(members)
    guard
      claimants.indices.allSatisfy({
        isAbsent[$0] || isMember.contains($0) || claimants[$0].order.transactionId == nil
      }),
      members.allSatisfy({ first.hasEqualClaims(claimants[$0], rules: rules) }),
      let purchases = Purchases(linkedTo: members.map { claimants[$0] }, rules: rules),
      match(claimants, members, purchases, lostClaimLimit, rules)
    else { return nil }
  }

  /// - Returns: false if a receipt lists only later purchases, or if other orders decide the purchase of an order with a
  ///   proof or a stated ID.
  private mutating func match(
    _ claimants: [Claimant], _ members: [Int], _ purchases: Purchases, _ lostClaimLimit: Int, _ rules: Rules
  ) -> Bool {
    let (claimable, inTime) = (purchases.claimable, purchases.inTime)
    let window = rules.matchWindow.microseconds
    let times = members.map { claimants[$0].order.createdAt.microseconds }
    let saleTimes = inTime.map { claimable[$0].time }
    var apart: [FirstChoices.Member] = []
    // The purchases within an order's window are a range in time.
    var (low, reached) = (0, 0)
    for (member, index) in members.enumerated() {
      while low < inTime.count, saleTimes[low] < times[member] - window { low += 1 }
      while reached < inTime.count, saleTimes[reached] <= times[member] + window { reached += 1 }
      let linked = purchases.range(linkedTo: claimants[index])
      let high = max(low, min(reached, linked.upperBound))
      guard low == high || linked.lowerBound <= low else { return false }
      var own = FirstChoices.Member(
        time: times[member], hasGoods: claimants[index].hasGoods, linked: low..<high, choices: nil)
      guard take(claimants[index], index, into: &own, purchases, rules) else { return false }
      apart.append(own)
    }
    guard let first = FirstChoices(of: apart, times: saleTimes) else { return false }
    let free = inTime.indices.filter { first.owners[$0] == nil }
    let linked = first.inTime.map { member -> LinkedPlaces in
      let own = apart[member].linked
      let start = free.partitioningIndex { $0 >= own.lowerBound }
      return .range(start..<max(start, free.partitioningIndex { $0 >= own.upperBound }))
    }
    let solved = CompleteTimelineAssignment.solve(
      orders: first.inTime.map { times[$0] }, transactions: free.map { saleTimes[$0] }, window: window,
      hasGoods: first.inTime.map { apart[$0].hasGoods }, linked: linked)
    steps = solved.steps + purchases.steps + members.count + claimable.count
    var found = claimable.map { Sale(transaction: $0.transaction) }
    var partners = first.sales
    for (order, place) in solved.partners.enumerated() {
      if let place { partners[first.inTime[order]] = free[place] }
    }
    for (member, place) in partners.enumerated() { if let place { found[inTime[place]].owner = members[member] } }
    var smallest = SmallestTree(inTime)
    var claimedEnd = 0
    var isClaimed = [Bool](repeating: false, count: claimable.count)
    // By place in time, the change in the number of unanswered orders that reach it.
    var opening = [Int](repeating: 0, count: inTime.count + 1)
    for (member, own) in apart.enumerated() where !own.linked.isEmpty {
      let linked = own.linked
      for place in linked.clamped(to: max(linked.lowerBound, claimedEnd)..<max(linked.upperBound, claimedEnd)) {
        isClaimed[inTime[place]] = true
      }
      claimedEnd = max(claimedEnd, linked.upperBound)
      if claimants[members[member]].isOpen {
        opening[linked.lowerBound] += 1
        opening[linked.upperBound] -= 1
      }
      if partners[member] != nil { continue }
      var lost: [Int] = []
      while lost.count < lostClaimLimit, let sale = smallest.smallest(in: linked) {
        lost.append(sale)
        smallest.remove(sale)
      }
      for sale in lost { smallest.restore(sale) }
      losses.append((members[member], lost))
    }
    let open = members.indices.filter { claimants[members[$0]].isOpen }
    var openCount = 0
    for place in inTime.indices {
      openCount += opening[place]
      found[inTime[place]].isOpen =
        openCount > 0
        && (first.owners[place] == nil || open.contains { first.couldOutrank($0, at: place, saleTimes[place]) })
    }
    steps += smallest.steps
    // As `Matching.leftOver`, with the nearest order found by time.
    var units = members.indices.map { member in
      OwnedUnits(
        claimants[members[member]].order, owning: partners[member].map { found[inTime[$0]].transaction })
    }
    let all = Array(members.indices)
    for isReversed in [false, true] {
      var isShort = all.filter { isReversed ? units[$0].unpaid > 0 : units[$0].isShort }
      for (place, sale) in inTime.enumerated()
      where isClaimed[sale] && found[sale].owner == nil && found[sale].transaction.isReversed == isReversed {
        let transaction = found[sale].transaction
        func nearest(of orders: [Int]) -> Int? {
          InterchangeableOrders.nearest(to: saleTimes[place], in: orders, at: times, within: window) {
            apart[$0].linked.contains(place) && units[$0].canTake(transaction)
          }
        }
        guard let member = nearest(of: isShort) ?? (isReversed ? nil : nearest(of: all)) else { continue }
        (found[sale].owner, found[sale].isFurther) = (members[member], true)
        units[member].add(transaction)
        if !(isReversed ? units[member].unpaid > 0 : units[member].isShort) { isShort.removeAll { $0 == member } }
      }
    }
    sales = found.indices.filter { isClaimed[$0] }.map { found[$0] }
    // Converts places among all purchases to places among claimed ones. Every lost purchase is claimed.
    var places = [Int](repeating: 0, count: found.count)
    for (place, sale) in found.indices.filter({ isClaimed[$0] }).enumerated() { places[sale] = place }
    for place in losses.indices { losses[place].sales = losses[place].sales.map { places[$0] } }
    return true
  }

  /// Adds the choices of an order that a proof or a stated ID sets apart.
  /// - Returns: false if a choice is not among the linked purchases.
  private mutating func take(
    _ claimant: Claimant, _ index: Int, into member: inout FirstChoices.Member, _ purchases: Purchases, _ rules: Rules
  ) -> Bool {
    func linkedPlace(of record: TransactionRecord) -> Int? {
      purchases.place(of: record).flatMap { member.linked.contains($0) ? $0 : nil }
    }
    var proofs: [(place: Int, record: TransactionRecord, distance: Int64)] = []
    for record in claimant.proofIds.lazy.flatMap(claimant.list.named) {
      guard let place = linkedPlace(of: record) else { return false }
      proofs.append((place, record, abs(purchases.time(place) - member.time)))
    }
    var choices = proofs.filter(\.record.isLive).sorted { ($0.distance, $0.record.key) < ($1.distance, $1.record.key) }
      .map { (sale: $0.place, isProof: true) }
    if claimant.order.transactionId != nil {
      guard claimant.proofValidity == .notAllRejected, !claimant.list.containsPeriods,
        !claimant.knownList.containsPeriods, let target = claimant.named(rules: rules),
        let place = linkedPlace(of: target)
      else { return false }
      stated.append((index, target))
      let hasToken = AccountToken.relation(of: claimant.order, to: target) == .same
      // A token link to the stated purchase is one among others.
      if hasToken, proofs.isEmpty { return true }
      guard hasToken || !purchases.areWithToken else { return false }
      if target.isLive, !hasToken { choices.append((place, false)) }
    } else if proofs.isEmpty {
      return true
    }
    member.choices = choices
    return true
  }

  /// The nearest of some orders in the order of time, the earlier one of two; nil: none is linked.
  private static func nearest(
    to time: Int64, in orders: [Int], at times: [Int64], within window: Int64, where isLinked: (Int) -> Bool
  ) -> Int? {
    let low = orders.partitioningIndex { times[$0] >= time }
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
    /// The number of earlier ones.
    private var earlierByRecord: [ObjectIdentifier: Int] = [:]
    /// True if the orders' account token links them to some purchases.
    let areWithToken: Bool
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
      let order = claimants.first?.order
      areWithToken = claimable.contains { record in
        order.map { AccountToken.relation(of: $0, to: record.transaction) == .same } ?? false
      }
      for (count, place) in inTime.enumerated() {
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

    func place(of record: TransactionRecord) -> Int? { earlierByRecord[record.instance] }

    func time(_ place: Int) -> Int64 { claimable[inTime[place]].time }
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

  /// True for an order of the same person, product and account token that states no unknown ID.
  fileprivate func hasEqualClaims(_ other: Claimant, rules: Rules) -> Bool {
    !other.isStatedIDUnknown && order.productId == other.order.productId
      && rules.people.isSame(order.userId, other.order.userId)
      && rules.bundleId(of: order) == rules.bundleId(of: other.order)
      && order.appAccountToken.map(AccountToken.spelling) == other.order.appAccountToken.map(AccountToken.spelling)
  }

  fileprivate func forEachListedOrWithToken(_ body: (TransactionRecord) -> Void) {
    for record in proven { body(record) }
    for record in linkedWithoutReceipt where AccountToken.relation(of: order, to: record) == .same { body(record) }
  }
}
