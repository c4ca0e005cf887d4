import AuditStore
import Reconciliation
import Streams

/// An order with contested claims.
struct ContestedOrder {
  var group: OrderGroup
  /// Transactions that only this order could own.
  var claimable: [TransactionRecord]
  var hasGoods = false
}

extension ContestedOrder {
  func write(to record: inout RecordBytes) {
    group.write(to: &record)
    record.put(claimable) { $0.write(to: &$1) }
    record.put(hasGoods)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      group: try OrderGroup(from: &record),
      claimable: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) },
      hasGoods: try record.flag())
  }
}

/// Orders with contested claims, by batch, and the people who have goods of some of their orders.
struct ContestedOrders {
  let records: SpillSorter
  fileprivate(set) var people: (withGoods: Set<Identifier>, without: Set<Identifier>) = ([], [])

  var mixedPeople: Set<Identifier> { people.withGoods.intersection(people.without) }

  init(records: SpillSorter) { self.records = records }

  mutating func note(_ person: Identifier, hasGoods: Bool) {
    if hasGoods { people.withGoods.insert(person) } else { people.without.insert(person) }
  }

  mutating func absorb(_ other: ContestedOrders) throws {
    try records.absorb(other.records)
    people.withGoods.formUnion(other.people.withGoods)
    people.without.formUnion(other.people.without)
  }
}

/// Contested transactions by order. Transactions with the same possible owners are stored once.
private struct ContestedTransactionsByOrder {
  /// Transactions that a token links to orders of a timeline.
  private struct LinkedTransactions {
    var transactions: [(record: TransactionRecord, places: Range<Int>)] = []
    /// All places up to the last one of a transaction.
    var places: Range<Int>
    lazy var list = VerifiedTransactions(transactions.map(\.record))
  }

  private let timelines: [[Identifier]]
  private var linked: [Int: LinkedTransactions] = [:]
  private var linkedPlaces: [Identifier: (timeline: Int, place: Int)] = [:]
  private var places: [Claimants: Int32] = [:]
  private var transactions: [[TransactionRecord]] = []
  private var placeByOrder: [Identifier: Int32] = [:]
  /// Ranges, because transactions listed in one user's receipts are adjacent.
  private var additionalPlacesByOrder: [Identifier: [Range<Int32>]] = [:]
  /// The first few sets of very many orders, sorted by ID. A search in one takes less memory than an entry per order.
  private var largeSets: [(claimants: [Identifier], place: Int32)] = []
  private let largeSetSize: Int

  init(timelines: [[Identifier]], largeSetSize: Int) {
    (self.timelines, self.largeSetSize) = (timelines, largeSetSize)
  }

  mutating func add(_ transaction: ContestedTransaction) {
    for range in transaction.linked {
      let start = range.places.lowerBound
      var linked = self.linked.removeValue(forKey: range.timeline) ?? LinkedTransactions(places: start..<start)
      linked.transactions.append((transaction.record, range.places))
      let all = min(start, linked.places.lowerBound)..<max(range.places.upperBound, linked.places.upperBound)
      for places in [all.lowerBound..<linked.places.lowerBound, linked.places.upperBound..<all.upperBound] {
        for place in places { linkedPlaces[timelines[range.timeline][place]] = (range.timeline, place) }
      }
      linked.places = all
      self.linked[range.timeline] = linked
    }
    if !transaction.claimants.isEmpty || transaction.linked.isEmpty {
      add(transaction.record, claimants: transaction.claimants)
    }
  }

  private mutating func add(_ record: TransactionRecord, claimants: [Identifier]) {
    let own = Claimants(claimants)
    if let place = places[own] { return transactions[Int(place)].append(record) }
    let place = Int32(transactions.count)
    places[own] = place
    transactions.append([record])
    if claimants.count >= largeSetSize, largeSets.count < 8 { return largeSets.append((claimants, place)) }
    for orderId in claimants {
      if placeByOrder[orderId] == nil {
        placeByOrder[orderId] = place
      } else {
        additionalPlacesByOrder[orderId, default: []].appendPlace(place)
      }
    }
  }

  /// Identifies a set of orders by a hash, seeded per process. Storing the IDs would take one ID for each claim.
  private struct Claimants: Hashable {
    let hash, count: Int
    let first, last: Identifier?

    init(_ orderIds: [Identifier]) {
      (hash, count, first, last) = (orderIds.hashValue, orderIds.count, orderIds.first, orderIds.last)
    }
  }

  /// All contested transactions that the order could own.
  func of(_ orderId: Identifier) -> [TransactionRecord] {
    let own = listed(orderId)
    guard let (timeline, place) = linkedPlaces[orderId], let linked = linked[timeline] else { return own }
    let keys = Set(own.map(\.key))
    let further = linked.transactions.filter { $0.places.contains(place) && !keys.contains($0.record.key) }
    return own + further.map(\.record)
  }

  /// The transactions that list the order as a claimant.
  func listed(_ orderId: Identifier) -> [TransactionRecord] {
    var own = placeByOrder[orderId].map { transactions[Int($0)] } ?? []
    for places in additionalPlacesByOrder[orderId] ?? [] {
      for place in places { own += transactions[Int(place)] }
    }
    for (claimants, place) in largeSets {
      let found = claimants.partitioningIndex { $0 >= orderId }
      if found < claimants.count, claimants[found] == orderId { own += transactions[Int(place)] }
    }
    return own
  }

  /// The transactions that a token links to the order or to others of its timeline: one list for all of them.
  mutating func linkedList(of orderId: Identifier) -> VerifiedTransactions? {
    guard let (timeline, _) = linkedPlaces[orderId] else { return nil }
    return linked[timeline]?.list
  }
}

extension [Range<Int32>] {
  fileprivate mutating func appendPlace(_ place: Int32) {
    if let last, last.upperBound == place {
      self[count - 1] = last.lowerBound..<(place + 1)
    } else {
      append(place..<(place + 1))
    }
  }
}

/// Orders that are matched together, with their contested transactions, which are added first. Little is kept of an
/// order, because any number of orders may state one ID.
struct ClaimConflict {
  private let rules: Rules
  private var transactions: [ContestedTransaction] = []
  private var contested: ContestedTransactionsByOrder
  private var claimants: [Claimant] = []
  /// Places in `best`: for equivalent orders that contest only their stated ID, the two best are kept.
  private var kinds: [EquivalentClaimants: Int] = [:]
  private var best: [BestClaimants] = []
  /// All other equivalent orders, with the place of their kind.
  private var alike: [(orderId: Identifier, kind: Int32)] = []
  /// Long lists, each stored once, by the hash of their keys. Receipts of one user list the same purchases.
  private var lists: [Int: [VerifiedTransactions]] = [:]

  /// The two best orders of a kind. Only the first may own; all others lose the same as the second.
  private struct BestClaimants {
    var first: Claimant
    var second: Claimant?
  }

  private let mixedPeople: Set<Identifier>
  /// By shared purchase, the nearest order that owns another purchase in any case.
  private var nearest: [PurchaseKey: (rank: LinkRank, orderId: Identifier)] = [:]
  /// These nearest orders, with the number of such purchases.
  private var nearestOrders: [Identifier: (claimant: Claimant, claims: OrderClaims, purchases: Int)] = [:]
  /// Transactions that orders left out of the matching state or are linked to.
  private var claimed: Set<TransactionKey> = []
  private var awaitedRefunds: Set<PurchaseKey> = []

  /// - Parameter largeSetSize: the number of a transaction's claimants that are searched instead of indexed.
  init(
    rules: Rules, mixedPeople: Set<Identifier>, timelines: [[Identifier]] = [], largeSetSize: Int = 1 << 14
  ) {
    (self.rules, self.mixedPeople) = (rules, mixedPeople)
    contested = ContestedTransactionsByOrder(timelines: timelines, largeSetSize: largeSetSize)
  }

  mutating func add(_ transaction: ContestedTransaction) {
    contested.add(transaction)
    var transaction = transaction
    (transaction.claimants, transaction.linked) = ([], [])
    transactions.append(transaction)
  }

  /// - Parameter decided: gets an order whose claims the matching cannot change. The result does not contain it.
  mutating func add(_ contestedOrder: ContestedOrder, decided: (Identifier, OrderClaims) throws -> Void) rethrows {
    guard case .valid(let order) = contestedOrder.group.row else { return }
    var facts = OrderFacts(
      order, contestedOrder.group, claimable: contestedOrder.claimable,
      others: contested.listed(order.orderId))
    facts.hasGoods = contestedOrder.hasGoods
    if facts.proven.count > 8 { facts.list = shared(facts.list) }
    if facts.known.count > 8 { facts.knownList = shared(facts.knownList) }
    if let linked = contested.linkedList(of: order.orderId) {
      let known = facts.known.filter { !linked.contains($0.key) }
      facts.knownList = known.isEmpty ? linked : VerifiedTransactions(known + linked.records)
    }
    awaitedRefunds.formUnion(facts.awaitedRefunds(rules))
    let claimant = facts.claimant(rules)
    let own = Set(contestedOrder.claimable.map(\.purchaseKey))
    if let secure = SecureOwner(claimant, own: own, rules: rules) { return try add(claimant, secure, decided) }
    guard let kind = EquivalentClaimants(claimant, mixedPeople: mixedPeople, rules: rules) else {
      return claimants.append(claimant)
    }
    add(claimant, of: kind)
  }

  /// Keeps the order only if it is the nearest to a purchase that may be left over.
  private mutating func add(
    _ claimant: Claimant, _ secure: SecureOwner, _ decided: (Identifier, OrderClaims) throws -> Void
  ) rethrows {
    claimed.formUnion(secure.claimed)
    let orderId = claimant.order.orderId
    var (purchases, displaced) = (0, [Identifier]())
    for (purchase, rank) in secure.furtherCharges {
      let known = nearest[purchase]
      if let known, !rank.isNearer(than: known.rank) { continue }
      nearest[purchase] = (rank, orderId)
      purchases += 1
      if let known { displaced.append(known.orderId) }
    }
    if purchases == 0 { return try decided(orderId, secure.claims) }
    nearestOrders[orderId] = (claimant, secure.claims, purchases)
    for orderId in displaced {
      nearestOrders[orderId]?.purchases -= 1
      guard let known = nearestOrders[orderId], known.purchases == 0 else { continue }
      nearestOrders[orderId] = nil
      try decided(orderId, known.claims)
    }
  }

  private mutating func shared(_ list: VerifiedTransactions) -> VerifiedTransactions {
    let hash = list.hashOfKeys
    if let known = lists[hash]?.first(where: { $0.hasSameTransactions(as: list) }) { return known }
    lists[hash, default: []].append(list)
    return list
  }

  private mutating func add(_ claimant: Claimant, of kind: EquivalentClaimants) {
    guard let place = kinds[kind] else {
      kinds[kind] = best.count
      best.append(BestClaimants(first: claimant))
      return
    }
    var later = claimant
    if claimant.precedes(best[place].first, rules: rules) { swap(&best[place].first, &later) }
    alike.append((later.order.orderId, Int32(place)))
    if best[place].second.map({ later.precedes($0, rules: rules) }) ?? true { best[place].second = later }
  }

  struct Outcome {
    fileprivate let claims: [Identifier: OrderClaims]
    /// Orders with the same losses as the second best of their kind, which is one of them.
    fileprivate let alike: [(orderId: Identifier, kind: Int32)]
    fileprivate let seconds: [Identifier?]
    fileprivate let contested: ContestedTransactionsByOrder
    fileprivate let newestProofs: [TransactionKey: CheckSubject]
    let unclaimed: [ContestedTransaction]
    let unowned: [ContestedTransaction]

    func forEach(_ body: (Identifier, OrderClaims) throws -> Void) rethrows {
      let isAlike = Set(seconds.compactMap(\.self))
      for (orderId, claims) in claims where !isAlike.contains(orderId) { try body(orderId, claims) }
      for (orderId, kind) in alike {
        if let claims = seconds[Int(kind)].flatMap({ claims[$0] }) { try body(orderId, claims) }
      }
    }

    /// The part of the result that its judgement needs: an owner is judged by its own and its lost claims.
    func decisive(_ orderId: Identifier, _ claims: OrderClaims) -> Matched {
      guard claims.owned.first?.environment == .production else { return matched(orderId, claims) }
      let about = claims.owned.map(\.key) + claims.lost.map(\.transaction.key)
      return Matched(
        orderId: orderId, contested: [], claims: claims,
        newestProofs: about.reduce(into: [:]) { $0[$1] = newestProofs[$1] })
    }

    func matched(_ orderId: Identifier, _ claims: OrderClaims) -> Matched {
      let contested = contested.of(orderId)
      return Matched(
        orderId: orderId, contested: contested, claims: claims,
        newestProofs: contested.reduce(into: [:]) { $0[$1.key] = newestProofs[$1.key] })
    }
  }

  consuming func matched() -> Outcome {
    claimants += nearestOrders.values.map(\.claimant)
    for kind in best { claimants += [kind.first] + [kind.second].compactMap(\.self) }
    let matching = Matching(of: claimants, awaitedRefunds: awaitedRefunds, rules: rules)
    let claimed = claimed
    var owned: Set<PurchaseKey> = []
    for claims in matching.claims.values { owned.formUnion(claims.owned.map(\.purchaseKey)) }
    return Outcome(
      claims: matching.claims, alike: alike, seconds: best.map(\.second?.order.orderId), contested: contested,
      newestProofs: transactions.reduce(into: [:]) { $0[$1.record.key] = $1.newestProof },
      unclaimed: transactions.filter { transaction in
        !matching.isClaimed(transaction.record) && !transaction.record.keys.contains(where: claimed.contains)
      },
      unowned: transactions.filter { !owned.contains($0.record.purchaseKey) })
  }
}

extension OrderFacts {
  /// The facts of an order before its claims are decided. `claimable` transactions have no other possible owner and
  /// need no verified proof; `others` need one.
  init(
    _ order: Order, _ group: OrderGroup, claimable: [TransactionRecord], others: [TransactionRecord],
    deliveries: [Delivery] = []
  ) {
    let sound = group.soundProofs
    // Closures, because key paths through generic types are built at run time.
    let genuine = sound.filter { $0.receipt.state.isProof }
    let unproven = sound.count == genuine.count ? [] : sound.filter { $0.receipt.state.isUnproven }
    let records = others.isEmpty ? claimable : claimable + others
    var (proven, known): ([TransactionRecord], [TransactionRecord]) = ([], [])
    // Avoids quadratic time for orders with hundreds of proofs and transactions; most orders have one of each.
    var lists = records.count > 8 ? genuine.map { SortedKeys($0.contained) } : []
    for (place, record) in records.enumerated() {
      let key = record.key
      var isProven = false
      if records.count > 8 {
        for place in lists.indices where !isProven { isProven = lists[place].contains(key) }
      } else {
        isProven = genuine.contains { $0.contained.contains(key) }
      }
      if !isProven, place < claimable.count { isProven = unproven.contains { $0.contained.contains(key) } }
      if isProven { proven.append(record) } else { known.append(record) }
    }
    self.init(
      order: order, deliveries: deliveries, receipts: group.proofs.map(\.receipt), lookup: group.lookup?.state,
      proven: proven, known: known)
    let awaiting = genuine.filter { $0.receipt.state.awaitsDetails }
    if awaiting.isEmpty { return }
    let answered = genuine.filter { !$0.receipt.state.awaitsDetails }
    awaited = Set(awaiting.flatMap(\.contained)).subtracting(answered.flatMap(\.contained))
      .subtracting(group.lookup?.contained ?? [])
  }
}

/// Looks keys up in a long list; keys in ascending order are found in constant time.
private struct SortedKeys {
  private let keys: [TransactionKey]
  private var next = 0

  init(_ keys: [TransactionKey]) {
    let isSorted = zip(keys, keys.dropFirst()).allSatisfy { !($1 < $0) }
    self.keys = isSorted ? keys : keys.sorted()
  }

  mutating func contains(_ key: TransactionKey) -> Bool {
    if next < keys.count, keys[next] == key {
      next += 1
      return true
    }
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    next = low
    guard low < keys.count, keys[low] == key else { return false }
    next += 1
    return true
  }
}
