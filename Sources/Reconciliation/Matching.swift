/// Which transaction belongs to which order. A transaction has at most one owner.
///
/// Decided from orders and evidence alone; the order of input plays no part. First those who name a transaction, the best
/// claim of each owning it; then the one-to-one assignment of those who name none, in production and then in the sandbox;
/// in between what is left over: names that had to yield and got their transaction after all, and further live payments
/// that an order's own receipts bring.
public struct Matching {
  /// By order id; every claimant has an entry.
  public internal(set) var claims: [Identifier: OrderClaims] = [:]
  /// Every transaction that some order claims, names or owns.
  public internal(set) var claimed: Set<TransactionKey> = []

  let rules: Rules
  let claimants: [Claimant]
  /// By place among the claimants.
  let isAbsent: [Bool]
  let supporters: [TransactionKey: Set<Identifier>]
  /// Owner by sale, as an index into `claimants`.
  var owners: [TransactionKey: Int] = [:]
  /// Sales whose owner may change when a missing answer comes.
  var provisional: Set<TransactionKey> = []
  /// Sales whose owner may turn out to be beaten by a better claim, which helps none of those that lost.
  var beatable: Set<TransactionKey> = []
  /// Claimants who would have a live payment, or a further one, had an order not taken it that may yet have another or none.
  var waiting: Set<Int> = []
  /// Those who name a sale and could be paid by it, the best first.
  var contenders: [TransactionKey: [Contender]] = [:]

  /// Claims without a name.
  var unnamed: [Candidate] = []
  /// Set where all claims are those of one.
  var crowd: Crowd?

  /// An order that names a transaction.
  struct Contender {
    var index: Int
    var transaction: TransactionRecord
    var rank: ClaimRank
  }

  /// An order that claims a transaction without naming it.
  struct Candidate {
    var index: Int
    var transaction: TransactionRecord
  }

  /// Matches these orders with what they claim.
  ///
  /// - Parameters:
  ///   - input: orders that compete for no transaction with any order that is not among them.
  ///   - supporters: of transactions that somebody names, the users whose genuine receipts bring them without having been
  ///     sent for one of these orders. What the receipts of these orders bring is known without it.
  public init(
    of input: consuming [Claimant], supporters: [TransactionKey: Set<Identifier>] = [:], rules: Rules
  ) {
    let claimants = input.sorted { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
    self.init(
      deciding: claimants, supporters, rules, without: Array(repeating: false, count: claimants.count))
    tellLosses()
    for (index, claimant) in claimants.enumerated() { finish(claimant, index) }
  }

  /// - Parameter isAbsent: by place, whether the order claims nothing, though what their proofs bring supports the names of their users.
  init(
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

  /// Whether some order claims, names or owns the transaction, or owns the sale behind it: it is no orphan then.
  public func isClaimed(_ record: TransactionRecord) -> Bool {
    claimed.contains(record.key) || owners[record.saleKey] != nil
  }

  // MARK: - Named

  /// - Returns: the sales whose named claims yield to orders that do not name them.
  mutating func matchNamed(_ targets: [TransactionRecord?]) -> Set<TransactionKey> {
    let people = people(bringing: Set(targets.compactMap { $0?.key }))
    for (index, target) in targets.enumerated() {
      let claimant = claimants[index]
      guard let target else {
        if !isAbsent[index], let open = claimant.openName {
          claims[claimant.order.orderId]?.named = open
          claimed.insert(open)
        }
        continue
      }
      let standing = claimant.standing(named: target, rules: rules)
      let isEligible =
        claims[claimant.order.orderId]?.take(named: target, standing, worth: claimant.worth) ?? false
      guard let key = claims[claimant.order.orderId]?.named else { continue }
      claimed.insert(key)
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
  func people(bringing keys: Set<TransactionKey>) -> [TransactionKey: Set<Identifier>] {
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
  func bestUnnamed() -> [TransactionKey: ClaimRank] {
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
  func peopleClaiming() -> [TransactionKey: Set<Identifier>] {
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
  func isOfInterest(_ transaction: TransactionRecord, to person: Identifier) -> Bool {
    guard let first = contenders[transaction.saleKey]?.first else { return false }
    return first.rank.isFalse || rules.people.person(claimants[first.index].order.userId) != person
  }

  struct ListOfPerson: Hashable {
    var list: ObjectIdentifier
    var person: Identifier
  }
}
