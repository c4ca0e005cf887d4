import AuditStore
import Reconciliation
import Streams

extension RelatedOrders {
  struct Matching {
    var transactions = OrderTransactions()
    var matched: Matched?
    var claimants: [TransactionKey: [Identifier]] = [:]
    var owners: [TransactionKey: Identifier] = [:]
    var contested: Set<TransactionKey> = []
    /// By transaction that no order claims, states or owns, its presumed user.
    var unclaimed: [TransactionKey: Identifier?] = [:]
    /// Account tokens that the order lacks, of transactions that it states or has proofs of.
    var otherTokens: Set<String> = []
  }

  /// Matches the transactions with the orders in memory, as the passes do with sorted files.
  func matched(for orderId: Identifier, rules: Rules) -> Matching {
    var result = Matching()
    var claimable: [Identifier: [TransactionRecord]] = [:]
    let people = Dictionary(grouping: groups.values) { ordersWithGoods.contains($0.row.orderId) }
      .mapValues { groups in Set(groups.map { rules.people.person($0.row.userId) }) }
    var contest = ClaimConflict(rules: rules, mixedPeople: (people[true] ?? []).intersection(people[false] ?? []))
    var isContestant: Set<Identifier> = []
    let linkable = linkableOrders.mapValues { LinkableOrders($0) }
    for stored in purchases.values {
      var found: [ContestedTransaction] = []
      for record in stored {
        let candidates = Candidates(
          for: record, references: references[record.transactionId] ?? [], rules: rules)
        var transaction = ContestedTransaction(record, candidates, sharesPurchase: stored.count > 1)
        for link in candidates.awaitedLinks(record, openTokens: .all) {
          linkable[link]?.link(&transaction, by: link, rules: rules)
        }
        found.append(transaction)
        if candidates.affectedOrders.contains(orderId) {
          result.transactions.take(.transaction(record, isClaimable: false, newestProof: candidates.newestProof))
        }
        if candidates.withOtherToken.contains(where: { $0.orderId == orderId }), let token = record.statedToken {
          result.otherTokens.insert(token)
        }
      }
      for purchase in found.asPurchases(hiding: isHidden) {
        let claimants = purchase.reduce(into: Set<Identifier>()) { $0.formUnion($1.claimants) }
        for transaction in purchase {
          let record = transaction.record
          result.claimants[record.key] = transaction.claimants
          if claimants.count > 1 {
            contest.add(transaction)
            isContestant.formUnion(transaction.claimants)
            result.contested.insert(record.key)
          } else if let only = claimants.first {
            if !transaction.claimants.isEmpty { claimable[only, default: []].append(record) }
            if only == orderId, let fact = transaction.factForOnlyOrder { result.transactions.take(fact) }
          } else if !transaction.awaitsDetails {
            result.unclaimed[record.key] = .some(transaction.userId)
          }
        }
      }
    }
    var claims: [Identifier: OrderClaims] = [:]
    for (orderId, records) in claimable where !isContestant.contains(orderId) {
      guard records.contains(where: { $0.productionSubscription != nil }), let group = groups[orderId],
        case .valid(let order) = group.row
      else { continue }
      let facts = OrderFacts(order, group, claimable: records, others: [])
      claims[orderId] = Reconciliation.Matching.uncontested(facts.claimant(rules), rules: rules)
    }
    for contestant in isContestant {
      guard let group = groups[contestant] else { continue }
      let hasGoods = ordersWithGoods.contains(contestant)
      contest.add(ContestedOrder(group: group, claimable: claimable[contestant] ?? [], hasGoods: hasGoods)) {
        claims[$0] = $1
      }
    }
    let outcome = contest.matched()
    outcome.forEach { claims[$0] = $1 }
    if isContestant.contains(orderId), let own = claims[orderId] { result.matched = outcome.matched(orderId, own) }
    for transaction in outcome.unclaimed where !transaction.awaitsDetails {
      result.unclaimed[transaction.record.key] = .some(transaction.userId)
    }
    var periods: [OwnedPeriod] = []
    for (owner, claims) in claims {
      for record in claims.owned { result.owners[record.key] = owner }
      guard case .valid(let order) = groups[owner]?.row else { continue }
      periods += claims.owned.compactMap { OwnedPeriod($0, ownedBy: order, isFinal: claims.isFinal) }
    }
    for (subscription, periods) in Dictionary(grouping: periods, by: \.subscription) {
      guard let neighbors = SubscriptionOwners(periods, people: rules.people).neighbors[orderId] else { continue }
      result.transactions.take(.neighbors(subscription: subscription, neighbors))
    }
    return result
  }

  /// A purchase as reports show it.
  struct Purchase {
    /// The record with the ID that reports show. The order may lack this ID.
    var shown: TransactionRecord
    /// The records that the order refers to or is linked to, by key. At least one.
    var records: [TransactionRecord]
  }

  /// - Parameters:
  ///   - records: transactions of one purchase, at least one.
  ///   - stated: the transaction ID that the order states.
  func purchase(of records: [TransactionRecord], stated: Identifier?) -> Purchase {
    let sorted = records.sorted { $0.key < $1.key }
    let own = sorted[0]
    let shown = self.records[own.shownId(stated: stated)]?.first { $0.purchaseKey == own.purchaseKey }
    return Purchase(shown: shown ?? own, records: sorted)
  }

  /// The claims to a transaction, and how its owner was found.
  func reasoning(
    about record: TransactionRecord, _ matching: Matching, ownedBy owner: Identifier?, _ rules: Rules
  ) -> ClaimReasoning {
    // Another ID of the purchase may be the one that a competitor refers to, or that the owner has.
    let keys = record.keys
    let ids = Set(keys.flatMap { references[$0.transactionId] ?? [] }.compactMap { $0.order?.orderId })
      .union(keys.flatMap { matching.claimants[$0] ?? [] })
    let claimants = ids.compactMap { id -> Claimant? in
      guard let group = groups[id], case .valid(let order) = group.row else { return nil }
      let byToken = matching.claimants.lazy.filter { $0.value.contains(id) }.map(\.key.transactionId)
      let mentioned = Set(group.references.map(\.transactionId)).union(byToken).flatMap { records[$0] ?? [] }
      var facts = OrderFacts(
        order, group, claimable: mentioned.filter { !matching.contested.contains($0.key) },
        others: mentioned.filter { matching.contested.contains($0.key) })
      facts.hasGoods = ordersWithGoods.contains(id)
      return facts.claimant(rules)
    }
    let owner =
      owner ?? keys.lazy.compactMap { matching.owners[$0] }.first ?? soleOwner(of: record, matching, claimants, rules)
    return ClaimReasoning(of: record, among: claimants, owner: owner, rules: rules)
  }

  private func soleOwner(
    of record: TransactionRecord, _ matching: Matching, _ claimants: [Claimant], _ rules: Rules
  ) -> Identifier? {
    let keys = record.keys
    let orders = Set(keys.flatMap { matching.claimants[$0] ?? [] })
    guard !keys.contains(where: matching.contested.contains), orders.count == 1,
      let claimant = claimants.first(where: { orders.contains($0.order.orderId) })
    else { return nil }
    let owned = Reconciliation.Matching.uncontested(claimant, rules: rules).owned
    return owned.contains { $0.purchaseKey == record.purchaseKey } ? claimant.order.orderId : nil
  }
}
