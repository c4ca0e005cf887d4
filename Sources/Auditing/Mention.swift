import AuditStore
import Reconciliation

/// What connects an order, or a receipt without one, with a transaction id: a name, a proof that brought it, or both.
///
/// All mentions of an id are brought together by it, whatever orders they are of; that is how claims that compete are found
/// without a join of the shop's tables with ours.
struct Mention {
  /// What of an order decides whether it could claim a transaction. Behind a reference, because an order whose receipts list
  /// thousands of purchases mentions each of them.
  final class OrderSide: Sendable {
    let orderId: Identifier
    let userId: Identifier
    let productId: Identifier
    let createdAt: Instant
    /// The transaction id that the order names.
    let named: Identifier?
    let appAccountToken: String?
    /// A row that breaks the contract claims nothing; only whose it is matters.
    let isBad: Bool

    init(
      orderId: Identifier, userId: Identifier, productId: Identifier, createdAt: Instant, named: Identifier?,
      appAccountToken: String? = nil, isBad: Bool
    ) {
      self.orderId = orderId
      self.userId = userId
      self.productId = productId
      self.createdAt = createdAt
      self.named = named
      self.appAccountToken = appAccountToken
      self.isBad = isBad
    }
  }

  /// The receipt or look-up that brought a transaction.
  struct Bringer {
    /// Of the transaction.
    var environment: AppleEnvironment
    var subject: CheckSubject
    /// Who sent the receipt; nil for a look-up.
    var userId: Identifier?
    var receivedAt: Instant
    /// Whether it is about this one purchase, and no list of many.
    var isAboutOne: Bool
    /// Whether it is not known to be false, and not only a claim: neither supports anybody's claim.
    var isGenuine: Bool
    /// Whether it is a list about which Apple has not answered: what it brings may be refunded, or a family member's.
    var awaitsDetails = false
  }

  var transactionId: Identifier
  /// nil: a receipt without an order, or with one that does not exist.
  var order: OrderSide?
  /// Whether the order names the id, in whatever environment it exists.
  var isNamed = false
  /// The proof that brought the transaction; nil where there is the name alone.
  var bringer: Bringer?
}

extension OrderGroup {
  /// Everything that the order has to do with transactions.
  var mentions: [Mention] {
    var mentions: [Mention] = []
    forEachMention { mentions.append($0) }
    return mentions
  }

  /// Hands on everything that the order has to do with transactions.
  func forEachMention<Failure: Error>(_ body: (borrowing Mention) throws(Failure) -> Void) throws(Failure) {
    if isRepeated { return }
    let side: Mention.OrderSide
    switch row {
    case .bad(let bad):
      side = Mention.OrderSide(
        orderId: bad.orderId, userId: bad.userId, productId: bad.productId, createdAt: bad.createdAt, named: nil,
        isBad: true)
    case .valid(let order):
      side = Mention.OrderSide(
        orderId: order.orderId, userId: order.userId, productId: order.productId, createdAt: order.createdAt,
        named: order.transactionId, appAccountToken: order.appAccountToken, isBad: false)
    }
    // Nearly always its own proof brings what it names: one mention for both.
    var isNameTold = false
    func isName(_ id: Identifier) -> Bool {
      guard !isNameTold, id == side.named else { return false }
      isNameTold = true
      return true
    }
    for place in proofs.indices where proofs[place].receipt.defect == nil {
      for key in proofs[place].brought {
        try body(
          Mention(
            transactionId: key.transactionId, order: side, isNamed: isName(key.transactionId),
            bringer: Mention.Bringer(of: key, by: proofs[place].receipt)))
      }
    }
    if let lookup {
      for key in lookup.brought {
        let bringer = Mention.Bringer(
          environment: key.environment, subject: CheckSubject(kind: .lookup, id: lookup.subjectId), userId: nil,
          receivedAt: side.createdAt, isAboutOne: true, isGenuine: lookup.state.outcome != .rejected)
        try body(
          Mention(
            transactionId: key.transactionId, order: side, isNamed: isName(key.transactionId), bringer: bringer))
      }
    }
    if let named = side.named, !isNameTold { try body(Mention(transactionId: named, order: side, isNamed: true)) }
  }
}

extension Proof {
  /// - Parameter side: the order that the receipt was sent for; nil where there is none.
  func mentions(of side: Mention.OrderSide?) -> [Mention] {
    brought.map {
      Mention(transactionId: $0.transactionId, order: side, bringer: Mention.Bringer(of: $0, by: receipt))
    }
  }
}

extension Mention.Bringer {
  fileprivate init(of key: TransactionKey, by receipt: borrowing Receipt) {
    self.init(
      environment: key.environment, subject: CheckSubject(kind: .receipt, id: receipt.receiptId),
      userId: receipt.userId, receivedAt: receipt.receivedAt, isAboutOne: receipt.state.kind != .app,
      isGenuine: receipt.state.isProof, awaitsDetails: receipt.state.awaitsDetails)
  }
}
