import AuditStore
import Reconciliation
import Streams

/// An order with what it contests.
struct Contestant {
  var group: OrderGroup
  /// Transactions that nobody else could own.
  var claimable: [TransactionRecord]
  /// Transactions that others could own as well.
  var contested: [TransactionRecord] = []
}

extension Contestant {
  func write(to record: inout RecordBytes) {
    group.write(to: &record)
    record.put(claimable) { $0.write(to: &$1) }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      group: try OrderGroup(from: &record),
      claimable: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) })
  }
}

/// Orders that have to be matched together, and what they contest.
struct Contest {
  private(set) var contestants: [Identifier: Contestant] = [:]
  private(set) var transactions: [ContestedTransaction] = []
  /// Long lists, each once: what a user sends for each order lists the same purchases.
  private var lists: Set<[TransactionKey]> = []

  mutating func add(_ contestant: Contestant) {
    var contestant = contestant
    for place in contestant.group.proofs.indices where contestant.group.proofs[place].brought.count > 8 {
      contestant.group.proofs[place].brought = lists.insert(contestant.group.proofs[place].brought).memberAfterInsert
    }
    contestants[contestant.group.row.orderId] = contestant
  }

  mutating func add(_ contested: ContestedTransaction) { transactions.append(contested) }

  /// What matching has come to.
  struct Outcome {
    /// By order.
    var claims: [Identifier: OrderClaims]
    /// By order, what of it is contested.
    var contested: [Identifier: [TransactionRecord]]
    var newestProofs: [TransactionKey: CheckSubject]
    /// Contested transactions that no order claims, names or owns.
    var unclaimed: [ContestedTransaction]
    /// Those that nobody owns, whether or not somebody claims them.
    var unowned: [ContestedTransaction]

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
      let contested = contested[orderId] ?? []
      return Matched(
        orderId: orderId, contested: contested, claims: claims,
        newestProofs: contested.reduce(into: [:]) { $0[$1.key] = newestProofs[$1.key] })
    }
  }

  /// Matches orders with transactions. The order in which they were added plays no part.
  consuming func matched(rules: Rules, open: OpenPeople) -> Outcome {
    for transaction in transactions {
      for orderId in transaction.claimants { contestants[orderId]?.contested.append(transaction.record) }
    }
    var claimants: [Claimant] = []
    var lists: [[TransactionKey]: ProvenTransactions] = [:]
    for contestant in contestants.values {
      guard var facts = contestant.facts(rules) else { continue }
      facts.isUserOpen = open.contains(facts.order.userId)
      // What a user sends for each order lists the same purchases: one list says it for all of them.
      if facts.proven.count > 8 {
        let keys = facts.proven.map(\.key)
        facts.list = lists[keys, default: facts.list]
        lists[keys] = facts.list
      }
      claimants.append(facts.claimant)
    }
    let supporters = Dictionary(
      transactions.compactMap { $0.supporters.isEmpty ? nil : ($0.record.key, Set($0.supporters)) }
    ) { $0.union($1) }
    let matching = Matching(of: claimants, supporters: supporters, rules: rules)
    var owned: Set<TransactionKey> = []
    for claims in matching.claims.values { owned.formUnion(claims.owned.map(\.key)) }
    return Outcome(
      claims: matching.claims, contested: contestants.mapValues(\.contested),
      newestProofs: transactions.reduce(into: [:]) { $0[$1.record.key] = $1.newestProof },
      unclaimed: transactions.filter { !matching.claimed.contains($0.record.key) },
      unowned: transactions.filter { !owned.contains($0.record.key) })
  }
}

extension Contestant {
  /// nil for a row that breaks the contract: it claims nothing.
  fileprivate func facts(_ rules: Rules) -> OrderFacts? {
    switch group.row {
    case .bad: nil
    case .valid(let order): OrderFacts(order, group, claimable + contested)
    }
  }
}

extension OrderFacts {
  /// The facts of an order whose claims are not decided yet.
  ///
  /// - Parameter records: what its proofs bring and what is known under the id that it names.
  init(_ order: Order, _ group: OrderGroup, _ records: [TransactionRecord], deliveries: [Delivery] = []) {
    let genuine = group.soundProofs.filter { $0.receipt.state.outcome != .rejected }
    var (proven, known): ([TransactionRecord], [TransactionRecord]) = ([], [])
    // Most orders have one of each; who has hundreds must not cost their product.
    let brought = records.count > 8 ? Set(genuine.lazy.flatMap(\.brought)) : []
    for record in records {
      let key = record.key
      let isProven =
        records.count > 8 ? brought.contains(key) : genuine.contains { $0.brought.contains(key) }
      if isProven { proven.append(record) } else { known.append(record) }
    }
    self.init(
      order: order, deliveries: deliveries, receipts: group.proofs.map(\.receipt), lookup: group.lookup?.state,
      proven: proven, known: known)
  }
}
