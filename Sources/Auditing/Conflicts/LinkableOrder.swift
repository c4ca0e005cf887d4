import Reconciliation
import Streams

/// An order that a token or a stated ID could link to a transaction that its receipts do not contain.
struct LinkableOrder {
  var orderId: Identifier
  var userId: Identifier
  var productId: Identifier
  var createdAt: Instant
  /// True if a receipt that was sent for it contains a purchase.
  var hasPurchases: Bool

  init(_ order: Order, hasPurchases: Bool) {
    (orderId, userId) = (order.orderId, order.userId)
    (productId, createdAt, self.hasPurchases) = (order.productId, order.createdAt, hasPurchases)
  }

  private init(_ order: BorrowedOrder, hasPurchases: Bool) {
    (orderId, userId) = (order.orderId.id, order.userId.id)
    (productId, createdAt, self.hasPurchases) = (order.productId.id, order.createdAt, hasPurchases)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    orderId = try record.id()
    userId = try record.id()
    productId = try record.id()
    createdAt = Instant(microseconds: try record.int())
    hasPurchases = try record.flag()
  }

  /// Hands on an order, from its encoded group, once for each asked link that it could have.
  ///
  /// A row that breaks the contract has none, and a further row of an ID breaks it.
  static func forEach(
    inGroup record: inout RecordReader, asked: BloomFilter = .all, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) throws {
    guard let order = try BorrowedOrder?(from: &record), try !record.flag() else { return }
    let token = order.appAccountToken.flatMap { asked.mayContain(AccountToken.fingerprint($0)) ? $0 : nil }
    let stated = order.transactionId.flatMap { asked.mayContain($0.fingerprint) ? $0 : nil }
    if token == nil, stated == nil { return }
    var hasPurchases = false
    for _ in 0..<(try record.int()) where !hasPurchases {
      try WaitingProof(&record).forEachContained { _, _ in hasPurchases = true }
    }
    let linkable = LinkableOrder(order, hasPurchases: hasPurchases)
    if let token { try body(.token(AccountToken.spelling(token.text)), linkable) }
    if let stated { try body(.subscription(stated.id), linkable) }
  }

  /// A stated ID links an order to the periods of its subscription.
  static func forEach(
    of row: OrderRow, hasPurchases: Bool, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) rethrows {
    guard case .valid(let order) = row else { return }
    let linkable = LinkableOrder(order, hasPurchases: hasPurchases)
    if let token = order.appAccountToken { try body(.token(AccountToken.spelling(token)), linkable) }
    if let stated = order.transactionId { try body(.subscription(stated), linkable) }
  }

  func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(createdAt.microseconds)
    record.put(hasPurchases)
  }

  /// Whether the order is of the transaction's product, and near it in time.
  func isLinked(to transaction: TransactionRecord, rules: Rules) -> Bool {
    transaction.isPurchase(of: productId) && transaction.mayBeSold(near: createdAt, rules: rules)
  }
}
