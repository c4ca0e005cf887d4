/// Which transaction belongs to which order. A transaction has at most one owner.
///
/// Decided from orders and evidence alone; the order of input plays no part. First those who name a transaction, the best
/// claim of each owning it; then the one-to-one assignment of those who name none, in production and then in the sandbox;
/// in between what is left over: names that had to yield and got their transaction after all, and further live payments
/// that an order's own receipts bring.
package struct Matching {
  /// By order id; every claimant has an entry.
  package private(set) var claims: [Identifier: OrderClaims] = [:]
  /// Every transaction that some order claims, names or owns: none of these is an orphan.
  package private(set) var claimed: Set<TransactionKey> = []

  private let rules: Rules
  private let claimants: [Claimant]
  /// By place among the claimants.
  private let isAbsent: [Bool]
  private let supporters: [TransactionKey: Set<Identifier>]
  /// Owner by sale, as an index into `claimants`.
  private var owners: [TransactionKey: Int] = [:]
  /// Sales whose owner may change when a missing answer comes.
  private var provisional: Set<TransactionKey> = []
  /// Sales whose owner may turn out to be beaten by a better claim, which helps none of those that lost.
  private var beatable: Set<TransactionKey> = []
  /// Claimants who would have a further live payment, had an order not taken it that may yet have another.
  private var waiting: Set<Int> = []
  /// Those who name a sale and could be paid by it, the best first.
  private var contenders: [TransactionKey: [Contender]] = [:]
  /// Everything that some order names, whether or not it could be paid by it.
  private var named: Set<TransactionKey> = []

  /// Claims without a name.
  private var unnamed: [Candidate] = []
  /// Set where all claims are those of one.
  private var crowd: Crowd?

  /// An order that names a transaction.
  private struct Contender {
    var index: Int
    var transaction: TransactionRecord
    var rank: ClaimRank
  }

  /// An order that claims a transaction without naming it.
  private struct Candidate {
    var index: Int
    var transaction: TransactionRecord
  }

  /// Matches these orders with what they claim.
  ///
  /// - Parameters:
  ///   - input: orders that compete for no transaction with any order that is not among them.
  ///   - supporters: of transactions that somebody names, the users whose genuine receipts bring them without having been
  ///     sent for one of these orders. What the receipts of these orders bring is known without it.
  package init(
    of input: consuming [Claimant], supporters: [TransactionKey: Set<Identifier>] = [:], rules: Rules
  ) {
    let claimants = input.sorted { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
    self.init(
      deciding: claimants, supporters, rules, without: Array(repeating: false, count: claimants.count))
    tellLosses()
    for (index, claimant) in claimants.enumerated() { finish(claimant, index) }
  }

  /// - Parameter isAbsent: by place, whether the order claims nothing, though what their proofs bring supports the names of their users.
  private init(
    deciding claimants: [Claimant], _ supporters: [TransactionKey: Set<Identifier>], _ rules: Rules,
    without isAbsent: [Bool]
  ) {
    self.rules = rules
    self.supporters = supporters
    self.claimants = claimants
    self.isAbsent = isAbsent
    for claimant in claimants { claims[claimant.order.orderId] = OrderClaims() }
    let targets = claimants.indices.map { isAbsent[$0] ? nil : claimants[$0].named(rules: rules) }
    if let crowd = Crowd(claimants, isAbsent, mostLost: Matching.mostLost, rules: rules) {
      take(crowd)
      return
    }
    unnamed = unnamedCandidates()
    let yielding = matchNamed(targets)
    matchUnnamed(in: .production)
    matchLeftovers(yielding)
    matchUnnamed(in: .sandbox)
    giveBack(yielding)
  }

  // MARK: - Named

  /// - Returns: the sales whose named claims yield to orders that do not name them.
  private mutating func matchNamed(_ targets: [TransactionRecord?]) -> Set<TransactionKey> {
    let people = people(bringing: Set(targets.compactMap { $0?.key }))
    for (index, target) in targets.enumerated() {
      guard let target else { continue }
      let claimant = claimants[index]
      let standing = claimant.standing(named: target, rules: rules)
      let isEligible =
        claims[claimant.order.orderId]?.take(named: target, standing, worth: claimant.worth) ?? false
      guard let key = claims[claimant.order.orderId]?.named else { continue }
      claimed.insert(key)
      named.insert(key)
      guard isEligible else { continue }
      let person = rules.people.person(claimant.order.userId)
      let isProven =
        claimant.list.contains(target.key) || people[target.key]?.contains(person) ?? false
      contenders[target.saleKey, default: []].append(
        Contender(
          index: index, transaction: target,
          rank: ClaimRank(claimant, on: target, isProven: isProven, isNamed: true)))
    }
    for key in contenders.keys { contenders[key]?.sort { $0.rank < $1.rank } }
    let best = bestUnnamed()
    let others = peopleClaiming()
    var yielding: Set<TransactionKey> = []
    for (sale, named) in contenders {
      let first = named[0]
      let person = rules.people.person(claimants[first.index].order.userId)
      let isOutranked = best[sale].map { $0 < first.rank } ?? false
      let isUnsupported = first.rank.isFalse || !first.rank.isProven && first.rank.token != .same
      let isClaimedByOthers = others[sale]?.contains { $0 != person || first.rank.isFalse } ?? false
      if isOutranked || isUnsupported && isClaimedByOthers {
        yielding.insert(sale)
      } else {
        own(first.transaction, by: first.index)
      }
      if claimants[first.index].isOpen { provisional.insert(sale) }
      let canBeat = named.dropFirst().contains {
        (claimants[$0.index].isOpen || claimants[$0.index].isUserOpen) && (!$0.rank.isFalse || first.rank.isFalse)
      }
      if canBeat {
        beatable.insert(sale)
      }
    }
    return yielding
  }

  /// The people whose genuine receipts bring each of these transactions.
  private func people(bringing keys: Set<TransactionKey>) -> [TransactionKey: Set<Identifier>] {
    var people = supporters.mapValues { Set($0.map { rules.people.person($0) }) }
    var isTaken: Set<ListOfPerson> = []
    for claimant in claimants {
      let person = rules.people.person(claimant.order.userId)
      guard isTaken.insert(ListOfPerson(list: ObjectIdentifier(claimant.list), person: person)).inserted else {
        continue
      }
      for record in claimant.proven where keys.contains(record.key) { people[record.key, default: []].insert(person) }
    }
    return people
  }

  /// The best claim without a name on each sale that is named.
  private func bestUnnamed() -> [TransactionKey: ClaimRank] {
    var best: [TransactionKey: ClaimRank] = [:]
    for candidate in unnamed where contenders[candidate.transaction.saleKey] != nil {
      let rank = ClaimRank(
        claimants[candidate.index], on: candidate.transaction, isProven: true, isNamed: false)
      let sale = candidate.transaction.saleKey
      best[sale] = min(best[sale] ?? rank, rank)
    }
    return best
  }

  /// Of each sale that is named, the people of orders whose own genuine proofs bring it and that would claim it without
  /// naming it.
  private func peopleClaiming() -> [TransactionKey: Set<Identifier>] {
    var people: [TransactionKey: Set<Identifier>] = [:]
    var wanted: [ListOfPerson: [TransactionRecord]] = [:]
    for (index, claimant) in claimants.enumerated() where !isAbsent[index] {
      let person = rules.people.person(claimant.order.userId)
      let own = ListOfPerson(list: ObjectIdentifier(claimant.list), person: person)
      if wanted[own] == nil { wanted[own] = claimant.proven.filter { isOfInterest($0, to: person) } }
      for record in wanted[own] ?? [] {
        guard let named = contenders[record.saleKey], !named.contains(where: { $0.index == index }),
          claimant.claimsUnnamed(record, rules: rules)
        else { continue }
        people[record.saleKey, default: []].insert(person)
      }
    }
    return people
  }

  /// Whether it matters that a person brings a transaction that is named: a name yields to other people's proofs only, unless
  /// nothing but false ones speak for it.
  private func isOfInterest(_ transaction: TransactionRecord, to person: Identifier) -> Bool {
    guard let first = contenders[transaction.saleKey]?.first else { return false }
    return first.rank.isFalse || rules.people.person(claimants[first.index].order.userId) != person
  }

  private struct ListOfPerson: Hashable {
    var list: ObjectIdentifier
    var person: Identifier
  }

  // MARK: - Without a name

  private mutating func take(_ crowd: Crowd) {
    self.crowd = crowd
    for sale in crowd.sales { claimed.insert(sale.transaction.key) }
    for sale in crowd.sales where sale.isOpen { provisional.insert(sale.transaction.saleKey) }
    for isFurther in [false, true] {
      for sale in crowd.sales where sale.isFurther == isFurther {
        if let owner = sale.owner { own(sale.transaction, by: owner) }
      }
    }
  }

  private func unnamedCandidates() -> [Candidate] {
    var candidates: [Candidate] = []
    for (index, claimant) in claimants.enumerated() where claimant.order.transactionId == nil && !isAbsent[index] {
      for transaction in claimant.proven where claimant.claimsUnnamed(transaction, rules: rules) {
        candidates.append(Candidate(index: index, transaction: transaction))
      }
    }
    return candidates
  }

  private mutating func matchUnnamed(in environment: AppleEnvironment) {
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

  private mutating func assign(_ candidates: [Candidate]) {
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
  private struct Pair {
    var order: Int
    var sale: Int
    var transaction: TransactionRecord
  }

  private func distance(_ pair: Pair, _ orders: [Int]) -> Int64 {
    let createdAt = claimants[orders[pair.order]].order.createdAt
    return ((pair.transaction.saleDate ?? createdAt) - createdAt).magnitude.microseconds
  }

  /// Where the claims are those of orders and sales on one line; nil where they are not, or too few to be worth it.
  private func assignOnTimeline(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?]? {
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
    let (sales, window) = (dates.map { $0 ?? 0 }, rules.matchWindow.microseconds)
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

  private func assignInGeneral(_ pairs: [Pair], _ orders: [Int], saleCount: Int) -> [Int?] {
    let edges = Set(
      pairs.map { Assignment.Edge(order: $0.order, transaction: $0.sale, distance: distance($0, orders)) })
    return Assignment.solve(orderCount: orders.count, transactionCount: saleCount, edges: Array(edges))
  }

  // MARK: - What is left over

  /// A live payment that is left over belongs to the order that alone brings it, or else to the nearest one: it was paid,
  /// and somebody paid twice. Whoever names one that nobody without a name took has it after all.
  private mutating func matchLeftovers(_ yielding: Set<TransactionKey>) {
    // Better supported names come before further claims, others after them.
    giveBack(
      yielding.filter { sale in
        contenders[sale].map { $0[0].rank.isProven || $0[0].rank.token == .same } ?? false
      })
    var wanted: [TransactionKey: (index: Int, token: Int, distance: Span, transaction: TransactionRecord)] = [:]
    var free: [ObjectIdentifier: [TransactionRecord]] = [:]
    for (index, claimant) in claimants.enumerated() {
      let list = ObjectIdentifier(claimant.list)
      if free[list] == nil {
        free[list] = claimant.proven.filter {
          $0.isLive && owners[$0.saleKey] == nil && (yielding.contains($0.saleKey) || !named.contains($0.key))
        }
      }
      if free[list]?.isEmpty ?? true { continue }
      let own = claims[claimant.order.orderId]
      guard own?.refused == nil, own?.contradictory == nil, !claimant.contradictsOwnPayload, !isAbsent[index]
      else { continue }
      for transaction in free[list] ?? [] {
        let sale = transaction.saleKey
        guard claimant.claimsUnnamed(transaction, rules: rules), let date = transaction.saleDate
        else { continue }
        let token = ClaimRank.token(of: claimant.order, on: transaction).rawValue
        let distance = (date - claimant.order.createdAt).magnitude
        // Claimants come by age and id, so a tie stays with the earlier order.
        if let best = wanted[sale], (best.token, best.distance) <= (token, distance) { continue }
        wanted[sale] = (index, token, distance, transaction)
      }
    }
    var shaky: Set<TransactionKey> = []
    for (sale, claim) in wanted.sorted(by: { $0.value.transaction.key < $1.value.transaction.key }) {
      claimed.insert(claim.transaction.key)
      own(claim.transaction, by: claim.index)
      if claimants[claim.index].isOpen { provisional.insert(sale) }
      if claimants[claim.index].isUnsettled(rules: rules) { shaky.insert(sale) }
    }
    if shaky.isEmpty { return }
    // Who would have had it instead may yet have it, and it would come before what they own and Apple took back.
    for (index, claimant) in claimants.enumerated() {
      let isWaiting = (free[ObjectIdentifier(claimant.list)] ?? []).contains {
        shaky.contains($0.saleKey) && owners[$0.saleKey] != index && claimant.claimsUnnamed($0, rules: rules)
      }
      if isWaiting { waiting.insert(index) }
    }
  }

  private mutating func giveBack(_ yielding: Set<TransactionKey>) {
    for sale in yielding where owners[sale] == nil {
      // Whom only false proofs speak for gets nothing that somebody with a genuine one claims.
      guard let best = contenders[sale]?.first, !best.rank.isFalse else { continue }
      own(best.transaction, by: best.index)
    }
  }

  // MARK: - Owning and losing

  private mutating func own(_ transaction: TransactionRecord, by index: Int) {
    owners[transaction.saleKey] = index
    claims[claimants[index].order.orderId]?.owned.append(transaction)
  }

  private mutating func tellLosses() {
    // Whoever gets nothing where all whose claims may still change are absent gets nothing when they come: who comes to an
    // assignment takes from others, and gives nobody anything.
    let isUnsettled = claimants.map { $0.isUnsettled(rules: rules) }
    let settled =
      isUnsettled.contains(true) ? Matching(deciding: claimants, supporters, rules, without: isUnsettled) : self
    for (sale, named) in contenders {
      for contender in named {
        let isSupported = contender.rank.isProven || !claimants[contender.index].isUserOpen
        lose(contender.transaction, sale, by: contender.index, isFinal: isSupported, settled)
      }
    }
    for loss in crowd?.losses ?? [] {
      for place in loss.sales {
        guard let sale = crowd?.sales[place].transaction else { continue }
        lose(sale, sale.saleKey, by: loss.index, isFinal: true, settled)
      }
    }
    for candidate in unnamed {
      // Of the sandbox only those are claims whom production left without a payment.
      guard claimed.contains(candidate.transaction.key) else { continue }
      lose(candidate.transaction, candidate.transaction.saleKey, by: candidate.index, isFinal: true, settled)
    }
  }

  /// How many lost claims of one order are kept: a user with many orders has lost most of what their receipts bring.
  private static let mostLost = 8

  private mutating func lose(
    _ transaction: TransactionRecord, _ sale: TransactionKey, by index: Int, isFinal: Bool, _ settled: Matching
  ) {
    guard let owner = owners[sale], owner != index else { return }
    let orderId = claimants[index].order.orderId
    // Who has a payment of their own has lost nothing.
    guard var lost = claims[orderId]?.lost, claims[orderId]?.owned.first?.environment != .production else { return }
    let order = claimants[owner].order
    let couldGain = settled.claims[orderId]?.owned.contains { $0.environment == transaction.environment } ?? false
    let claim = LostClaim(
      transaction: transaction, ownerOrderId: order.orderId, ownerUserId: order.userId,
      isFinal: isFinal && !claimants[index].isOpen && !couldGain)
    // A forged proof says enough by itself, unless nothing is decided yet.
    if claim.isFinal, !claimants[index].worth.tellsObstacles { return }
    // They come by id. One that is not final is kept in any case: it decides what is said of them all.
    if lost.count < Matching.mostLost {
      claims[orderId]?.lost.append(claim)
    } else if !claim.isFinal, lost.allSatisfy(\.isFinal) {
      lost[lost.count - 1] = claim
      claims[orderId]?.lost = lost
    }
  }

  private mutating func finish(_ claimant: Claimant, _ index: Int) {
    guard var own = claims[claimant.order.orderId] else { return }
    own.putLiveFirst()
    own.lost.sort { $0.transaction.key < $1.transaction.key }
    // What it owns besides is compared with nothing.
    let mayChange = own.owned.first.map { provisional.contains($0.saleKey) || beatable.contains($0.saleKey) } ?? false
    let mayGain = waiting.contains(index) && !(own.owned.first?.isLive ?? false)
    own.isFinal = !claimant.isOpen && !mayChange && !mayGain
    claims[claimant.order.orderId] = own
  }

  // MARK: - One order by itself

  /// The claims of an order whose transactions nobody else names or brings: the same as matching it alone, at a fraction
  /// of the cost.
  package static func uncontested(_ claimant: Claimant, rules: Rules) -> OrderClaims {
    var own = OrderClaims()
    own.isFinal = !claimant.isOpen
    let target = claimant.named(rules: rules)
    if let target {
      let standing = claimant.standing(named: target, rules: rules)
      if own.take(named: target, standing, worth: claimant.worth) { own.owned = [target] }
    } else if claimant.order.transactionId == nil {
      let nearest =
        claimant.nearestPlace(in: .production, rules: rules) ?? claimant.nearestPlace(in: .sandbox, rules: rules)
      if let nearest {
        // All that it brings is nearly always the one that it owns, and what is handed on as it is costs nothing.
        own.owned = claimant.proven.count == 1 ? claimant.proven : [claimant.proven[nearest]]
      }
    }
    let isAllOwned = claimant.proven.count == 1 && own.owned.first?.key == claimant.proven[0].key
    guard !isAllOwned, own.refused == nil, own.contradictory == nil, !claimant.contradictsOwnPayload else { return own }
    for further in claimant.proven where further.isLive && further.key != own.named {
      let sale = further.saleKey
      guard !own.owned.contains(where: { $0.saleKey == sale }) else { continue }
      if claimant.claimsUnnamed(further, rules: rules) { own.owned.append(further) }
    }
    own.putLiveFirst()
    return own
  }

  /// Claims that share orders or sales, each group by itself: claims in one depend on none in another.
  private static func groups(_ candidates: [Candidate]) -> [[Candidate]] {
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
