import Reconciliation
import Streams

/// An order that a token or a stated ID could link to a transaction that its receipts do not contain.
struct LinkableOrder {
  var orderId: Identifier
  var userId: Identifier
  var productId: Identifier
  var createdAt: Instant
  /// As ``OrderGroup/isStatedIDContained``.
  var isStatedIDContained: Bool

  init(_ order: Order, isStatedIDContained: Bool) {
    (orderId, userId, productId) = (order.orderId, order.userId, order.productId)
    (createdAt, self.isStatedIDContained) = (order.createdAt, isStatedIDContained)
  }

  private init(_ order: BorrowedOrder, isStatedIDContained: Bool) {
    (orderId, userId, productId) = (order.orderId.id, order.userId.id, order.productId.id)
    (createdAt, self.isStatedIDContained) = (order.createdAt, isStatedIDContained)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    orderId = try record.id()
    userId = try record.id()
    productId = try record.id()
    createdAt = Instant(microseconds: try record.int())
    isStatedIDContained = try record.flag()
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
    var isStatedIDContained = false
    if let own = order.transactionId {
      for _ in 0..<(try record.int()) where !isStatedIDContained {
        isStatedIDContained = try WaitingProof(&record).isSound(containing: own)
      }
    }
    let linkable = LinkableOrder(order, isStatedIDContained: isStatedIDContained)
    if let token { try body(.token(AccountToken.spelling(token.text)), linkable) }
    if let stated { try body(.subscription(stated.id), linkable) }
  }

  /// A stated ID links an order to the periods of its subscription.
  static func forEach(
    of group: OrderGroup, _ body: (UnprovenLink, LinkableOrder) throws -> Void
  ) rethrows {
    guard case .valid(let order) = group.row, !group.isRepeated else { return }
    let linkable = LinkableOrder(order, isStatedIDContained: group.isStatedIDContained)
    if let token = order.appAccountToken { try body(.token(AccountToken.spelling(token)), linkable) }
    if let stated = order.transactionId { try body(.subscription(stated), linkable) }
  }

  func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(createdAt.microseconds)
    record.put(isStatedIDContained)
  }

  /// Whether the order is of the transaction's product, and near it in time.
  func isLinked(to transaction: TransactionRecord, rules: Rules) -> Bool {
    transaction.isPurchase(of: productId) && transaction.mayBeSold(near: createdAt, rules: rules)
  }
}
