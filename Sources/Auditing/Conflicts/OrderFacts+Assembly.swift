import Reconciliation

extension OrderFacts {
  /// Assembles the facts that an order is judged by. `matched` is nil if the order's claims are uncontested.
  static func assembled(
    _ order: Order, _ group: OrderGroup, _ deliveries: [Delivery], _ transactions: OrderTransactions,
    _ matched: Matched?, rules: Rules, open: PeopleWithOpenReceipts
  ) -> OrderFacts {
    var facts = OrderFacts(order, group, claimable: transactions.claimable, others: [], deliveries: deliveries)
    let claims = matched?.claims ?? Matching.uncontested(facts.claimant(rules), rules: rules)
    var others = (matched?.contested ?? []) + transactions.others
    // The purchases that the order owns, because its links to them decide what it would prefer.
    others += claims.owned.filter { owned in
      !transactions.claimable.contains { $0.isSame(as: owned) } && !others.contains { $0.isSame(as: owned) }
    }
    if !others.isEmpty {
      facts = OrderFacts(order, group, claimable: transactions.claimable, others: others, deliveries: deliveries)
    }
    facts.claims = claims
    if group.proofs.count > 1 {
      // The contested transactions left out above can be owned too, so their receipts are added here.
      for record in claims.owned {
        let sourceReceipts = group.soundProofs.filter {
          $0.receipt.state.outcome != .rejected && $0.contained.contains(record.key)
        }
        facts.sourceReceipts[record.key] = sourceReceipts.map(\.receipt.receiptId).min()
      }
    }
    facts.unansweredOrders = open.orders(of: order.userId)
    if facts.needsAccountTokenUser, let token = facts.comparable?.statedToken {
      facts.accountTokenUser = transactions.tokenUsers[token]
    }
    if let neighbors = facts.ownedSubscription.flatMap({ transactions.neighbors[$0] }) { facts.take(neighbors) }
    return facts
  }
}
