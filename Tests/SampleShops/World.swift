import Reconciliation

/// A shop's rows and Apple's records on one night, with the results of the checks.
package struct World: Sendable {
  package var rules: Rules
  package var orders: [OrderRow] = []
  package var receipts: [Receipt] = []
  /// The transactions in each receipt, by receipt ID.
  package var contained: [Identifier: Set<TransactionKey>] = [:]
  /// Receipts with the same payload as another one, by receipt ID.
  package var copies: [Identifier: Identifier] = [:]
  package var lookups: [Identifier: ProofState] = [:]
  package var transactions: [TransactionRecord] = []
  /// Transactions of Apple that no answer contains.
  package var unseen: [TransactionRecord] = []
  package var deliveries: [Delivery] = []
  /// By transaction, what Apple tells late, in parts or differently later.
  package var announcements: [TransactionKey: Announcement] = [:]
  /// By original transaction ID, another subscription of the same customer: Apple's answers contain both.
  package var customers: [Identifier: Identifier] = [:]
  /// Rows that exist only after the as-of.
  package var later = LaterRows()
  /// nil if the shop has no catalogue.
  package var products: [Catalogue.Product]?

  package init(rules: Rules) { self.rules = rules }

  package mutating func add(_ other: World) {
    orders += other.orders
    receipts += other.receipts
    contained.merge(other.contained) { $0.union($1) }
    copies.merge(other.copies) { first, _ in first }
    lookups.merge(other.lookups) { first, _ in first }
    transactions += other.transactions
    unseen += other.unseen
    deliveries += other.deliveries
    announcements.merge(other.announcements) { first, _ in first }
    customers.merge(other.customers) { first, _ in first }
    later.add(other.later)
    if let others = other.products { products = (products ?? []) + others }
    rules.testUsers.formUnion(other.rules.testUsers)
    rules.reviewWindows += other.rules.reviewWindows
  }

  package func shuffled(using random: inout some RandomNumberGenerator) -> World {
    var copy = self
    copy.orders.shuffle(using: &random)
    copy.receipts.shuffle(using: &random)
    copy.transactions.shuffle(using: &random)
    copy.deliveries.shuffle(using: &random)
    return copy
  }
}

/// An unusual course in which Apple tells of a transaction.
package struct Announcement: Sendable {
  /// False if all notifications were lost.
  package var isNotified = true
  /// From then on Apple knows the transaction, and sends the notifications that were due before.
  package var knownFrom: Instant?
  /// The date that Apple first stated for the refund, and the instant from which it states the other one.
  package var firstRefund: (date: Instant, restatedAt: Instant)?
  /// The product of this part of a subscription bundle. The record has the product and IDs of the bundle.
  package var bundlePart: Identifier?
}

/// Rows and changes dated after the as-of, which must not affect the audit.
package struct LaterRows: Sendable {
  package var orders: [Order] = []
  package var deliveries: [Delivery] = []
  package var revocations: [Identifier: Instant] = [:]

  mutating func add(_ other: LaterRows) {
    orders += other.orders
    deliveries += other.deliveries
    revocations.merge(other.revocations) { first, _ in first }
  }
}
