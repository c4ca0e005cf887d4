import Reconciliation

/// A shop's rows and Apple's records on one night, with what asking Apple comes to.
package struct World: Sendable {
  package var rules: Rules
  package var orders: [OrderRow] = []
  package var receipts: [Receipt] = []
  /// The transactions that each receipt brought, by receipt id.
  package var brings: [Identifier: Set<TransactionKey>] = [:]
  /// Receipts that are the same text as another one, byte for byte, by receipt id.
  package var copies: [Identifier: Identifier] = [:]
  /// Look-ups of named ids, by order id.
  package var lookups: [Identifier: ProofState] = [:]
  package var transactions: [TransactionRecord] = []
  /// What Apple sold and no answer of the night tells.
  package var unseen: [TransactionRecord] = []
  package var deliveries: [Delivery] = []
  /// Subscriptions that another one's customer has, too, by their first transactions' ids: Apple tells of both at once.
  package var customers: [Identifier: Identifier] = [:]
  /// What the tables have besides when an audit of the past reads them.
  package var later = LaterRows()
  /// What the shop sells; nil where nobody says.
  package var products: [Catalogue.Product]?

  package init(rules: Rules) { self.rules = rules }

  /// Adds what another world holds; ids are expected to be distinct.
  package mutating func add(_ other: World) {
    orders += other.orders
    receipts += other.receipts
    brings.merge(other.brings) { $0.union($1) }
    copies.merge(other.copies) { first, _ in first }
    lookups.merge(other.lookups) { first, _ in first }
    transactions += other.transactions
    unseen += other.unseen
    deliveries += other.deliveries
    customers.merge(other.customers) { first, _ in first }
    later.add(other.later)
    if let others = other.products { products = (products ?? []) + others }
    rules.testUsers.formUnion(other.rules.testUsers)
    rules.reviewWindows += other.rules.reviewWindows
  }

  /// The same world with its rows in another order.
  package func shuffled(using random: inout some RandomNumberGenerator) -> World {
    var copy = self
    copy.orders.shuffle(using: &random)
    copy.receipts.shuffle(using: &random)
    copy.transactions.shuffle(using: &random)
    copy.deliveries.shuffle(using: &random)
    return copy
  }
}

/// Rows, and changes of rows, that are dated after the as-of. An audit of that instant says what it would without them.
package struct LaterRows: Sendable {
  package var orders: [Order] = []
  package var deliveries: [Delivery] = []
  /// When goods that were with somebody are taken back, by delivery id.
  package var revocations: [Identifier: Instant] = [:]

  mutating func add(_ other: LaterRows) {
    orders += other.orders
    deliveries += other.deliveries
    revocations.merge(other.revocations) { first, _ in first }
  }
}
