import AuditStore
import Reconciliation
import Streams

/// An order with what it contests.
struct Contestant {
  var group: OrderGroup
  /// Transactions that nobody else could own.
  var claimable: [TransactionRecord]
  /// Whether goods of the order were delivered and not taken back.
  var hasGoods = false
}

extension Contestant {
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

/// What orders contest: transactions that the same orders could own are kept once for all of them.
private struct ContestedByOrder {
  /// By the orders that could own them.
  private var places: [Claimants: Int32] = [:]
  private var transactions: [[TransactionRecord]] = []
  /// Most orders have one place.
  private var placeByOrder: [Identifier: Int32] = [:]
  /// What one user's receipts list comes together.
  private var furtherPlacesByOrder: [Identifier: [Range<Int32>]] = [:]

  mutating func add(_ record: TransactionRecord, claimants: [Identifier]) {
    let own = Claimants(claimants)
    if let place = places[own] { return transactions[Int(place)].append(record) }
    let place = Int32(transactions.count)
    places[own] = place
    transactions.append([record])
    for orderId in claimants {
      if placeByOrder[orderId] == nil {
        placeByOrder[orderId] = place
      } else {
        furtherPlacesByOrder[orderId, default: []].appendPlace(place)
      }
    }
  }

  /// Which orders they are, by a hash that differs from run to run: as many ids as there are claims would have to be kept
  /// for telling them apart by more.
  private struct Claimants: Hashable {
    let hash, count: Int
    let first, last: Identifier?

    init(_ orderIds: [Identifier]) {
      (hash, count, first, last) = (orderIds.hashValue, orderIds.count, orderIds.first, orderIds.last)
    }
  }

  /// Makes restores after a full refund purchases of their own.
  mutating func separateRepurchases() {
    let separated = TransactionRecord.separatingRepurchases(transactions.flatMap(\.self))
    var place = 0
    for list in transactions.indices {
      for record in transactions[list].indices {
        transactions[list][record] = separated[place]
        place += 1
      }
    }
  }

  func of(_ orderId: Identifier) -> [TransactionRecord] {
    guard let place = placeByOrder[orderId] else { return [] }
    let own = transactions[Int(place)]
    guard let further = furtherPlacesByOrder[orderId] else { return own }
    return own + further.flatMap { places in places.lazy.flatMap { transactions[Int($0)] } }
  }
}

extension [Range<Int32>] {
  /// Adds a place after all others.
  fileprivate mutating func appendPlace(_ place: Int32) {
    if let last, last.upperBound == place {
      self[count - 1] = last.lowerBound..<(place + 1)
    } else {
      append(place..<(place + 1))
    }
  }
}

/// Orders that have to be matched together, and what they contest. Transactions come before orders, of which no more is kept
/// than what they have to say for themselves: there may be as many of them as anybody's orders name one id.
struct Contest {
  private let rules: Rules
  /// Without their claimants.
  private var transactions: [ContestedTransaction] = []
  private var contested = ContestedByOrder()
  private var isSeparated = false
  private var claimants: [Claimant] = []
  /// Of orders that contest nothing but the ID that they state and are alike, the two best.
  private var kinds: [EquivalentClaimants: Int] = [:]
  private var best: [Best] = []
  /// All of them but the best of each kind, with the place of their kind.
  private var alike: [(orderId: Identifier, kind: Int32)] = []
  /// Long lists, each once, by their keys' hash: what a user sends for each order lists the same purchases.
  private var lists: [Int: [ProvenTransactions]] = [:]

  /// Of one kind. The first may own what they state; the second has lost the same as all others.
  private struct Best {
    var first: Claimant
    var second: Claimant?
  }

  init(rules: Rules) { self.rules = rules }

  /// Adds a transaction. Not after the first order.
  mutating func add(_ transaction: ContestedTransaction) {
    contested.add(transaction.record, claimants: transaction.claimants)
    var transaction = transaction
    transaction.claimants = []
    transactions.append(transaction)
  }

  /// Adds an order; a row that breaks the contract claims nothing.
  mutating func add(_ contestant: Contestant) {
    guard case .valid(let order) = contestant.group.row else { return }
    if !isSeparated { contested.separateRepurchases() }
    isSeparated = true
    var facts = OrderFacts(
      order, contestant.group, claimable: contestant.claimable, others: contested.of(order.orderId))
    facts.hasGoods = contestant.hasGoods
    if facts.proven.count > 8 { facts.list = shared(facts.list) }
    let claimant = facts.claimant(rules)
    guard let kind = EquivalentClaimants(claimant, rules: rules) else { return claimants.append(claimant) }
    add(claimant, of: kind)
  }

  private mutating func shared(_ list: ProvenTransactions) -> ProvenTransactions {
    let hash = list.hashOfKeys
    if let known = lists[hash]?.first(where: { $0.holdsTheSame(as: list) }) { return known }
    lists[hash, default: []].append(list)
    return list
  }

  private mutating func add(_ claimant: Claimant, of kind: EquivalentClaimants) {
    guard let place = kinds[kind] else {
      kinds[kind] = best.count
      best.append(Best(first: claimant))
      return
    }
    var later = claimant
    if claimant.precedes(best[place].first, rules: rules) { swap(&best[place].first, &later) }
    alike.append((later.order.orderId, Int32(place)))
    if best[place].second.map({ later.precedes($0, rules: rules) }) ?? true { best[place].second = later }
  }

  /// What matching has come to.
  struct Outcome {
    /// By order that was matched.
    fileprivate let claims: [Identifier: OrderClaims]
    /// Orders that have lost the same as one that was matched, which is among them.
    fileprivate let alike: [(orderId: Identifier, as: Identifier)]
    /// By order, what of it is contested.
    fileprivate let contested: ContestedByOrder
    fileprivate let newestProofs: [TransactionKey: CheckSubject]
    /// Contested transactions that no order claims, names or owns, nor the sale behind them.
    let unclaimed: [ContestedTransaction]
    /// Those that nobody owns, whether or not somebody claims them.
    let unowned: [ContestedTransaction]

    /// Hands on what it has come to for each order, in no order.
    func forEach(_ body: (Identifier, OrderClaims) throws -> Void) rethrows {
      let isAlike = Set(alike.map(\.as))
      for (orderId, claims) in claims where !isAlike.contains(orderId) { try body(orderId, claims) }
      for (orderId, other) in alike {
        if let claims = claims[other] { try body(orderId, claims) }
      }
    }

    /// What it has come to for one order; nil for one that contests nothing.
    func claims(of orderId: Identifier) -> OrderClaims? {
      guard let other = alike.first(where: { $0.orderId == orderId }) else { return claims[orderId] }
      return claims[other.as]
    }

    /// What of it decides about one order: who owns a payment is judged by what it owns and has lost.
    func decisive(_ orderId: Identifier, _ claims: OrderClaims) -> Matched {
      guard claims.owned.first?.environment == .production else { return matched(orderId, claims) }
      let about = claims.owned.map(\.key) + claims.lost.map(\.transaction.key)
      return Matched(
        orderId: orderId, contested: [], claims: claims,
        newestProofs: about.reduce(into: [:]) { $0[$1] = newestProofs[$1] })
    }

    /// What it has come to for one order.
    func matched(_ orderId: Identifier, _ claims: OrderClaims) -> Matched {
      let contested = contested.of(orderId)
      return Matched(
        orderId: orderId, contested: contested, claims: claims,
        newestProofs: contested.reduce(into: [:]) { $0[$1.key] = newestProofs[$1.key] })
    }
  }

  /// Matches orders with transactions. The order in which they were added plays no part.
  consuming func matched() -> Outcome {
    let alike = alike.compactMap { order in
      best[Int(order.kind)].second.map { (orderId: order.orderId, as: $0.order.orderId) }
    }
    for kind in best { claimants += [kind.first] + [kind.second].compactMap(\.self) }
    let matching = Matching(of: claimants, rules: rules)
    var owned: Set<TransactionKey> = []
    for claims in matching.claims.values { owned.formUnion(claims.owned.map(\.key)) }
    return Outcome(
      claims: matching.claims, alike: alike, contested: contested,
      newestProofs: transactions.reduce(into: [:]) { $0[$1.record.key] = $1.newestProof },
      unclaimed: transactions.filter { !matching.isClaimed($0.record) },
      unowned: transactions.filter { !owned.contains($0.record.key) })
  }
}

extension OrderFacts {
  /// The facts of an order whose claims are not decided yet.
  ///
  /// - Parameters:
  ///   - claimable: what its proofs bring and what is known under the id that it names, as far as nobody else could own it.
  ///     What nobody proves is there for whoever asks.
  ///   - others: the same that others could own, too. There it takes a proof.
  init(
    _ order: Order, _ group: OrderGroup, claimable: [TransactionRecord], others: [TransactionRecord],
    deliveries: [Delivery] = []
  ) {
    let sound = group.soundProofs
    let genuine = sound.filter(\.receipt.state.isProof)
    let unproven = sound.count == genuine.count ? [] : sound.filter(\.receipt.state.isUnproven)
    let records = others.isEmpty ? claimable : claimable + others
    var (proven, known): ([TransactionRecord], [TransactionRecord]) = ([], [])
    // Most orders have one of each; who has hundreds must not cost their product.
    var lists = records.count > 8 ? genuine.map { SortedKeys($0.brought) } : []
    for (place, record) in records.enumerated() {
      let key = record.key
      var isProven = false
      if records.count > 8 {
        for place in lists.indices where !isProven { isProven = lists[place].contains(key) }
      } else {
        isProven = genuine.contains { $0.brought.contains(key) }
      }
      if !isProven, place < claimable.count { isProven = unproven.contains { $0.brought.contains(key) } }
      if isProven { proven.append(record) } else { known.append(record) }
    }
    self.init(
      order: order, deliveries: deliveries, receipts: group.proofs.map(\.receipt), lookup: group.lookup?.state,
      proven: proven, known: known)
    let awaiting = genuine.filter(\.receipt.state.awaitsDetails)
    if awaiting.isEmpty { return }
    let answered = genuine.filter { !$0.receipt.state.awaitsDetails }
    awaited = Set(awaiting.flatMap(\.brought)).subtracting(answered.flatMap(\.brought))
      .subtracting(group.lookup?.brought ?? [])
  }
}

/// Looks keys up in a long list. Those that come in its order are found at once.
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
