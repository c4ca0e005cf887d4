import Reconciliation

extension OrderFacts {
  /// Puts together what an order is judged by: in the audit of all orders, and where one of them is explained.
  ///
  /// - Parameters:
  ///   - transactions: those that are filed under the order.
  ///   - receipts: those of its receipts that have something to say beside the transactions that they brought.
  ///   - lookup: what became of asking Apple about the transaction id that it names; nil where nobody asks.
  ///   - contestant: what was settled for it among several orders; nil where nobody contests its claims.
  ///   - everyReceipt: reads all of its receipts, sound ones too.
  static func assembled(
    _ order: Order, deliveries: [Delivery], transactions: [TransactionRecord], receipts: [Receipt],
    lookup: ProofState?, contestant: Contestant?, rules: Rules,
    everyReceipt: () throws -> [Receipt]
  ) rethrows -> OrderFacts {
    var facts = OrderFacts(
      order: order, deliveries: deliveries, receipts: receipts, lookup: lookup, brought: transactions)
    if let contestant {
      facts.brought = contestant.brought
      facts.receipts = contestant.receipts
      facts.claims = contestant.claims
    } else {
      // The ids in its proofs' own payloads decide here, and sound receipts were not put aside.
      if facts.dependsOnSoundReceipts { facts.receipts = try everyReceipt() }
      facts.claims = Settlement.alone(facts.claimant, rules: rules)
    }
    return facts
  }

  /// Whether the id that an order names must be held against every one of its proofs: nobody's transaction, or a proof
  /// with an id of its own. A named transaction that is filed here was brought by a proof of this order.
  private var dependsOnSoundReceipts: Bool {
    guard let named = order.transactionId, !brought.isEmpty else { return false }
    if !brought.contains(where: { $0.transactionId == named }) { return true }
    return receipts.contains { receipt in
      receipt.state.signedTransactionId.map { $0 != named } ?? false
    }
  }
}
